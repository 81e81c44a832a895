// SPDX-License-Identifier: Apache-2.0

#include "runtime/executor.h"

#include "runtime/base/shared_word.h"
#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"

void sg_executor_options_initialize(sg_executor_options_t* out_options) {
  *out_options = (sg_executor_options_t){.ring_depth = 64};
}

sg_status_t sg_executor_lose_device(sg_executor_t* executor,
                                    sg_status_t status) {
  status.code = SG_STATUS_DEVICE;
  if (sg_status_is_ok(executor->fatal)) {
    sg_context_log(executor->context, SG_LOG_ERROR, "device lost: %s",
                   status.message);
  }
  executor->fatal = status;
  return status;
}

static sg_status_t check_options(const sg_executor_options_t* options,
                                 const sg_program_t* program,
                                 const sg_shapes_t* shapes) {
  int32_t needed_depth = options->verify_every > 0 ? 2 : 1;
  if (options->ring_depth < needed_depth) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "executor: ring depth %d, expected at least %d",
                          options->ring_depth, needed_depth);
  }
  if (program->piece_count < 1) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "executor: program %s has %d pieces, expected at "
                          "least 1",
                          program->name, program->piece_count);
  }
  if (options->verify_every < 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "executor: verify every %d steps, expected 0 or more",
                          options->verify_every);
  }
  if (options->verify_every > 0 &&
      (program->has_foreign_work || program->piece_count > 1)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "executor: program %s has %d pieces and %s foreign "
                          "work; only one piece without any can be verified",
                          program->name, program->piece_count,
                          program->has_foreign_work ? "some" : "no");
  }
  if (program->limits.max_tokens != shapes->limits.max_tokens ||
      program->limits.max_sequences != shapes->limits.max_sequences) {
    return sg_status_make(
        SG_STATUS_INVALID_ARGUMENT,
        "executor: program for %d tokens and %d sequences, shapes have limits "
        "of %d and %d",
        program->limits.max_tokens, program->limits.max_sequences,
        shapes->limits.max_tokens, shapes->limits.max_sequences);
  }
  return sg_status_ok();
}

static sg_status_t create_device_objects(sg_executor_t* executor) {
  const sg_program_t* program = executor->program;
  SG_RETURN_IF_HIP_ERROR(hipStreamCreateWithFlags, &executor->capture_stream,
                         hipStreamNonBlocking);
  SG_RETURN_IF_HIP_ERROR(hipEventCreateWithFlags, &executor->order_event,
                         hipEventDisableTiming);
  SG_RETURN_IF_HIP_ERROR(hipMalloc, &executor->arena, program->arena_bytes);
  SG_RETURN_IF_HIP_ERROR(hipMemsetAsync, executor->arena, 0,
                         program->arena_bytes, executor->capture_stream);
  SG_RETURN_IF_ERROR(sg_batch_ring_initialize(
      executor->options.ring_depth, program->limits.max_sequences,
      program->ring_chunk_capacity, executor->capture_stream, &executor->ring));
  if (executor->options.verify_every > 0) {
    SG_RETURN_IF_ERROR(
        sg_shadow_initialize(executor->allocator, program, &executor->shadow));
  }
  executor->statistics.pinned_bytes =
      sg_batch_ring_pinned_bytes(executor->ring.depth, &executor->ring.layout);
  executor->statistics.device_bytes = program->arena_bytes +
                                      executor->shadow.device_bytes +
                                      sizeof(sg_step_cursor_t);
  return sg_status_ok();
}

static sg_status_t create_on_device(sg_executor_t* executor) {
  const sg_program_t* program = executor->program;
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(executor->allocator, "bound buffers",
                                 program->buffer_count, sizeof(void*),
                                 &memory));
  executor->buffers = memory;
  SG_RETURN_IF_ERROR(sg_allocate(executor->allocator, "owned buffers",
                                 program->buffer_count, sizeof(bool), &memory));
  executor->owned = memory;
  SG_RETURN_IF_ERROR(sg_graph_cache_initialize(
      executor->allocator, executor->shapes->shape_count, program->piece_count,
      &executor->cache));
  return create_device_objects(executor);
}

