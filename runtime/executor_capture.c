// SPDX-License-Identifier: Apache-2.0
//
// How the graphs of an executor come about, and go.

#include <threads.h>
#include <time.h>

#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"
#include "runtime/hip/range.h"

// A capture that another thread's call disturbs is worth a second try.
enum { CAPTURE_ATTEMPTS = 2 };

static sg_step_capacity_t capacity_of_key(const sg_graph_key_t* key) {
  return (sg_step_capacity_t){.phase = (sg_phase_t)key->phase,
                              .max_tokens = key->max_tokens,
                              .max_sequences = key->max_sequences};
}

static sg_graph_key_t key_of_shape(const sg_executor_t* executor,
                                   size_t shape_index) {
  const sg_shape_t* shape = &executor->shapes->shapes[shape_index];
  return sg_graph_key_make(
      executor->program->fingerprint, executor->binding_count,
      (sg_step_capacity_t){.phase = shape->phase,
                           .max_tokens = shape->max_tokens,
                           .max_sequences = shape->max_sequences});
}

sg_graph_entry_t* sg_executor_entry(const sg_executor_t* executor,
                                    size_t shape_index) {
  sg_graph_key_t key = key_of_shape(executor, shape_index);
  return sg_graph_cache_find(&executor->cache, &key);
}

sg_status_t sg_executor_reset_entries(sg_executor_t* executor) {
  sg_graph_cache_clear(&executor->cache);
  for (size_t i = 0; i < executor->shapes->shape_count; ++i) {
    sg_graph_key_t key = key_of_shape(executor, i);
    SG_RETURN_IF_ERROR(sg_graph_cache_add(&executor->cache, &key));
  }
  return sg_status_ok();
}

static sg_status_t record_whole(const sg_executor_t* executor,
                                const sg_recording_t* recording) {
  sg_recording_t piece = *recording;
  for (; piece.piece < executor->program->piece_count; ++piece.piece) {
    SG_RETURN_IF_ERROR(sg_executor_record_piece(executor, &piece));
  }
  return sg_status_ok();
}

// Ends a warm-up that broke off: the device has taken its entry from the ring,
// so the host must count it too. Nothing was in it, so nothing is lost.
static sg_status_t end_broken_warm_up(sg_executor_t* executor,
                                      const sg_recording_t* recording,
                                      sg_status_t status) {
  const sg_program_t* program = executor->program;
  if (!sg_status_is_ok(program->record_done(program->self, recording))) {
    return sg_executor_lose_device(
        executor, sg_status_annotate(status, "a warm-up broke off"));
  }
  sg_batch_ring_advance(&executor->ring, 1);
  return status;
}

// Enqueues a step with nothing in it on the capture stream, so that every
// kernel is loaded before a capture meets it. The lock is held.
static sg_status_t enqueue_warm_up(sg_executor_t* executor,
                                   sg_step_capacity_t capacity) {
  hipStream_t stream = executor->capture_stream;
  SG_RETURN_IF_ERROR(executor->fatal);
  SG_RETURN_IF_ERROR(sg_executor_order_stream(executor, stream));
  const sg_batch_t empty = {0};
  SG_RETURN_IF_ERROR(sg_batch_ring_write(&executor->ring, executor->program,
                                         &empty, /*source_slots=*/NULL,
                                         /*ahead=*/0));
  sg_recording_t recording =
      sg_executor_recording(executor, capacity, stream, SG_RECORD_WARM_UP);
  uint64_t launch_count;
  sg_status_t status =
      sg_executor_enqueue(executor, record_whole, &recording, &launch_count);
  if (sg_status_is_ok(status)) {
    sg_batch_ring_advance(&executor->ring, 1);
    return status;
  }
  return launch_count == 0 ? status
                           : end_broken_warm_up(executor, &recording, status);
}

