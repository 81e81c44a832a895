// SPDX-License-Identifier: Apache-2.0
//
// What the executor's program works on: bound buffers, slots of the pools, and
// how much memory all that is.

#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"

static sg_status_t check_binding(const sg_buffer_spec_t* spec,
                                 const sg_buffer_binding_t* binding) {
  if (binding->address == NULL) return sg_status_ok();
  bool aligned = (uintptr_t)binding->address % 16 == 0;
  if (binding->bytes >= spec->bytes && aligned) return sg_status_ok();
  return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                        "bind: %s needs %zu bytes aligned to 16, found %zu "
                        "bytes%s",
                        spec->name, spec->bytes, binding->bytes,
                        aligned ? "" : " at an address that is not aligned");
}

static sg_status_t allocate_owned(const sg_executor_t* executor,
                                  const sg_buffer_spec_t* spec,
                                  void** out_memory) {
  SG_RETURN_IF_ERROR(sg_status_annotate(
      sg_status_from_hip(hipMalloc(out_memory, spec->bytes), "hipMalloc"),
      "%s of %zu bytes", spec->name, spec->bytes));
  return sg_status_annotate(
      sg_status_from_hip(
          hipMemsetAsync(*out_memory, 0, spec->bytes, executor->capture_stream),
          "hipMemsetAsync"),
      "%s", spec->name);
}

// Puts one binding in place; the old memory goes where it was the executor's.
static sg_status_t bind_one(sg_executor_t* executor, size_t index,
                            const sg_buffer_binding_t* binding) {
  void* memory = binding->address;
  bool owned = memory == NULL;
  if (owned) {
    sg_status_t status =
        allocate_owned(executor, &executor->program->buffers[index], &memory);
    if (!sg_status_is_ok(status)) {
      if (memory != NULL) (void)hipFree(memory);
      return status;
    }
  }
  if (executor->owned[index]) (void)hipFree(executor->buffers[index]);
  executor->buffers[index] = memory;
  executor->owned[index] = owned;
  return sg_status_ok();
}

// Graphs remember addresses: with new ones, none of the old may be launched.
static sg_status_t bind_range(sg_executor_t* executor, size_t first,
                              const sg_buffer_binding_t* bindings,
                              size_t count) {
  sg_executor_stop_captures(executor);
  if (executor->binding_count > 0) {
    SG_RETURN_IF_ERROR(
        sg_status_from_hip(hipDeviceSynchronize(), "hipDeviceSynchronize"));
  }
  sg_graph_cache_clear(&executor->cache);
  for (size_t i = 0; i < count; ++i) {
    SG_RETURN_IF_ERROR(bind_one(executor, first + i, &bindings[i]));
  }
  SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, executor->capture_stream);
  if (executor->options.verify_every > 0) {
    sg_shadow_bind(&executor->shadow, executor->buffers);
  }
  ++executor->binding_count;
  return sg_executor_reset_entries(executor);
}

static sg_status_t bind_on_device(sg_executor_t* executor, size_t first,
                                  const sg_buffer_binding_t* bindings,
                                  size_t count) {
  if (executor->open_step.is_open) {
    return sg_status_make(SG_STATUS_FAILED_PRECONDITION,
                          "bind: a step has pieces that were not run");
  }
  for (size_t i = 0; i < count; ++i) {
    SG_RETURN_IF_ERROR(
        check_binding(&executor->program->buffers[first + i], &bindings[i]));
  }
  sg_device_scope_t scope;
  SG_RETURN_IF_ERROR(sg_device_scope_enter(executor->device, &scope));
  sg_status_t status = bind_range(executor, first, bindings, count);
  sg_device_scope_leave(&scope);
  return status;
}

sg_status_t sg_executor_bind(sg_executor_t* executor,
                             const sg_buffer_binding_t* bindings,
                             size_t binding_count) {
  const sg_program_t* program = executor->program;
  if (binding_count != program->buffer_count) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "bind: %zu bindings, program %s has %zu buffers",
                          binding_count, program->name, program->buffer_count);
  }
  return bind_on_device(executor, 0, bindings, binding_count);
}

