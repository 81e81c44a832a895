// SPDX-License-Identifier: Apache-2.0
//
// The rows of the state that a wave of kda_chunk_scan has, on a GPU. Device
// code.
//
// With panels of fp16 the rows pass through products as fp16, which has the
// bits but not the range. Each row is therefore held as S 2^-e with an e of its
// own, such that its largest element is between 2 and 2^15. It follows from the
// row alone, so that rows, which are independent, do not see each other's
// sizes.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_STATE_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_STATE_H_

#include "kernels/common/device_tile.h"

// Exponents: the least of a row, which is also that of a row of zeros; what
// the largest element is brought to; what a residual may be beyond its row.
#define SG_SCAN_EXPONENT_MIN -112
#define SG_SCAN_EXPONENT_MAX 127
#define SG_SCAN_TARGET 8
#define SG_SCAN_AHEAD_MAX 60

// Where a row's largest fp16 shall be: from 2 to below 2^15.
enum { SG_SCAN_FP16_LOW = 0x4000, SG_SCAN_FP16_HIGH = 0x7800 };
enum { SG_SCAN_FP16_INFINITY = 0x7c00 };

template <typename element_t>
static constexpr bool SG_SCAN_IS_SCALED = sizeof(element_t) == 2;

template <int32_t KEY_TILES>
struct sg_scan_state_t {
  // S 2^-exponent of the row. Without scaling exponents are 0.
  sg_tile_t tile[KEY_TILES];
  int32_t exponent[SG_TILE_ROWS];
};

// The biased exponent of the largest magnitude in each of the lane's rows: 255
// where an element is not finite.
template <int32_t COUNT>
SG_DEVICE void sg_scan_row_exponents(const sg_tile_t* tiles,
                                     int32_t out_exponents[SG_TILE_ROWS]) {
  float most[SG_TILE_ROWS] = {};
#pragma unroll
  for (int32_t i = 0; i < COUNT * SG_TILE_VALUES; ++i) {
    float* row = &most[sg_tile_row_index(i % SG_TILE_VALUES)];
    *row = sg_larger(*row, tiles[i / SG_TILE_VALUES].value[i % SG_TILE_VALUES]);
  }
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    out_exponents[j] = (int32_t)(sg_tile_row_max(sg_bits_of(most[j])) >> 23);
  }
}

// Multiplies a row by 2^shift, which is at most 126, and keeps what it means.
template <int32_t KEY_TILES>
SG_DEVICE void sg_scan_shift(int32_t row, int32_t shift,
                             sg_scan_state_t<KEY_TILES>* state) {
  const float factor = sg_power_of_two(shift);
#pragma unroll
  for (int32_t t = 0; t < KEY_TILES; ++t) {
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
      if (sg_tile_row_index(i) == row) state->tile[t].value[i] *= factor;
    }
  }
  state->exponent[row] -= shift;
}

// Whether fp16 does not hold a row well; |most| is the lane's largest pair of
// the row in it.
SG_DEVICE bool sg_scan_is_misfit(uint32_t most, int32_t exponent) {
  const uint32_t low = most & 0x7fffu;
  const uint32_t high = most >> 16 & 0x7fffu;
  const uint32_t row = sg_tile_row_max(low > high ? low : high);
  return (row < SG_SCAN_FP16_LOW && exponent > SG_SCAN_EXPONENT_MIN) ||
         (row >= SG_SCAN_FP16_HIGH && row <= SG_SCAN_FP16_INFINITY);
}

// Brings |misfits| to where fp16 holds them best. Rows with elements that are
// not finite stay as they are.
template <int32_t KEY_TILES>
SG_DEVICE void sg_scan_rescale(const bool misfits[SG_TILE_ROWS],
                               sg_scan_state_t<KEY_TILES>* state) {
  int32_t exponents[SG_TILE_ROWS];
  sg_scan_row_exponents<KEY_TILES>(state->tile, exponents);
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    int32_t shift = 127 + SG_SCAN_TARGET - exponents[j];
    const int32_t most = state->exponent[j] - SG_SCAN_EXPONENT_MIN;
    const int32_t least = state->exponent[j] - SG_SCAN_EXPONENT_MAX;
    shift = shift < most ? shift : most;
    shift = shift < 126 ? shift : 126;
    shift = shift > least ? shift : least;
    sg_scan_shift(j, misfits[j] && exponents[j] != 255 ? shift : 0, state);
  }
}

// Lifts rows of the state that are too small to add D to them.
template <int32_t KEY_TILES>
SG_DEVICE void sg_scan_lift(const int32_t exponents[SG_TILE_ROWS],
                            sg_scan_state_t<KEY_TILES>* state) {
  bool any = false;
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    any |= exponents[j] - state->exponent[j] > SG_SCAN_AHEAD_MAX;
  }
  if (!sg_wave_any(any)) return;
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    const int32_t ahead = exponents[j] - state->exponent[j];
    int32_t shift = ahead > SG_SCAN_AHEAD_MAX ? SG_SCAN_TARGET - ahead : 0;
    shift = shift > -127 ? shift : -127;
    sg_scan_shift(j, shift, state);
  }
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_STATE_H_