static sg_status_t warm_up(sg_executor_t* executor,
                           sg_step_capacity_t capacity) {
  pthread_mutex_lock(&executor->lock);
  sg_status_t status = enqueue_warm_up(executor, capacity);
  pthread_mutex_unlock(&executor->lock);
  if (status.code == SG_STATUS_BUSY) return status;
  // Also behind a warm-up that broke off: launches of the caller's own may have
  // been in it, and end before the capture does.
  sg_status_t waited = sg_status_from_hip(
      hipStreamSynchronize(executor->capture_stream), "hipStreamSynchronize");
  SG_RETURN_IF_ERROR(status);
  SG_RETURN_IF_ERROR(waited);
  // An event recorded on the stream during the capture would pull whoever waits
  // for it into the capture. What is there has ended, so none is needed.
  pthread_mutex_lock(&executor->lock);
  if (executor->last_stream == executor->capture_stream) {
    executor->has_last_stream = false;
  }
  pthread_mutex_unlock(&executor->lock);
  return sg_status_ok();
}

typedef struct piece_request_t {
  const sg_executor_t* executor;
  sg_step_capacity_t capacity;
  int32_t piece;
} piece_request_t;

static sg_status_t record_request(void* self, hipStream_t stream,
                                  const sg_launch_trace_t* trace) {
  const piece_request_t* request = self;
  sg_recording_t recording = sg_executor_recording(
      request->executor, request->capacity, stream, SG_RECORD_CAPTURE);
  recording.trace = trace;
  recording.piece = request->piece;
  return sg_executor_record_piece(request->executor, &recording);
}

static uint64_t now_ns(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static sg_status_t record_piece(const sg_executor_t* executor,
                                piece_request_t* request,
                                sg_graph_t* out_graph) {
  sg_record_request_t record = {
      .stream = executor->capture_stream,
      .record = record_request,
      .self = request,
      .instantiate = sg_context_runs_here(executor->context),
      .allow_foreign = executor->program->has_foreign_work,
  };
  sg_status_t status = sg_status_ok();
  for (int attempt = 0; attempt < CAPTURE_ATTEMPTS; ++attempt) {
    status = sg_graph_record(executor->allocator, &record, out_graph);
    // Only the runtime's own errors may pass.
    if (status.code != SG_STATUS_DEVICE) break;
  }
  return status;
}

// Fills |graphs| and what the statistics say of them, apart from the entry,
// which others may look at meanwhile.
static sg_status_t capture_measured(sg_executor_t* executor,
                                    const sg_graph_entry_t* entry,
                                    sg_shape_statistics_t* out_statistics) {
  piece_request_t request = {executor, capacity_of_key(&entry->key), 0};
  if (sg_context_runs_here(executor->context)) {
    SG_RETURN_IF_ERROR(warm_up(executor, request.capacity));
  }
  uint64_t start_ns = now_ns();
  size_t free_before = 0, free_after = 0, total = 0;
  SG_RETURN_IF_HIP_ERROR(hipMemGetInfo, &free_before, &total);
  for (; request.piece < executor->program->piece_count; ++request.piece) {
    sg_graph_t* graph = &entry->pieces[request.piece];
    SG_RETURN_IF_ERROR(record_piece(executor, &request, graph));
    out_statistics->node_count += graph->nodes.node_count;
  }
  SG_RETURN_IF_HIP_ERROR(hipMemGetInfo, &free_after, &total);
  out_statistics->captured = true;
  out_statistics->graph_bytes = (int64_t)free_before - (int64_t)free_after;
  out_statistics->capture_ns = now_ns() - start_ns;
  return sg_status_ok();
}

static sg_status_t over_budget(const sg_executor_t* executor, uint64_t used) {
  return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                        "graphs would use %llu bytes, the memory budget is "
                        "%llu",
                        (unsigned long long)used,
                        (unsigned long long)executor->budget_bytes);
}

// Puts what was captured in its place. The lock is held.
static sg_status_t publish(sg_executor_t* executor, sg_graph_entry_t* entry,
                           const sg_shape_statistics_t* captured,
                           sg_status_t status) {
  uint64_t hits = entry->statistics.hits;
  entry->statistics = *captured;
  entry->statistics.hits = hits;
  if (!sg_status_is_ok(status)) {
    // A full ring says nothing about the graph: it is tried again.
    sg_graph_cache_drop(&executor->cache, entry,
                        status.code == SG_STATUS_BUSY
                            ? SG_GRAPH_ABSENT
                            : SG_GRAPH_CAPTURE_FAILED);
    return status;
  }
  entry->state = SG_GRAPH_READY;
  uint64_t used = sg_graph_cache_bytes(&executor->cache);
  if (executor->budget_bytes == 0 || used <= executor->budget_bytes) {
    return status;
  }
  sg_graph_cache_drop(&executor->cache, entry, SG_GRAPH_OVER_BUDGET);
  return over_budget(executor, used);
}

