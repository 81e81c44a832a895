// SPDX-License-Identifier: Apache-2.0

#include <time.h>

#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"

sg_recording_t sg_executor_recording(const sg_executor_t* executor,
                                     sg_step_capacity_t capacity,
                                     hipStream_t stream,
                                     const sg_launch_trace_t* trace) {
  return (sg_recording_t){
      .stream = stream,
      .trace = trace,
      .target = executor->target,
      .capacity = capacity,
      .buffers = executor->buffers,
      .arena = executor->arena,
      .ring = executor->ring.entries_device,
      .ring_layout = &executor->ring.layout,
      .ring_depth = executor->ring.depth,
      .cursor = executor->ring.cursor_device,
      .mailbox = executor->ring.mailbox_device,
      .slot_count = executor->program->slot_count,
      .shadow_buffers = executor->shadow.buffers,
      .shadow_slot_count = executor->shadow.slot_count,
      .mismatches = executor->shadow.mismatches_device,
  };
}

sg_status_t sg_executor_record(const sg_executor_t* executor,
                               const sg_recording_t* recording) {
  const sg_program_t* program = executor->program;
  SG_RETURN_IF_ERROR(program->record_step(program->self, recording));
  return program->record_done(program->self, recording);
}

static sg_status_t count_launch(void* self, const sg_launch_t* launch) {
  (void)launch;
  ++*(uint64_t*)self;
  return sg_status_ok();
}

sg_status_t sg_executor_record_eagerly(const sg_executor_t* executor,
                                       sg_step_capacity_t capacity,
                                       hipStream_t stream,
                                       uint64_t* out_launch_count) {
  *out_launch_count = 0;
  sg_launch_trace_t trace = {.self = out_launch_count, .add = count_launch};
  sg_recording_t recording =
      sg_executor_recording(executor, capacity, stream, &trace);
  return sg_executor_record(executor, &recording);
}

static sg_step_capacity_t capacity_of_key(const sg_graph_key_t* key) {
  return (sg_step_capacity_t){.phase = (sg_phase_t)key->phase,
                              .max_tokens = key->max_tokens,
                              .max_sequences = key->max_sequences};
}

sg_graph_key_t sg_executor_key(const sg_executor_t* executor,
                               size_t shape_index) {
  const sg_shape_t* shape = &executor->shapes->shapes[shape_index];
  return sg_graph_key_make(
      executor->program->fingerprint, executor->binding_count,
      (sg_step_capacity_t){.phase = shape->phase,
                           .max_tokens = shape->max_tokens,
                           .max_sequences = shape->max_sequences});
}

sg_status_t sg_executor_entry(sg_executor_t* executor, size_t shape_index,
                              sg_graph_entry_t** out_entry) {
  sg_graph_key_t key = sg_executor_key(executor, shape_index);
  *out_entry = sg_graph_cache_find(&executor->cache, &key);
  if (*out_entry != NULL) return sg_status_ok();
  SG_RETURN_IF_ERROR(sg_graph_cache_add(&executor->cache, &key));
  *out_entry = sg_graph_cache_find(&executor->cache, &key);
  return sg_status_ok();
}

sg_status_t sg_executor_order_stream(sg_executor_t* executor,
                                     hipStream_t stream) {
  // With nothing in flight there is nothing to be behind, and the other stream
  // may be gone.
  if (stream == executor->last_stream ||
      sg_batch_ring_in_flight(&executor->ring) == 0) {
    return sg_status_ok();
  }
  SG_RETURN_IF_HIP_ERROR(hipEventRecord, executor->order_event,
                         executor->last_stream);
  SG_RETURN_IF_HIP_ERROR(hipStreamWaitEvent, stream, executor->order_event, 0);
  return sg_status_ok();
}

// Ends a warm-up that broke off: the device has taken its entry from the ring,
// so the host must count it too. Nothing was in it, so nothing is lost.
static sg_status_t end_broken_warm_up(sg_executor_t* executor,
                                      sg_step_capacity_t capacity,
                                      sg_status_t status) {
  const sg_program_t* program = executor->program;
  sg_recording_t recording = sg_executor_recording(
      executor, capacity, executor->capture_stream, /*trace=*/NULL);
  if (!sg_status_is_ok(program->record_done(program->self, &recording))) {
    return sg_executor_lose_device(
        executor, sg_status_annotate(status, "a warm-up broke off"));
  }
  sg_batch_ring_advance(&executor->ring, 1);
  return status;
}

// Loads every kernel of the step before a capture meets it, by a batch with
// nothing in it.
static sg_status_t warm_up(sg_executor_t* executor,
                           sg_step_capacity_t capacity) {
  hipStream_t stream = executor->capture_stream;
  SG_RETURN_IF_ERROR(sg_executor_order_stream(executor, stream));
  // Should waiting fail below, steps have to stay behind what is queued here.
  executor->last_stream = stream;
  const sg_batch_t empty = {0};
  SG_RETURN_IF_ERROR(sg_batch_ring_write(&executor->ring, executor->program,
                                         &empty, /*source_slots=*/NULL,
                                         /*ahead=*/0));
  uint64_t launch_count;
  sg_status_t status =
      sg_executor_record_eagerly(executor, capacity, stream, &launch_count);
  if (!sg_status_is_ok(status)) {
    return launch_count == 0 ? status
                             : end_broken_warm_up(executor, capacity, status);
  }
  sg_batch_ring_advance(&executor->ring, 1);
  SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, stream);
  return sg_status_ok();
}

