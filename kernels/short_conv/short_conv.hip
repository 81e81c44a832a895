// SPDX-License-Identifier: Apache-2.0
//
// short_conv on a GPU: a thread has one channel of a tile of tokens. It loads
// everything that a sequence has in the tile before it computes, so that the
// latency of memory is waited for once.

#include "kernels/common/device_math.h"
#include "kernels/short_conv/params.h"

enum {
  THREADS = SG_SHORT_CONV_DEVICE_CHANNELS,
  TILE = SG_SHORT_CONV_DEVICE_TOKENS,
  HISTORY = SG_SHORT_CONV_WIDTH_MAX - 1,
};

// Rows of one sequence that a block computes: tokens |first| to |end| - 1 of
// the batch, at most TILE. Only an owner touches the cache.
typedef struct part_t {
  int32_t sequence;
  bool is_owner;
  int64_t first;
  int64_t end;
} part_t;

SG_DEVICE int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
SG_DEVICE int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

// |row| counts the rows of the sequence's slot.
SG_DEVICE int64_t cache_offset(const sg_short_conv_params_t* p,
                               int32_t sequence, int32_t row, int32_t channel) {
  return p->slots[sequence] * p->cache_slot_stride +
         (int64_t)row * p->channels + channel;
}

// x * sigmoid(x). What is below -87 counts as -87, where the result is -1e-36:
// the sigmoid, which does not fall to 0, would let a huge x through. Written so
// that a NaN stays one.
SG_DEVICE float silu(float x) {
  const float bounded = x < -87.0f ? -87.0f : x;
  return bounded * sg_sigmoid(bounded);
}

// One element as it is.
SG_DEVICE void copy_element(int32_t dtype, void* target, int64_t target_offset,
                            const void* source, int64_t source_offset) {
  if (dtype == SG_DTYPE_FP32) {
    ((uint32_t*)target)[target_offset] =
        ((const uint32_t*)source)[source_offset];
  } else {
    ((uint16_t*)target)[target_offset] =
        ((const uint16_t*)source)[source_offset];
  }
}

// The input |back| rows before the part's first.
SG_DEVICE float load_history(const sg_short_conv_params_t* p,
                             const part_t& part, int32_t back,
                             int32_t channel) {
  if (!part.is_owner) {
    return sg_load_element(p->activation_dtype, p->x,
                           (part.first - back) * p->x_row_stride + channel);
  }
  if (p->computed_lens[part.sequence] <= 0) return 0.0f;
  return sg_load_element(
      p->activation_dtype, p->cache,
      cache_offset(p, part.sequence, p->width - 1 - back, channel));
}

// Replaces the sequence's history by the last rows of history ++ x. Rows only
// move towards the front, so going from the front overwrites nothing that is
// still to be moved.
SG_DEVICE void update_cache(const sg_short_conv_params_t* p, int32_t sequence,
                            int32_t channel) {
  const int32_t rows = p->width - 1;
  const int64_t begin = p->query_start_loc[sequence];
  const int64_t length = p->query_start_loc[sequence + 1] - begin;
  for (int32_t i = 0; i < rows; ++i) {
    const int64_t target = cache_offset(p, sequence, i, channel);
    const int64_t position = length - rows + i;
    if (position >= 0) {
      copy_element(p->activation_dtype, p->cache, target, p->x,
                   (begin + position) * p->x_row_stride + channel);
    } else if (p->computed_lens[sequence] > 0) {
      copy_element(
          p->activation_dtype, p->cache, target, p->cache,
          cache_offset(p, sequence, (int32_t)(rows + position), channel));
    } else {
      sg_store_element(p->activation_dtype, p->cache, target, 0.0f);
    }
  }
}

