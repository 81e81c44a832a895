// SPDX-License-Identifier: Apache-2.0
//
// Enqueues gated_norm; see params.h for what it does.

#ifndef STEPGRAPH_KERNELS_GATED_NORM_GATED_NORM_H_
#define STEPGRAPH_KERNELS_GATED_NORM_GATED_NORM_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/common/batch_tables.h"
#include "runtime/base/kda_geometry.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// Device pointers; T is the token capacity.
typedef struct sg_gated_norm_args_t {
  const sg_kda_geometry_t* geometry;
  sg_batch_capacity_t capacity;
  const sg_batch_counts_t* counts;
  const void* o;        // [T, value_heads, value_dim], activation dtype
  const void* gate;     // [T, value_heads, value_dim], activation dtype
  const float* weight;  // [value_dim]
  // [T, value_heads, value_dim], activation dtype; o itself, or no part of it.
  void* y;
  // In elements, between tokens.
  int64_t o_row_stride;
  int64_t gate_row_stride;
  int64_t y_row_stride;
  // Whether rows from the real token count to the capacity are set to zero
  // instead of being left alone.
  bool zero_tail;
} sg_gated_norm_args_t;

// Whether there is a kernel for |geometry| on |target|: SG_STATUS_UNSUPPORTED
// with the numbers if not, SG_STATUS_INVALID_ARGUMENT for a geometry that makes
// no sense.
SG_MUST_USE sg_status_t sg_gated_norm_supports(
    const sg_kda_geometry_t* geometry, const sg_target_t* target);

// Enqueues one launch. |args| is not kept. Fails as sg_gated_norm_supports
// does, and with SG_STATUS_INVALID_ARGUMENT when a pointer is NULL, a capacity
// is negative, a stride is shorter than a row, or y is o with another stride.
SG_MUST_USE sg_status_t sg_gated_norm_enqueue(const sg_enqueue_t* where,
                                              const sg_gated_norm_args_t* args);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_GATED_NORM_GATED_NORM_H_
