// SPDX-License-Identifier: Apache-2.0
//
// short_conv on the host. Compiled once for each instruction set.

#include <stdbool.h>
#include <string.h>

#include "kernels/common/host_compiler.h"
#include "kernels/common/host_math.h"
#include "kernels/common/host_symbol.h"
#include "kernels/common/kda_rows_host.h"
#include "kernels/short_conv/params.h"
#include "runtime/base/checked.h"
#include "runtime/hip/host_kernel.h"

enum {
  // Channels at a time: few enough for weights and window to stay in the
  // first-level cache.
  STRIP_CHANNELS = 256,
  // Rows of the window; a power of two that holds the widest convolution.
  WINDOW_ROWS = 4,
};

// Some channels of a block's tile.
typedef struct strip_t {
  const sg_short_conv_params_t* params;
  int64_t first_channel;
  int32_t channels;
  // [i][d] is the weight of input t - width + 1 + i on output t.
  float weight[SG_SHORT_CONV_WIDTH_MAX][STRIP_CHANNELS];
  // The last inputs; row t of the sequence stands at t mod WINDOW_ROWS.
  float window[WINDOW_ROWS][STRIP_CHANNELS];
} strip_t;

// Rows of one sequence that a block computes: tokens |first| to |end| - 1 of
// the batch. Only an owner touches the cache.
typedef struct part_t {
  int32_t sequence;
  bool is_owner;
  int64_t first;
  int64_t end;
} part_t;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

static float* window_row(strip_t* strip, int64_t position) {
  return strip->window[(uint64_t)position % WINDOW_ROWS];
}

static int64_t x_offset(const strip_t* strip, int64_t token) {
  return token * strip->params->x_row_stride + strip->first_channel;
}

// |row| counts the rows of the sequence's slot.
static int64_t cache_offset(const strip_t* strip, int32_t sequence,
                            int64_t row) {
  const sg_short_conv_params_t* p = strip->params;
  return p->slots[sequence] * p->cache_slot_stride + row * p->channels +
         strip->first_channel;
}

static void load_weights(strip_t* strip) {
  const int32_t width = strip->params->width;
  const float* weight = strip->params->weight + strip->first_channel * width;
  for (int32_t d = 0; d < strip->channels; ++d) {
    for (int32_t i = 0; i < width; ++i) {
      strip->weight[i][d] = weight[d * width + i];
    }
  }
}

// Fills the window with what comes before the part's first row.
static void load_history(strip_t* strip, part_t part) {
  const sg_short_conv_params_t* p = strip->params;
  const int64_t rows = p->width - 1;
  const int64_t position = part.first - p->query_start_loc[part.sequence];
  for (int64_t i = 0; i < rows; ++i) {
    float* row = window_row(strip, position - rows + i);
    if (!part.is_owner) {
      sg_row_load(p->activation_dtype, p->x,
                  x_offset(strip, part.first - rows + i), strip->channels, row);
    } else if (p->computed_lens[part.sequence] > 0) {
      sg_row_load(p->activation_dtype, p->cache,
                  cache_offset(strip, part.sequence, i), strip->channels, row);
    } else {
      memset(row, 0, sizeof(float) * (size_t)strip->channels);
    }
  }
}

// Sums of the row at |position|, whose inputs are in the window, none below
// -87: there silu is -1e-36, and the sigmoid, which does not fall to 0, would
// let a huge sum through. Written so that a NaN stays one. |width| is a
// constant wherever this is called, so that a sum is straight-line code.
static SG_ALWAYS_INLINE void convolve(strip_t* strip, int32_t width,
                                      int64_t position, float* restrict sum) {
  const float* restrict tap[SG_SHORT_CONV_WIDTH_MAX];
  for (int32_t i = 0; i < width; ++i) {
    tap[i] = window_row(strip, position - width + 1 + i);
  }
  const int32_t channels = strip->channels & ~15;
  for (int32_t d = 0; d < channels; ++d) {
    float value = strip->weight[0][d] * tap[0][d];
    for (int32_t i = 1; i < width; ++i) {
      value += strip->weight[i][d] * tap[i][d];
    }
    sum[d] = value < -87.0f ? -87.0f : value;
  }
}

// x * sigmoid(x) in place. In two loops, since in one the compiler would
// multiply every x by the sigmoid's lower bound as well, to select from, and
// the processor takes its time over such tiny products.
static void silu(float* restrict row, int32_t channels) {
  float sigmoid[STRIP_CHANNELS];
  channels &= ~15;
  for (int32_t d = 0; d < channels; ++d) sigmoid[d] = sg_sigmoid(row[d]);
  for (int32_t d = 0; d < channels; ++d) row[d] *= sigmoid[d];
}