sg_status_t sg_executor_create(sg_context_t* context,
                               const sg_executor_options_t* options,
                               const sg_program_t* program,
                               const sg_shapes_t* shapes,
                               sg_executor_t** out_executor) {
  *out_executor = NULL;
  SG_RETURN_IF_ERROR(check_options(options, program, shapes));
  const sg_context_options_t* context_options = sg_context_options(context);
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(context_options->allocator, "executor", 1,
                                 sizeof(sg_executor_t), &memory));
  sg_executor_t* executor = memory;
  executor->context = context;
  sg_context_retain(context);
  executor->allocator = context_options->allocator;
  executor->device = context_options->device;
  executor->options = *options;
  executor->program = program;
  executor->shapes = shapes;
  executor->budget_bytes = shapes->policy.memory_budget_bytes;
  pthread_mutex_init(&executor->lock, NULL);
  sg_device_scope_t scope;
  sg_status_t status = sg_device_scope_enter(executor->device, &scope);
  if (sg_status_is_ok(status)) status = create_on_device(executor);
  sg_device_scope_leave(&scope);
  if (!sg_status_is_ok(status)) {
    sg_executor_destroy(executor);
    return status;
  }
  *out_executor = executor;
  return sg_status_ok();
}

static void free_device_objects(sg_executor_t* executor) {
  for (size_t i = 0; i < executor->program->buffer_count; ++i) {
    if (executor->owned != NULL && executor->owned[i]) {
      (void)hipFree(executor->buffers[i]);
    }
  }
  sg_shadow_deinitialize(&executor->shadow);
  sg_batch_ring_deinitialize(&executor->ring);
  if (executor->arena != NULL) (void)hipFree(executor->arena);
  if (executor->order_event != NULL) {
    (void)hipEventDestroy(executor->order_event);
  }
  if (executor->capture_stream != NULL) {
    (void)hipStreamDestroy(executor->capture_stream);
  }
}

void sg_executor_destroy(sg_executor_t* executor) {
  if (executor == NULL) return;
  sg_executor_stop_captures(executor);
  sg_device_scope_t scope;
  // Where the device cannot be set, freeing fails too and nothing is lost that
  // was not lost before.
  bool entered =
      sg_status_is_ok(sg_device_scope_enter(executor->device, &scope));
  // Memory must not go while the device may still touch it. Where waiting
  // fails the device is lost, and nothing touches anything any more.
  (void)hipDeviceSynchronize();
  sg_graph_cache_deinitialize(&executor->cache);
  free_device_objects(executor);
  if (entered) sg_device_scope_leave(&scope);
  pthread_mutex_destroy(&executor->lock);
  sg_allocator_t allocator = executor->allocator;
  sg_release(allocator, executor->buffers);
  sg_release(allocator, executor->owned);
  sg_context_release(executor->context);
  sg_release(allocator, executor);
}

bool sg_executor_poll_error(sg_executor_t* executor,
                            sg_step_error_record_t* out_error) {
  *out_error = (sg_step_error_record_t){0};
  return sg_batch_ring_take_error(&executor->ring, out_error);
}

bool sg_executor_first_mismatch(const sg_executor_t* executor,
                                sg_mismatch_record_t* out_mismatch) {
  *out_mismatch = (sg_mismatch_record_t){0};
  const sg_mismatch_record_t* record = executor->shadow.mismatches;
  if (record == NULL || sg_load_acquire(&record->step) == 0) return false;
  *out_mismatch = *record;
  return true;
}

void sg_executor_statistics(const sg_executor_t* executor,
                            sg_statistics_t* out_statistics) {
  *out_statistics = executor->statistics;
  out_statistics->error_steps =
      sg_load_acquire(&executor->ring.mailbox->error_steps);
  if (executor->shadow.mismatches != NULL) {
    out_statistics->mismatched_rows =
        sg_load_acquire(&executor->shadow.mismatches->mismatched_rows);
  }
}

void sg_executor_shape_statistics(const sg_executor_t* executor,
                                  size_t shape_index,
                                  sg_shape_statistics_t* out_statistics) {
  *out_statistics = (sg_shape_statistics_t){0};
  pthread_mutex_t* lock = (pthread_mutex_t*)(uintptr_t)&executor->lock;
  pthread_mutex_lock(lock);
  const sg_graph_entry_t* entry = sg_executor_entry(executor, shape_index);
  if (entry != NULL) *out_statistics = entry->statistics;
  pthread_mutex_unlock(lock);
}

const sg_node_table_t* sg_executor_nodes(const sg_executor_t* executor,
                                         size_t shape_index, int32_t piece) {
  pthread_mutex_t* lock = (pthread_mutex_t*)(uintptr_t)&executor->lock;
  pthread_mutex_lock(lock);
  const sg_graph_entry_t* entry = sg_executor_entry(executor, shape_index);
  bool ready = entry != NULL && entry->state == SG_GRAPH_READY;
  pthread_mutex_unlock(lock);
  return ready ? &entry->pieces[piece].nodes : NULL;
}
