// SPDX-License-Identifier: Apache-2.0
//
// Enqueues short_conv; see params.h for what it does.

#ifndef STEPGRAPH_KERNELS_SHORT_CONV_SHORT_CONV_H_
#define STEPGRAPH_KERNELS_SHORT_CONV_SHORT_CONV_H_

#include <stdint.h>

#include "kernels/common/batch_tables.h"
#include "runtime/base/kda_geometry.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// Device pointers; T is the token capacity. A row holds the projections of one
// token packed q | k | v, and the three parts of y are the q, k and v of the
// KDA ops, with the row stride of y:
//   q [heads, key_dim], k [heads, key_dim], v [value_heads, value_dim]
typedef struct sg_short_conv_args_t {
  const sg_kda_geometry_t* geometry;
  sg_batch_capacity_t capacity;
  // Chunk tables are not read.
  sg_batch_tables_t tables;
  const void* x;        // [T, channels], activation dtype
  const float* weight;  // [channels, conv_width]
  // [slots, conv_width - 1, channels], activation dtype, oldest input first,
  // updated in place.
  void* cache;
  // [T, channels], activation dtype; must not overlap x.
  void* y;
  // In elements: between tokens, and between slots of the cache.
  int64_t x_row_stride;
  int64_t y_row_stride;
  int64_t cache_slot_stride;
  // Slot that is never touched, besides those below 0; -1 for none.
  int32_t null_slot;
} sg_short_conv_args_t;

// Channels of a row: 2 * heads * key_dim + value_heads * value_dim.
int64_t sg_short_conv_channels(const sg_kda_geometry_t* geometry);

// Whether there is a kernel for |geometry| on |target|: SG_STATUS_UNSUPPORTED
// with the numbers if not, SG_STATUS_INVALID_ARGUMENT for a geometry that makes
// no sense.
SG_MUST_USE sg_status_t sg_short_conv_supports(
    const sg_kda_geometry_t* geometry, const sg_target_t* target);

// Enqueues one launch. |args| is not kept. Fails as sg_short_conv_supports
// does, and with SG_STATUS_INVALID_ARGUMENT when a pointer is NULL, x is y, a
// capacity is negative or a stride is shorter than what it steps over.
SG_MUST_USE sg_status_t sg_short_conv_enqueue(const sg_enqueue_t* where,
                                              const sg_short_conv_args_t* args);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_SHORT_CONV_SHORT_CONV_H_
