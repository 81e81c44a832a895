// SPDX-License-Identifier: Apache-2.0
//
// verify: the kernels around a step that is run twice and compared
// (runtime/base/verify_layout.h says how).
//
//   slot_snapshot   shadow[slots[n]] = pool[source_slots[n]] for each n of the
//                   ring entry of step cursor.next_step + 1
//   compare_rows    live row t against shadow row t, t below the token count
//   compare_slots   pool[source_slots[n]] against shadow[slots[n]] for each n
//                   of the ring entry of step cursor.current_step
//
// Differences are bitwise; a NaN equals itself.
//
// Constraints
//   grid       one block a sequence or row, up to the capacity; any block size
//   alignment  16 bytes for buffers and strides on the GPU flavours
//   slots      those that are no slot or out of range are passed over

#ifndef STEPGRAPH_KERNELS_VERIFY_PARAMS_H_
#define STEPGRAPH_KERNELS_VERIFY_PARAMS_H_

#include "runtime/base/batch_layout.h"
#include "runtime/base/verify_layout.h"

// For slot_snapshot and compare_slots.
typedef struct sg_verify_slots_params_t {
  const unsigned char* ring;
  const sg_step_cursor_t* cursor;
  unsigned char* pool;
  unsigned char* shadow;
  int64_t pool_stride_bytes;
  int64_t shadow_stride_bytes;
  int64_t slot_bytes;
  // NULL for slot_snapshot.
  sg_mismatch_record_t* mismatches;
  sg_batch_entry_layout_t layout;
  int32_t ring_depth;
  int32_t slot_count;
  int32_t shadow_slot_count;
  int32_t null_slot;
  // Index among the program's buffers.
  int32_t buffer;
  int32_t reserved;
} sg_verify_slots_params_t;

// For compare_rows.
typedef struct sg_verify_rows_params_t {
  const sg_batch_counts_t* counts;
  const sg_step_cursor_t* cursor;
  const unsigned char* live;
  const unsigned char* shadow;
  int64_t stride_bytes;
  int64_t row_bytes;
  sg_mismatch_record_t* mismatches;
  int32_t buffer;
  int32_t reserved;
} sg_verify_rows_params_t;

#endif  // STEPGRAPH_KERNELS_VERIFY_PARAMS_H_
