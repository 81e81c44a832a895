// SPDX-License-Identifier: Apache-2.0

#include "runtime/executor.h"

#include "runtime/base/shared_word.h"
#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"

sg_status_t sg_device_scope_enter(int device, sg_device_scope_t* out_scope) {
  *out_scope = (sg_device_scope_t){0};
  SG_RETURN_IF_HIP_ERROR(hipGetDevice, &out_scope->previous);
  if (out_scope->previous == device) return sg_status_ok();
  SG_RETURN_IF_HIP_ERROR(hipSetDevice, device);
  out_scope->changed = true;
  return sg_status_ok();
}

void sg_device_scope_leave(const sg_device_scope_t* scope) {
  if (scope->changed) (void)hipSetDevice(scope->previous);
}

sg_status_t sg_executor_lose_device(sg_executor_t* executor,
                                    sg_status_t status) {
  status.code = SG_STATUS_DEVICE;
  executor->fatal = status;
  return status;
}

void sg_executor_options_initialize(sg_executor_options_t* out_options) {
  *out_options = (sg_executor_options_t){.allocator = sg_allocator_system(),
                                         .ring_depth = 64};
}

static sg_status_t check_options(const sg_executor_options_t* options,
                                 const sg_program_t* program,
                                 const sg_shapes_t* shapes) {
  if (options->ring_depth < 1 ||
      (options->verify_every > 0 && options->ring_depth < 2)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "executor: ring depth %d, expected at least %d",
                          options->ring_depth,
                          options->verify_every > 0 ? 2 : 1);
  }
  if (options->verify_every < 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "executor: verify every %d steps, expected 0 or more",
                          options->verify_every);
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
    SG_RETURN_IF_ERROR(sg_shadow_initialize(executor->options.allocator,
                                            program, &executor->shadow));
  }
  executor->statistics.pinned_bytes =
      (size_t)executor->ring.depth * executor->ring.layout.entry_bytes +
      sizeof(sg_step_mailbox_t);
  executor->statistics.device_bytes = program->arena_bytes +
                                      executor->shadow.device_bytes +
                                      sizeof(sg_step_cursor_t);
  return sg_status_ok();
}

static sg_status_t create_on_device(sg_executor_t* executor) {
  sg_allocator_t allocator = executor->options.allocator;
  const sg_target_t* own;
  SG_RETURN_IF_ERROR(sg_target_of_device(executor->options.device, &own));
  executor->target = executor->options.target;
  if (executor->target == NULL) executor->target = own;
  executor->runs_here = executor->target == own;
  void* buffers;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "bound buffers",
                                 executor->program->buffer_count, sizeof(void*),
                                 &buffers));
  executor->buffers = buffers;
  SG_RETURN_IF_ERROR(sg_graph_cache_initialize(
      allocator, executor->shapes->shape_count, &executor->cache));
  return create_device_objects(executor);
}

sg_status_t sg_executor_create(const sg_executor_options_t* options,
                               const sg_program_t* program,
                               const sg_shapes_t* shapes,
                               sg_executor_t** out_executor) {
  *out_executor = NULL;
  SG_RETURN_IF_ERROR(check_options(options, program, shapes));
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(options->allocator, "executor", 1,
                                 sizeof(sg_executor_t), &memory));
  sg_executor_t* executor = memory;
  executor->options = *options;
  executor->program = program;
  executor->shapes = shapes;
  sg_device_scope_t scope;
  sg_status_t status = sg_device_scope_enter(options->device, &scope);
  if (sg_status_is_ok(status)) status = create_on_device(executor);
  sg_device_scope_leave(&scope);
  if (!sg_status_is_ok(status)) {
    sg_executor_destroy(executor);
    return status;
  }
  *out_executor = executor;
  return sg_status_ok();
}

void sg_executor_destroy(sg_executor_t* executor) {
  if (executor == NULL) return;
  sg_device_scope_t scope;
  bool entered =
      sg_status_is_ok(sg_device_scope_enter(executor->options.device, &scope));
  // Memory must not go while the device may still touch it. Where waiting
  // fails the device is lost, and nothing touches anything any more.
  (void)hipDeviceSynchronize();
  sg_graph_cache_deinitialize(&executor->cache);
  sg_shadow_deinitialize(&executor->shadow);
  sg_batch_ring_deinitialize(&executor->ring);
  if (executor->arena != NULL) (void)hipFree(executor->arena);
  if (executor->order_event != NULL) {
    (void)hipEventDestroy(executor->order_event);
  }
  if (executor->capture_stream != NULL) {
    (void)hipStreamDestroy(executor->capture_stream);
  }
  sg_release(executor->options.allocator, executor->buffers);
  if (entered) sg_device_scope_leave(&scope);
  sg_release(executor->options.allocator, executor);
}