static void log_capture(const sg_executor_t* executor,
                        const sg_graph_entry_t* entry,
                        const sg_shape_statistics_t* captured,
                        sg_status_t status) {
  const sg_graph_key_t* key = &entry->key;
  const char* phase = sg_phase_name((sg_phase_t)key->phase);
  if (sg_status_is_ok(status)) {
    sg_context_log(executor->context, SG_LOG_INFO,
                   "captured %s %d tokens %d sequences: %zu nodes, %.1f ms, "
                   "%lld bytes",
                   phase, key->max_tokens, key->max_sequences,
                   captured->node_count, (double)captured->capture_ns * 1e-6,
                   (long long)captured->graph_bytes);
    return;
  }
  sg_context_log(executor->context, SG_LOG_WARNING,
                 "not captured: %s %d tokens %d sequences: %s", phase,
                 key->max_tokens, key->max_sequences, status.message);
}

sg_status_t sg_executor_capture_entry(sg_executor_t* executor,
                                      sg_graph_entry_t* entry) {
  sg_shape_statistics_t captured = {0};
  sg_range_push("stepgraph capture");
  sg_status_t status = capture_measured(executor, entry, &captured);
  sg_range_pop();
  pthread_mutex_lock(&executor->lock);
  status = publish(executor, entry, &captured, status);
  pthread_mutex_unlock(&executor->lock);
  log_capture(executor, entry, &captured, status);
  return status;
}

// The largest shape, by tokens and then sequences, that has not been captured
// or tried yet, or -1. The lock is held.
static int64_t next_shape(const sg_executor_t* executor) {
  const sg_shapes_t* shapes = executor->shapes;
  int64_t index = -1;
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    if (sg_executor_entry(executor, i)->state != SG_GRAPH_ABSENT) continue;
    const sg_shape_t* shape = &shapes->shapes[i];
    const sg_shape_t* best = index < 0 ? NULL : &shapes->shapes[index];
    if (best == NULL || shape->max_tokens > best->max_tokens ||
        (shape->max_tokens == best->max_tokens &&
         shape->max_sequences > best->max_sequences)) {
      index = (int64_t)i;
    }
  }
  return index;
}

// What one turn of capturing finds when it begins.
static sg_status_t find_next(sg_executor_t* executor, int64_t* out_index) {
  pthread_mutex_lock(&executor->lock);
  sg_status_t status = executor->fatal;
  *out_index = next_shape(executor);
  pthread_mutex_unlock(&executor->lock);
  return status;
}

static bool should_stop(const sg_executor_t* executor) {
  return __atomic_load_n(&executor->capture_thread.stop, __ATOMIC_ACQUIRE);
}

static sg_status_t capture_all(sg_executor_t* executor,
                               sg_capture_progress_t progress,
                               void* progress_self) {
  const sg_shapes_t* shapes = executor->shapes;
  for (size_t done = 1; !should_stop(executor);) {
    int64_t index;
    SG_RETURN_IF_ERROR(find_next(executor, &index));
    if (index < 0) return sg_status_ok();
    sg_graph_entry_t* entry = sg_executor_entry(executor, (size_t)index);
    sg_status_t status = sg_executor_capture_entry(executor, entry);
    if (status.code == SG_STATUS_BUSY) {
      // The capture thread finds room once steps have ended.
      if (!executor->capture_thread.is_started) return status;
      (void)thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
      continue;
    }
    if (progress != NULL) {
      sg_shape_statistics_t statistics;
      sg_executor_shape_statistics(executor, (size_t)index, &statistics);
      progress(progress_self, done, shapes->shape_count, &shapes->shapes[index],
               &statistics, status);
    }
    ++done;
  }
  return sg_status_ok();
}

static void* run_capture_thread(void* self) {
  sg_executor_t* executor = self;
  sg_capture_thread_t* thread = &executor->capture_thread;
  sg_device_scope_t scope;
  sg_status_t status = sg_device_scope_enter(executor->device, &scope);
  if (sg_status_is_ok(status)) {
    status = capture_all(executor, thread->progress, thread->progress_self);
    sg_device_scope_leave(&scope);
  }
  if (!sg_status_is_ok(status)) {
    sg_context_log(executor->context, SG_LOG_WARNING,
                   "the capture thread ended early: %s", status.message);
  }
  return NULL;
}