static void compute_row(strip_t* strip, int64_t position, int64_t token) {
  const sg_short_conv_params_t* p = strip->params;
  float row[STRIP_CHANNELS];
  sg_row_load(p->activation_dtype, p->x, x_offset(strip, token),
              strip->channels, window_row(strip, position));
  switch (p->width) {
    case 2:
      convolve(strip, 2, position, row);
      break;
    case 3:
      convolve(strip, 3, position, row);
      break;
    default:
      convolve(strip, 4, position, row);
      break;
  }
  silu(row, strip->channels);
  sg_row_store(p->activation_dtype, p->y,
               token * p->y_row_stride + strip->first_channel, strip->channels,
               row);
}

// Replaces the sequence's history by the last rows of history ++ x. Rows only
// move towards the front, so going from the front overwrites nothing that is
// still to be moved.
static void update_cache(const strip_t* strip, int32_t sequence) {
  const sg_short_conv_params_t* p = strip->params;
  const size_t element_bytes = sg_dtype_bytes((sg_dtype_t)p->activation_dtype);
  const size_t row_bytes = element_bytes * (size_t)strip->channels;
  const int64_t rows = p->width - 1;
  const int64_t begin = p->query_start_loc[sequence];
  const int64_t length = p->query_start_loc[sequence + 1] - begin;
  char* cache = p->cache;
  const char* x = p->x;
  for (int64_t i = 0; i < rows; ++i) {
    char* target =
        cache + (size_t)cache_offset(strip, sequence, i) * element_bytes;
    const int64_t position = length - rows + i;
    if (position >= 0) {
      const int64_t source = x_offset(strip, begin + position);
      memcpy(target, x + (size_t)source * element_bytes, row_bytes);
    } else if (p->computed_lens[sequence] > 0) {
      const int64_t source = cache_offset(strip, sequence, rows + position);
      memcpy(target, cache + (size_t)source * element_bytes, row_bytes);
    } else {
      memset(target, 0, row_bytes);
    }
  }
}

static void run_part(strip_t* strip, part_t part) {
  const sg_short_conv_params_t* p = strip->params;
  const int32_t slot = p->slots[part.sequence];
  if (slot < 0 || slot == p->null_slot) {
    for (int64_t token = part.first; token < part.end; ++token) {
      sg_row_zero(p->activation_dtype, p->y,
                  token * p->y_row_stride + strip->first_channel,
                  strip->channels);
    }
    return;
  }
  load_history(strip, part);
  const int64_t begin = p->query_start_loc[part.sequence];
  for (int64_t token = part.first; token < part.end; ++token) {
    compute_row(strip, token - begin, token);
  }
  if (part.is_owner) update_cache(strip, part.sequence);
}

// The first sequence that ends behind |token|, which is a real one.
static int32_t find_sequence(const sg_short_conv_params_t* p, int64_t token) {
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
static part_t part_of(const sg_short_conv_params_t* p, int32_t sequence,
                      int64_t tile_begin, int64_t tile_end) {
  const int64_t begin = p->query_start_loc[sequence];
  const int64_t end = p->query_start_loc[sequence + 1];
  const int64_t owned_end = min_of(end, begin + p->width - 1);
  part_t part = {.sequence = sequence, .is_owner = begin >= tile_begin};
  part.first = part.is_owner ? begin : max_of(tile_begin, owned_end);
  part.end = min_of(end, tile_end);
  if (part.is_owner) part.end = max_of(part.end, owned_end);
  return part;
}

static void run_strip(strip_t* strip, int64_t tile_begin, int64_t tile_end) {
  const sg_short_conv_params_t* p = strip->params;
  load_weights(strip);
  for (int32_t n = find_sequence(p, tile_begin);
       n < p->counts->sequence_count && p->query_start_loc[n] < tile_end; ++n) {
    const part_t part = part_of(p, n, tile_begin, tile_end);
    if (part.first < part.end) run_part(strip, part);
  }
}

void SG_HOST_SYMBOL(sg__short_conv_run)(const void* params,
                                        const sg_host_block_t* block);

void SG_HOST_SYMBOL(sg__short_conv_run)(const void* params,
                                        const sg_host_block_t* block) {
  const sg_short_conv_params_t* p = params;
  const int64_t channel_tiles = sg_ceil_div(p->channels, p->channel_tile);
  const int64_t tile_begin = block->index / channel_tiles * p->token_tile;
  if (p->counts->error_code != SG_STEP_ERROR_NONE ||
      tile_begin >= p->counts->token_count) {
    return;
  }
  const int64_t tile_end =
      min_of(tile_begin + p->token_tile, p->counts->token_count);
  const int64_t first = block->index % channel_tiles * p->channel_tile;
  const int64_t end = min_of(first + p->channel_tile, p->channels);
  strip_t strip = {.params = p};
  for (int64_t channel = first; channel < end; channel += STRIP_CHANNELS) {
    strip.first_channel = channel;
    strip.channels = (int32_t)min_of(STRIP_CHANNELS, end - channel);
    run_strip(&strip, tile_begin, tile_end);
  }
}
