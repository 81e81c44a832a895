// SPDX-License-Identifier: Apache-2.0

#include "runtime/shadow.h"

#include <stdint.h>
#include <string.h>

#include "runtime/base/checked.h"
#include "runtime/hip/error.h"

static sg_status_t allocate_host(sg_shadow_t* shadow,
                                 const sg_program_t* program) {
  sg_allocator_t allocator = shadow->allocator;
  void* memory;
  size_t slot_count = (size_t)program->slot_count;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "shadow buffers",
                                 program->buffer_count, sizeof(void*),
                                 &memory));
  shadow->buffers = memory;
  shadow->buffer_count = program->buffer_count;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "shadow buffers",
                                 program->buffer_count, sizeof(void*),
                                 &memory));
  shadow->merged = memory;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "shadow slots",
                                 (size_t)program->limits.max_sequences,
                                 sizeof(int32_t), &memory));
  shadow->slots = memory;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "shadow slot stamps", slot_count,
                                 sizeof(uint64_t), &memory));
  shadow->stamps = memory;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "shadow slot numbers", slot_count,
                                 sizeof(int32_t), &memory));
  shadow->numbers = memory;
  return sg_status_ok();
}

// Bytes of one shadow buffer, 0 for buffers that have none.
static size_t buffer_bytes(const sg_program_t* program, size_t index) {
  const sg_buffer_spec_t* spec = &program->buffers[index];
  if (spec->role == SG_BUFFER_OUTPUT) return spec->bytes;
  if (spec->role != SG_BUFFER_POOL) return 0;
  size_t slots = (size_t)program->limits.max_sequences + 1;
  size_t bytes;
  // Saturates: an allocation of that size fails with a clear message.
  if (!sg_checked_mul(spec->stride_bytes, slots, &bytes)) return SIZE_MAX;
  return bytes;
}

size_t sg_shadow_bytes(const sg_program_t* program) {
  size_t total = 0;
  for (size_t i = 0; i < program->buffer_count; ++i) {
    total += buffer_bytes(program, i);
  }
  return total;
}

static sg_status_t allocate_device(sg_shadow_t* shadow,
                                   const sg_program_t* program) {
  for (size_t i = 0; i < program->buffer_count; ++i) {
    size_t bytes = buffer_bytes(program, i);
    if (bytes == 0) continue;
    SG_RETURN_IF_ERROR(sg_status_annotate(
        sg_status_from_hip(hipMalloc(&shadow->buffers[i], bytes), "hipMalloc"),
        "shadow of %s", program->buffers[i].name));
    shadow->device_bytes += bytes;
  }
  void* host = NULL;
  SG_RETURN_IF_HIP_ERROR(hipHostMalloc, &host, sizeof(sg_mismatch_record_t),
                         hipHostMallocMapped | hipHostMallocCoherent);
  memset(host, 0, sizeof(sg_mismatch_record_t));
  shadow->mismatches = host;
  void* device = NULL;
  SG_RETURN_IF_HIP_ERROR(hipHostGetDevicePointer, &device, host, 0);
  shadow->mismatches_device = device;
  return sg_status_ok();
}

sg_status_t sg_shadow_initialize(sg_allocator_t allocator,
                                 const sg_program_t* program,
                                 sg_shadow_t* out_shadow) {
  *out_shadow = (sg_shadow_t){0};
  sg_shadow_t shadow = {.allocator = allocator,
                        .slot_count = program->limits.max_sequences + 1};
  sg_status_t status = allocate_host(&shadow, program);
  if (sg_status_is_ok(status)) status = allocate_device(&shadow, program);
  if (!sg_status_is_ok(status)) {
    sg_shadow_deinitialize(&shadow);
    return status;
  }
  *out_shadow = shadow;
  return sg_status_ok();
}

void sg_shadow_deinitialize(sg_shadow_t* shadow) {
  if (shadow == NULL) return;
  for (size_t i = 0; i < shadow->buffer_count; ++i) {
    if (shadow->buffers[i] != NULL) (void)hipFree(shadow->buffers[i]);
  }
  if (shadow->mismatches != NULL) (void)hipHostFree(shadow->mismatches);
  sg_release(shadow->allocator, shadow->buffers);
  sg_release(shadow->allocator, shadow->merged);
  sg_release(shadow->allocator, shadow->slots);
  sg_release(shadow->allocator, shadow->stamps);
  sg_release(shadow->allocator, shadow->numbers);
  *shadow = (sg_shadow_t){0};
}

void sg_shadow_bind(sg_shadow_t* shadow, void* const* bound) {
  for (size_t i = 0; i < shadow->buffer_count; ++i) {
    shadow->merged[i] =
        shadow->buffers[i] != NULL ? shadow->buffers[i] : bound[i];
  }
}

static int32_t renumber(sg_shadow_t* shadow, const sg_program_t* program,
                        int32_t slot, int32_t sequence) {
  if (slot < 0 || slot == program->null_slot) return -1;
  if (slot >= program->slot_count) return shadow->slot_count;
  if (shadow->stamps[slot] != shadow->generation) {
    bool before_null = program->null_slot < 0 || sequence < program->null_slot;
    shadow->stamps[slot] = shadow->generation;
    shadow->numbers[slot] = before_null ? sequence : sequence + 1;
  }
  return shadow->numbers[slot];
}

sg_batch_t sg_shadow_batch(sg_shadow_t* shadow, const sg_program_t* program,
                           const sg_batch_t* batch) {
  ++shadow->generation;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    shadow->slots[n] = renumber(shadow, program, batch->slots[n], n);
  }
  sg_batch_t renumbered = *batch;
  renumbered.slots = shadow->slots;
  return renumbered;
}