static sg_status_t start_capture_thread(sg_executor_t* executor,
                                        sg_capture_progress_t progress,
                                        void* progress_self) {
  sg_capture_thread_t* thread = &executor->capture_thread;
  thread->progress = progress;
  thread->progress_self = progress_self;
  thread->is_started = true;
  if (pthread_create(&thread->thread, NULL, run_capture_thread, executor) ==
      0) {
    return sg_status_ok();
  }
  thread->is_started = false;
  return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                        "capture: starting a thread failed");
}

void sg_executor_wait_captured(sg_executor_t* executor) {
  sg_capture_thread_t* thread = &executor->capture_thread;
  if (!thread->is_started) return;
  pthread_join(thread->thread, NULL);
  thread->is_started = false;
}

void sg_executor_stop_captures(sg_executor_t* executor) {
  sg_capture_thread_t* thread = &executor->capture_thread;
  __atomic_store_n(&thread->stop, true, __ATOMIC_RELEASE);
  sg_executor_wait_captured(executor);
  __atomic_store_n(&thread->stop, false, __ATOMIC_RELEASE);
}

sg_status_t sg_executor_capture(sg_executor_t* executor,
                                sg_capture_progress_t progress,
                                void* progress_self) {
  if (executor->binding_count == 0 || executor->open_step.is_open) {
    return sg_status_make(SG_STATUS_FAILED_PRECONDITION, "capture: %s",
                          executor->binding_count == 0
                              ? "no buffers are bound"
                              : "a step has pieces that were not run");
  }
  // One that is at work already would share the capture stream.
  sg_executor_stop_captures(executor);
  SG_RETURN_IF_ERROR(executor->fatal);
  switch (executor->shapes->policy.capture) {
    case SG_CAPTURE_LAZY:
      return sg_status_ok();
    case SG_CAPTURE_BACKGROUND:
      return start_capture_thread(executor, progress, progress_self);
    case SG_CAPTURE_STARTUP:
      break;
  }
  sg_device_scope_t scope;
  SG_RETURN_IF_ERROR(sg_device_scope_enter(executor->device, &scope));
  sg_status_t status = capture_all(executor, progress, progress_self);
  sg_device_scope_leave(&scope);
  return status;
}

// The graph that was used least and takes memory, or NULL.
static sg_graph_entry_t* least_used(const sg_executor_t* executor) {
  sg_graph_entry_t* found = NULL;
  for (size_t i = 0; i < executor->cache.entry_count; ++i) {
    sg_graph_entry_t* entry = &executor->cache.entries[i];
    if (entry->state != SG_GRAPH_READY || entry->statistics.graph_bytes <= 0) {
      continue;
    }
    if (found == NULL || entry->statistics.hits < found->statistics.hits) {
      found = entry;
    }
  }
  return found;
}

void sg_executor_set_memory_budget(sg_executor_t* executor,
                                   uint64_t budget_bytes) {
  pthread_mutex_lock(&executor->lock);
  bool raised = budget_bytes == 0 || budget_bytes > executor->budget_bytes;
  executor->budget_bytes = budget_bytes;
  for (size_t i = 0; raised && i < executor->cache.entry_count; ++i) {
    sg_graph_entry_t* entry = &executor->cache.entries[i];
    if (entry->state == SG_GRAPH_OVER_BUDGET) entry->state = SG_GRAPH_ABSENT;
  }
  while (budget_bytes != 0 &&
         sg_graph_cache_bytes(&executor->cache) > budget_bytes) {
    sg_graph_entry_t* entry = least_used(executor);
    sg_context_log(executor->context, SG_LOG_INFO,
                   "evicted %s %d tokens %d sequences after %llu hits",
                   sg_phase_name((sg_phase_t)entry->key.phase),
                   entry->key.max_tokens, entry->key.max_sequences,
                   (unsigned long long)entry->statistics.hits);
    sg_graph_cache_drop(&executor->cache, entry, SG_GRAPH_OVER_BUDGET);
  }
  pthread_mutex_unlock(&executor->lock);
}
