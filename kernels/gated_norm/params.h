// SPDX-License-Identifier: Apache-2.0
//
// gated_norm: the norm behind KDA, for each token and value head. With V =
// value_dim:
//
//   y = o / sqrt(mean over V of o^2 + epsilon) * weight * sigmoid(gate)
//
// The formula is Kimi Linear's (arXiv 2510.26692, FusedRMSNormGated with a
// sigmoid in flash-linear-attention). y may be o, with the same row stride.
//
// - A row of zeros stays zeros, so the rows of sequences without a slot, which
//   the KDA ops make zero, are zero here too.
// - In a step with an error all rows up to the token capacity become zero.
// - Otherwise rows beyond the real tokens are not read, and become zero where
//   zero_tail asks for it; else they are not written either.
//
// Constraints
//   grid    ceil(token capacity * value_heads / row_tile) blocks; a row is one
//           head of one token
//   block   any size on the host; on GPUs the blocks take rows in turns, a wave
//           a row
//   shapes  value_dim is a multiple of 16, at most SG_KDA_DIM_MAX
//   types   o, gate and y of the activation dtype, weight and arithmetic fp32

#ifndef STEPGRAPH_KERNELS_GATED_NORM_PARAMS_H_
#define STEPGRAPH_KERNELS_GATED_NORM_PARAMS_H_

#include <assert.h>
#include <stdint.h>

#include "runtime/base/batch_layout.h"

enum {
  // On GPUs: threads a block, and blocks a compute unit of the largest grid.
  SG_GATED_NORM_THREADS = 256,
  SG_GATED_NORM_GRID = 8,
};

typedef struct sg_gated_norm_params_t {
  const sg_batch_counts_t* counts;
  const void* o;        // [tokens, value_heads, value_dim]
  const void* gate;     // [tokens, value_heads, value_dim]
  const float* weight;  // [value_dim]
  void* y;              // [tokens, value_heads, value_dim]
  // In elements, between tokens.
  int64_t o_row_stride;
  int64_t gate_row_stride;
  int64_t y_row_stride;
  int32_t value_heads;
  int32_t value_dim;
  int32_t activation_dtype;  // sg_dtype_t
  int32_t token_capacity;
  int32_t row_tile;
  int32_t zero_tail;  // 0 or 1
  float epsilon;
  int32_t reserved;
} sg_gated_norm_params_t;

static_assert(sizeof(sg_gated_norm_params_t) == 96, "no padding");

#endif  // STEPGRAPH_KERNELS_GATED_NORM_PARAMS_H_