static sg_status_t check_bindings(const sg_executor_t* executor,
                                  const sg_buffer_binding_t* bindings,
                                  size_t binding_count) {
  const sg_program_t* program = executor->program;
  if (binding_count != program->buffer_count) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "bind: %zu bindings, program %s has %zu buffers",
                          binding_count, program->name, program->buffer_count);
  }
  for (size_t i = 0; i < binding_count; ++i) {
    const sg_buffer_spec_t* spec = &program->buffers[i];
    if (bindings[i].address == NULL || bindings[i].bytes < spec->bytes ||
        (uintptr_t)bindings[i].address % 16 != 0) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "bind: %s needs %zu bytes aligned to 16, found "
                            "%zu bytes%s",
                            spec->name, spec->bytes, bindings[i].bytes,
                            bindings[i].address == NULL ? " at NULL"
                            : bindings[i].bytes < spec->bytes
                                ? ""
                                : " at an address that is not aligned");
    }
  }
  return sg_status_ok();
}

static sg_status_t bind_on_device(sg_executor_t* executor,
                                  const sg_buffer_binding_t* bindings,
                                  size_t binding_count) {
  // Graphs in flight use the old addresses.
  if (executor->binding_count > 0) {
    SG_RETURN_IF_ERROR(
        sg_status_from_hip(hipDeviceSynchronize(), "hipDeviceSynchronize"));
  }
  sg_graph_cache_clear(&executor->cache);
  for (size_t i = 0; i < binding_count; ++i) {
    executor->buffers[i] = bindings[i].address;
  }
  if (executor->options.verify_every > 0) {
    sg_shadow_bind(&executor->shadow, executor->buffers);
  }
  ++executor->binding_count;
  return sg_status_ok();
}

sg_status_t sg_executor_bind(sg_executor_t* executor,
                             const sg_buffer_binding_t* bindings,
                             size_t binding_count) {
  SG_RETURN_IF_ERROR(check_bindings(executor, bindings, binding_count));
  sg_device_scope_t scope;
  SG_RETURN_IF_ERROR(sg_device_scope_enter(executor->options.device, &scope));
  sg_status_t status = bind_on_device(executor, bindings, binding_count);
  sg_device_scope_leave(&scope);
  return status;
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
  sg_graph_key_t key = sg_executor_key(executor, shape_index);
  const sg_graph_entry_t* entry = sg_graph_cache_find(&executor->cache, &key);
  *out_statistics =
      entry == NULL ? (sg_shape_statistics_t){0} : entry->statistics;
}

const sg_node_table_t* sg_executor_nodes(const sg_executor_t* executor,
                                         size_t shape_index) {
  sg_graph_key_t key = sg_executor_key(executor, shape_index);
  const sg_graph_entry_t* entry = sg_graph_cache_find(&executor->cache, &key);
  if (entry == NULL || entry->state != SG_GRAPH_READY) return NULL;
  return &entry->graph.nodes;
}

static void add_region(sg_memory_region_t region, size_t capacity,
                       sg_memory_region_t* out_regions, size_t* count) {
  if (*count < capacity) out_regions[*count] = region;
  ++*count;
}

void sg_executor_regions(const sg_executor_t* executor, size_t capacity,
                         sg_memory_region_t* out_regions, size_t* out_count) {
  const sg_program_t* program = executor->program;
  const sg_batch_ring_t* ring = &executor->ring;
  *out_count = 0;
  for (size_t i = 0; i < program->buffer_count; ++i) {
    add_region((sg_memory_region_t){program->buffers[i].name,
                                    (uintptr_t)executor->buffers[i],
                                    program->buffers[i].bytes},
               capacity, out_regions, out_count);
  }
  for (size_t i = 0; i < program->arena_region_count; ++i) {
    const sg_arena_region_t* region = &program->arena_regions[i];
    add_region((sg_memory_region_t){region->name,
                                    (uintptr_t)executor->arena + region->offset,
                                    region->bytes},
               capacity, out_regions, out_count);
  }
  add_region(
      (sg_memory_region_t){"ring", (uintptr_t)ring->entries_device,
                           (size_t)ring->depth * ring->layout.entry_bytes},
      capacity, out_regions, out_count);
  add_region((sg_memory_region_t){"mailbox", (uintptr_t)ring->mailbox_device,
                                  sizeof(sg_step_mailbox_t)},
             capacity, out_regions, out_count);
  add_region((sg_memory_region_t){"cursor", (uintptr_t)ring->cursor_device,
                                  sizeof(sg_step_cursor_t)},
             capacity, out_regions, out_count);
}