sg_status_t sg_executor_rebind(sg_executor_t* executor, size_t buffer_index,
                               sg_buffer_binding_t binding) {
  if (buffer_index >= executor->program->buffer_count) {
    return sg_status_make(
        SG_STATUS_INVALID_ARGUMENT, "rebind: buffer %zu, program %s has %zu",
        buffer_index, executor->program->name, executor->program->buffer_count);
  }
  if (executor->binding_count == 0) {
    return sg_status_make(SG_STATUS_FAILED_PRECONDITION,
                          "rebind: no buffers are bound");
  }
  return bind_on_device(executor, buffer_index, &binding, 1);
}

void* sg_executor_buffer(const sg_executor_t* executor, size_t buffer_index) {
  return executor->buffers[buffer_index];
}

static sg_status_t check_slots(const sg_executor_t* executor,
                               const int32_t* slots, size_t count) {
  const sg_program_t* program = executor->program;
  for (size_t i = 0; i < count; ++i) {
    if (slots[i] >= 0 && slots[i] < program->slot_count &&
        slots[i] != program->null_slot) {
      continue;
    }
    return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                          "slot %d: expected 0 to %d and not the null slot %d",
                          slots[i], program->slot_count - 1,
                          program->null_slot);
  }
  return sg_status_ok();
}

// Copies one slot of one pool, or zeroes it where |from| is NULL.
static sg_status_t change_slot(const sg_executor_t* executor, size_t buffer,
                               const int32_t* from, int32_t to,
                               hipStream_t stream) {
  const sg_buffer_spec_t* spec = &executor->program->buffers[buffer];
  unsigned char* pool = executor->buffers[buffer];
  unsigned char* slot = pool + (size_t)to * spec->stride_bytes;
  if (from == NULL) {
    SG_RETURN_IF_HIP_ERROR(hipMemsetAsync, slot, 0, spec->row_bytes, stream);
    return sg_status_ok();
  }
  if (*from == to) return sg_status_ok();
  SG_RETURN_IF_HIP_ERROR(hipMemcpyAsync, slot,
                         pool + (size_t)*from * spec->stride_bytes,
                         spec->row_bytes, hipMemcpyDeviceToDevice, stream);
  return sg_status_ok();
}

static sg_status_t change_all(sg_executor_t* executor, const int32_t* from,
                              const int32_t* to, size_t count,
                              hipStream_t stream) {
  SG_RETURN_IF_ERROR(sg_executor_order_stream(executor, stream));
  executor->has_slot_work = true;
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < executor->program->buffer_count; ++b) {
      if (executor->program->buffers[b].role != SG_BUFFER_POOL) continue;
      SG_RETURN_IF_ERROR(change_slot(
          executor, b, from == NULL ? NULL : &from[i], to[i], stream));
    }
  }
  return sg_status_ok();
}

static sg_status_t change_slots(sg_executor_t* executor, const int32_t* from,
                                const int32_t* to, size_t count,
                                hipStream_t stream, const char* call) {
  sg_device_scope_t scope;
  SG_RETURN_IF_ERROR(sg_device_scope_enter(executor->device, &scope));
  pthread_mutex_lock(&executor->lock);
  sg_status_t status = sg_executor_check_runnable(executor, stream, call);
  if (sg_status_is_ok(status)) {
    status = change_all(executor, from, to, count, stream);
    // Some pools may hold the change and others not.
    if (!sg_status_is_ok(status)) {
      status = sg_executor_lose_device(executor, status);
    }
  }
  pthread_mutex_unlock(&executor->lock);
  sg_device_scope_leave(&scope);
  return status;
}