typedef struct capture_request_t {
  const sg_executor_t* executor;
  sg_step_capacity_t capacity;
} capture_request_t;

static sg_status_t record_request(void* self, hipStream_t stream,
                                  const sg_launch_trace_t* trace) {
  const capture_request_t* request = self;
  sg_recording_t recording = sg_executor_recording(
      request->executor, request->capacity, stream, trace);
  return sg_executor_record(request->executor, &recording);
}

static uint64_t now_ns(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static sg_status_t capture_measured(sg_executor_t* executor,
                                    sg_graph_entry_t* entry) {
  capture_request_t request = {executor, capacity_of_key(&entry->key)};
  if (executor->runs_here) {
    SG_RETURN_IF_ERROR(warm_up(executor, request.capacity));
  }
  uint64_t start_ns = now_ns();
  size_t free_before = 0, free_after = 0, total = 0;
  SG_RETURN_IF_HIP_ERROR(hipMemGetInfo, &free_before, &total);
  SG_RETURN_IF_ERROR(sg_graph_record(
      executor->options.allocator, executor->capture_stream, record_request,
      &request, executor->runs_here, &entry->graph));
  SG_RETURN_IF_HIP_ERROR(hipMemGetInfo, &free_after, &total);
  entry->statistics.captured = true;
  entry->statistics.node_count = entry->graph.nodes.node_count;
  entry->statistics.graph_bytes = (int64_t)free_before - (int64_t)free_after;
  entry->statistics.capture_ns = now_ns() - start_ns;
  return sg_status_ok();
}

// Drops a graph that takes the executor over its memory budget.
static sg_status_t check_budget(sg_executor_t* executor,
                                sg_graph_entry_t* entry) {
  uint64_t budget = executor->shapes->policy.memory_budget_bytes;
  uint64_t used = sg_graph_cache_bytes(&executor->cache);
  if (budget == 0 || used <= budget) return sg_status_ok();
  sg_graph_deinitialize(&entry->graph);
  entry->state = SG_GRAPH_OVER_BUDGET;
  entry->statistics.captured = false;
  return sg_status_make(
      SG_STATUS_OUT_OF_MEMORY,
      "graphs would use %llu bytes, the memory budget is %llu",
      (unsigned long long)used, (unsigned long long)budget);
}

sg_status_t sg_executor_capture_entry(sg_executor_t* executor,
                                      sg_graph_entry_t* entry) {
  sg_status_t status = capture_measured(executor, entry);
  if (!sg_status_is_ok(status)) {
    sg_graph_deinitialize(&entry->graph);
    entry->statistics.captured = false;
    // A full ring says nothing about the graph: it is tried again.
    if (status.code != SG_STATUS_BUSY) entry->state = SG_GRAPH_CAPTURE_FAILED;
    return status;
  }
  entry->state = SG_GRAPH_READY;
  return check_budget(executor, entry);
}

// The largest shape, by tokens and then sequences, that has not been captured
// or tried yet, or -1.
static sg_status_t next_shape(sg_executor_t* executor, int64_t* out_index) {
  const sg_shapes_t* shapes = executor->shapes;
  *out_index = -1;
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    sg_graph_entry_t* entry;
    SG_RETURN_IF_ERROR(sg_executor_entry(executor, i, &entry));
    if (entry->state != SG_GRAPH_ABSENT) continue;
    const sg_shape_t* shape = &shapes->shapes[i];
    const sg_shape_t* best =
        *out_index < 0 ? NULL : &shapes->shapes[*out_index];
    if (best == NULL || shape->max_tokens > best->max_tokens ||
        (shape->max_tokens == best->max_tokens &&
         shape->max_sequences > best->max_sequences)) {
      *out_index = (int64_t)i;
    }
  }
  return sg_status_ok();
}

static sg_status_t capture_all(sg_executor_t* executor,
                               sg_capture_progress_t progress,
                               void* progress_self) {
  const sg_shapes_t* shapes = executor->shapes;
  for (size_t done = 1;; ++done) {
    int64_t index;
    SG_RETURN_IF_ERROR(next_shape(executor, &index));
    if (index < 0) return sg_status_ok();
    sg_graph_entry_t* entry;
    SG_RETURN_IF_ERROR(sg_executor_entry(executor, (size_t)index, &entry));
    sg_status_t status = sg_executor_capture_entry(executor, entry);
    if (status.code == SG_STATUS_BUSY) return status;
    if (progress != NULL) {
      progress(progress_self, done, shapes->shape_count, &shapes->shapes[index],
               &entry->statistics, status);
    }
    SG_RETURN_IF_ERROR(executor->fatal);
  }
}

sg_status_t sg_executor_capture(sg_executor_t* executor,
                                sg_capture_progress_t progress,
                                void* progress_self) {
  if (executor->binding_count == 0) {
    return sg_status_make(SG_STATUS_FAILED_PRECONDITION,
                          "capture: no buffers are bound");
  }
  SG_RETURN_IF_ERROR(executor->fatal);
  sg_device_scope_t scope;
  SG_RETURN_IF_ERROR(sg_device_scope_enter(executor->options.device, &scope));
  sg_status_t status = capture_all(executor, progress, progress_self);
  sg_device_scope_leave(&scope);
  return status;
}