// |weight| has the weights of the last inputs at its end, zeros in front where
// the convolution is narrower, and |input| what they apply to.
SG_DEVICE void convolve(const sg_short_conv_params_t* p, const part_t& part,
                        int32_t channel, const float weight[HISTORY + 1]) {
  float input[HISTORY + TILE];
#pragma unroll
  for (int32_t i = 0; i < HISTORY; ++i) {
    const int32_t back = HISTORY - i;
    input[i] = back < p->width ? load_history(p, part, back, channel) : 0.0f;
  }
#pragma unroll
  for (int32_t i = 0; i < TILE; ++i) {
    const int64_t token = part.first + i;
    input[HISTORY + i] = 0.0f;
    if (token < part.end) {
      input[HISTORY + i] = sg_load_element(p->activation_dtype, p->x,
                                           token * p->x_row_stride + channel);
    }
  }
#pragma unroll
  for (int32_t i = 0; i < TILE; ++i) {
    const int64_t token = part.first + i;
    if (token >= part.end) continue;
    float sum = 0.0f;
#pragma unroll
    for (int32_t j = 0; j <= HISTORY; ++j) {
      // An input that has no weight may be anything, infinite too.
      if (HISTORY - j < p->width) sum += weight[j] * input[i + j];
    }
    sg_store_element(p->activation_dtype, p->y,
                     token * p->y_row_stride + channel, silu(sum));
  }
}

SG_DEVICE void run_part(const sg_short_conv_params_t* p, const part_t& part,
                        int32_t channel, const float weight[HISTORY + 1]) {
  const int32_t slot = p->slots[part.sequence];
  if (slot < 0 || slot == p->null_slot) {
    for (int64_t token = part.first; token < part.end; ++token) {
      sg_store_element(p->activation_dtype, p->y,
                       token * p->y_row_stride + channel, 0.0f);
    }
    return;
  }
  convolve(p, part, channel, weight);
  if (part.is_owner) update_cache(p, part.sequence, channel);
}

// The first sequence that ends behind |token|, which is a real one.
SG_DEVICE int32_t find_sequence(const sg_short_conv_params_t* p,
                                int64_t token) {
  int32_t low = 0;
  int32_t high = p->counts->sequence_count - 1;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (p->query_start_loc[middle + 1] > token) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// What the block of tokens |tile_begin| to |tile_end| - 1 computes of
// |sequence|; no rows if its end is not behind its first.
SG_DEVICE part_t part_of(const sg_short_conv_params_t* p, int32_t sequence,
                         int64_t tile_begin, int64_t tile_end) {
  const int64_t begin = p->query_start_loc[sequence];
  const int64_t end = p->query_start_loc[sequence + 1];
  const int64_t owned_end = min_of(end, begin + p->width - 1);
  part_t part;
  part.sequence = sequence;
  part.is_owner = begin >= tile_begin;
  part.first = part.is_owner ? begin : max_of(tile_begin, owned_end);
  part.end = min_of(end, tile_end);
  if (part.is_owner) part.end = max_of(part.end, owned_end);
  return part;
}

SG_DEVICE void run_tile(const sg_short_conv_params_t* p, int64_t tile_begin,
                        int32_t channel) {
  const int64_t tile_end = min_of(tile_begin + TILE, p->counts->token_count);
  float weight[HISTORY + 1];
#pragma unroll
  for (int32_t j = 0; j <= HISTORY; ++j) {
    const int32_t i = j - (HISTORY + 1 - p->width);
    weight[j] = i >= 0 ? p->weight[(int64_t)channel * p->width + i] : 0.0f;
  }
  for (int32_t n = find_sequence(p, tile_begin);
       n < p->counts->sequence_count && p->query_start_loc[n] < tile_end; ++n) {
    const part_t part = part_of(p, n, tile_begin, tile_end);
    if (part.first < part.end) run_part(p, part, channel, weight);
  }
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 4)
    short_conv(sg_short_conv_params_t params) {
  const sg_short_conv_params_t* p = &params;
  if (p->counts->error_code != SG_STEP_ERROR_NONE) return;
  const int64_t channel_tiles = (p->channels + THREADS - 1) / THREADS;
  const int64_t items =
      (p->counts->token_count + TILE - 1) / TILE * channel_tiles;
  for (int64_t item = sg_block(); item < items; item += sg_grid()) {
    const int32_t channel =
        (int32_t)(item % channel_tiles) * THREADS + sg_thread();
    if (channel < p->channels) {
      run_tile(p, item / channel_tiles * TILE, channel);
    }
  }
}

extern "C" const void* short_conv_handle(void) {
  return sg_kernel_handle(short_conv);
}