sg_status_t sg_executor_copy_slots(sg_executor_t* executor, const int32_t* from,
                                   const int32_t* to, size_t count,
                                   hipStream_t stream) {
  SG_RETURN_IF_ERROR(check_slots(executor, from, count));
  SG_RETURN_IF_ERROR(check_slots(executor, to, count));
  return change_slots(executor, from, to, count, stream, "copy slots");
}

sg_status_t sg_executor_zero_slots(sg_executor_t* executor,
                                   const int32_t* slots, size_t count,
                                   hipStream_t stream) {
  SG_RETURN_IF_ERROR(check_slots(executor, slots, count));
  return change_slots(executor, NULL, slots, count, stream, "zero slots");
}

// Counts launches and enqueues none.
static bool count_only(void* self, const sg_launch_t* launch) {
  (void)launch;
  ++*(size_t*)self;
  return false;
}

static sg_status_t count_nodes(const sg_program_t* program,
                               const sg_recording_t* recording,
                               size_t* node_count) {
  sg_launch_trace_t trace = {.self = node_count, .wants = count_only};
  sg_recording_t counted = *recording;
  counted.trace = &trace;
  for (int32_t piece = 0; piece < program->piece_count; ++piece) {
    counted.piece = piece;
    SG_RETURN_IF_ERROR(program->record_piece(program->self, &counted));
  }
  return program->record_done(program->self, &counted);
}

// A recording that counts needs addresses to calculate with, not to use.
static sg_status_t count_all_nodes(sg_context_t* context,
                                   const sg_program_t* program,
                                   const sg_shapes_t* shapes,
                                   const sg_batch_entry_layout_t* layout,
                                   int32_t ring_depth, void** no_buffers,
                                   size_t* out_node_count) {
  unsigned char nothing[1];
  *out_node_count = 0;
  for (size_t i = 0; i < program->buffer_count; ++i) no_buffers[i] = nothing;
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    const sg_shape_t* shape = &shapes->shapes[i];
    sg_recording_t recording = {
        .target = sg_context_target(context),
        .mode = SG_RECORD_CAPTURE,
        .capacity = {shape->phase, shape->max_tokens, shape->max_sequences},
        .buffers = no_buffers,
        .arena = nothing,
        .ring = nothing,
        .ring_layout = layout,
        .ring_depth = ring_depth,
        .slot_count = program->slot_count};
    SG_RETURN_IF_ERROR(count_nodes(program, &recording, out_node_count));
  }
  return sg_status_ok();
}

sg_status_t sg_executor_estimate(sg_context_t* context,
                                 const sg_executor_options_t* options,
                                 const sg_program_t* program,
                                 const sg_shapes_t* shapes,
                                 sg_memory_estimate_t* out_estimate) {
  *out_estimate = (sg_memory_estimate_t){.arena_bytes = program->arena_bytes};
  sg_batch_entry_layout_t layout;
  SG_RETURN_IF_ERROR(sg_batch_ring_layout(
      program->limits.max_sequences, program->ring_chunk_capacity, &layout));
  out_estimate->pinned_bytes =
      sg_batch_ring_pinned_bytes(options->ring_depth, &layout);
  for (size_t i = 0; i < program->buffer_count; ++i) {
    out_estimate->buffer_bytes += program->buffers[i].bytes;
  }
  if (options->verify_every > 0) {
    out_estimate->shadow_bytes = sg_shadow_bytes(program);
  }
  if (program->has_foreign_work) return sg_status_ok();
  sg_allocator_t allocator = sg_context_options(context)->allocator;
  void* no_buffers;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "buffer addresses",
                                 program->buffer_count, sizeof(void*),
                                 &no_buffers));
  sg_status_t status =
      count_all_nodes(context, program, shapes, &layout, options->ring_depth,
                      no_buffers, &out_estimate->node_count);
  sg_release(allocator, no_buffers);
  out_estimate->graph_bytes = out_estimate->node_count * SG_GRAPH_NODE_BYTES;
  return status;
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
