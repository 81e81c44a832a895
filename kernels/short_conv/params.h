// SPDX-License-Identifier: Apache-2.0
//
// short_conv: the causal depthwise convolution in front of KDA, for prefills
// and decodes in one launch. With the inputs of a sequence preceded by its
// history, h = history ++ x:
//
//   y[t][d]  = silu(sum over i < width of weight[d][i] * h[t + i][d])
//   cache[d] = the last width - 1 rows of h, oldest first, as they are
//
// The history of a sequence with computed length above 0 is what the cache has
// in its slot; that of a fresh sequence is zeros, and the cache is not read.
// A row of y depends on nothing but its own inputs: not on the tiles, not on
// where a prefill was split, not on the capacity.
//
// - A sequence without a slot has zero rows of y and touches no cache.
// - An empty sequence touches nothing.
// - In a step with an error nothing is read and nothing is written.
// - Rows beyond the real tokens are neither read nor written: y is scratch.
//
// One launch without races. The cache of a sequence is read for its first
// width - 1 rows and replaced by its last ones, which may lie in tiles that run
// at the same time. So the block whose tile has the first row of a sequence
// owns everything that touches the cache: it computes the first width - 1 rows
// even where they reach into the next tile, whose block leaves them out, and it
// then writes the new cache from x, which nobody writes. Hence x and y must not
// overlap.
//
// Constraints
//   grid    ceil(token capacity / token_tile) x ceil(channels / channel_tile)
//           blocks, channel tiles of a token tile next to each other
//   block   any size on the host; on GPUs the blocks take tiles in turns, with
//           a thread a channel, and the tiles are those of the enumeration
//   width   2 to 4
//   shapes  channels and channel_tile are multiples of 16
//   types   x, y and cache of the activation dtype, weight and sums in fp32

#ifndef STEPGRAPH_KERNELS_SHORT_CONV_PARAMS_H_
#define STEPGRAPH_KERNELS_SHORT_CONV_PARAMS_H_

#include <assert.h>
#include <stdint.h>

#include "runtime/base/batch_layout.h"

enum {
  SG_SHORT_CONV_WIDTH_MIN = 2,
  SG_SHORT_CONV_WIDTH_MAX = 4,
  // Tiles on GPUs, and blocks a compute unit of the largest grid.
  SG_SHORT_CONV_DEVICE_TOKENS = 8,
  SG_SHORT_CONV_DEVICE_CHANNELS = 256,
  SG_SHORT_CONV_DEVICE_GRID = 8,
};

typedef struct sg_short_conv_params_t {
  const sg_batch_counts_t* counts;
  const int32_t* query_start_loc;
  const int32_t* computed_lens;
  const int32_t* slots;
  const void* x;        // [tokens, channels], rows x_row_stride apart
  const float* weight;  // [channels, width]
  void* cache;          // [slots, width - 1, channels], see cache_slot_stride
  void* y;              // [tokens, channels], rows y_row_stride apart
  // In elements.
  int64_t x_row_stride;
  int64_t y_row_stride;
  int64_t cache_slot_stride;
  int32_t channels;
  int32_t width;
  int32_t activation_dtype;  // sg_dtype_t
  int32_t null_slot;
  int32_t token_tile;
  int32_t channel_tile;
} sg_short_conv_params_t;

static_assert(sizeof(sg_short_conv_params_t) == 112, "no padding");

#endif  // STEPGRAPH_KERNELS_SHORT_CONV_PARAMS_H_
