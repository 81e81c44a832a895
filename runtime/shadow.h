// SPDX-License-Identifier: Apache-2.0
//
// The second set of outputs and a small pool beside each bound one, for steps
// that are verified (runtime/base/verify_layout.h).

#ifndef STEPGRAPH_RUNTIME_SHADOW_H_
#define STEPGRAPH_RUNTIME_SHADOW_H_

#include "runtime/base/allocator.h"
#include "runtime/batch.h"
#include "runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

// Used by one thread at a time.
typedef struct sg_shadow_t {
  sg_allocator_t allocator;
  // One address a buffer of the program; NULL where it is neither output nor
  // pool.
  void** buffers;
  // The bound addresses with those put in.
  void** merged;
  size_t buffer_count;
  // One more than the sequences of a batch, since the null slot is left out.
  int32_t slot_count;
  size_t device_bytes;
  // Host and device address of the same mapped pinned record.
  sg_mismatch_record_t* mismatches;
  sg_mismatch_record_t* mismatches_device;
  // Renumbered slots of the batch at hand.
  int32_t* slots;
  // For each slot of the bound pools, in which batch it was last renumbered
  // and to what.
  uint64_t* stamps;
  int32_t* numbers;
  uint64_t generation;
} sg_shadow_t;

// Device memory of a shadow, by the sizes that its buffers have.
size_t sg_shadow_bytes(const sg_program_t* program);

// Allocates device memory for |program|'s outputs and pools.
SG_MUST_USE sg_status_t sg_shadow_initialize(sg_allocator_t allocator,
                                             const sg_program_t* program,
                                             sg_shadow_t* out_shadow);

// The device must be done with it. Accepts NULL and a zeroed shadow.
void sg_shadow_deinitialize(sg_shadow_t* shadow);

// Takes over the bound addresses.
void sg_shadow_bind(sg_shadow_t* shadow, void* const* bound);

// |batch| with its slots renumbered to those of the shadow pools, in
// shadow->slots. Equal slots get equal numbers and slots out of range numbers
// out of range, so that a faulty batch is as faulty as before.
sg_batch_t sg_shadow_batch(sg_shadow_t* shadow, const sg_program_t* program,
                           const sg_batch_t* batch);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_SHADOW_H_
