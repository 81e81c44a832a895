// SPDX-License-Identifier: Apache-2.0
//
// The part of kda_chunk_prepare that the rows of a block have with each other,
// on a GPU: scores and the inverse. Device code.
//
// The scores
//
//   A[r, s] = beta_r sum_c k^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s < r
//   Q[r, s] =        sum_c q^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s <= r
//
// become matrix products by splitting the exponential into a factor of row r
// and one of row s. The block is cut into segments of rows: a segment ends
// before the row at which some channel has decayed by more than 2^SEGMENT_FLOOR
// since its first row a. With P the running sum from a, rows r of the segment
// have the factor E(P[r]) 2^HALF, and rows s the factor E(-P[s]) 2^-HALF within
// the segment, E(G[a] - G[s]) 2^-HALF before it: all within 2^60 of 1, so that
// nothing overflows and no valid factor is subnormal. Lower bounds of -5 make
// one segment; sixteen are the worst case, after hard resets. Segments depend
// on earlier rows only, and so does each score: later tokens cannot change the
// bits of earlier outputs.
//
// Scores and the inverse are fp32 throughout, whatever the activations are:
// near-equal keys with beta near 1 need it.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_PREPARE_SCORES_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_PREPARE_SCORES_H_

#include "kernels/common/device_tile.h"
#include "kernels/kda_chunk/panel.h"

#define SEGMENT_FLOOR -120.0f
#define GROWTH 0x1p60f
#define SHRINK 0x1p-60f

enum { ROWS = SG_TILE };

template <int32_t KEY_TILES>
static constexpr int32_t THREADS = KEY_TILES* SG_TILE;

template <typename element_t>
static constexpr float FACTOR = SG_KDA_PANEL_FACTOR((int32_t)sizeof(element_t));

template <int32_t KEY_TILES, typename element_t>
struct shared_t {
  static constexpr int32_t WAVES = THREADS<KEY_TILES> / SG_WAVE;
  // Operands of the scores, packed tiles [left k, left q, right][KEY_TILES];
  // then the panel.
  unsigned char region[SG_KDA_PREPARE_REGION_BYTES(KEY_TILES,
                                                   (int32_t)sizeof(element_t))];
  float products[WAVES][2][SG_TILE_ELEMENTS];
  float scores[2][ROWS][ROWS];  // A, then Q
  float squares[WAVES][2 * ROWS];
  float factors[2 * ROWS];  // of k, then q
  float beta[ROWS];
  uint64_t words[8];
} __attribute__((aligned(16)));

// One channel's rows.
typedef struct channel_t {
  float k[ROWS];
  float q[ROWS];
  float decay[ROWS];  // base-2 logarithms
} channel_t;

// Whether all rows make one segment. |words| as find_segment takes them, but
// not the same.
SG_DEVICE bool is_one_segment(const channel_t& channel, uint64_t* words) {
  float sum = 0.0f;
#pragma unroll
  for (int32_t r = 1; r < ROWS; ++r) sum += channel.decay[r];
  return !sg_block_any(sum < SEGMENT_FLOOR, words);
}

// The row after the last of the segment that starts at row |first|.
SG_DEVICE int32_t find_segment(const channel_t& channel, int32_t first,
                               int32_t count, uint64_t* words) {
  int32_t end = count;
  float sum = 0.0f;
#pragma unroll
  for (int32_t r = 1; r < ROWS; ++r) {
    if (r <= first || r >= end) continue;
    sum += channel.decay[r];
    if (sum < SEGMENT_FLOOR) end = r;
  }
  return (int32_t)sg_block_min((uint64_t)end, words);
}

// The channel's column of the operands of a segment's scores.
template <int32_t KEY_TILES>
SG_DEVICE void put_operands(const channel_t& channel, int32_t first,
                            int32_t end, float* operands) {
  constexpr int32_t SIZE = KEY_TILES * SG_TILE_ELEMENTS;
  const int32_t c = sg_thread() % SG_TILE;
  float* tile = operands + sg_thread() / SG_TILE * SG_TILE_ELEMENTS;
  float sum = 0.0f;
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    const bool inside = r >= first && r < end;
    if (r > first && inside) sum += channel.decay[r];
    const float decay = inside ? sg_exp2(sum) * GROWTH : 0.0f;
    const int32_t at = sg_tile_index(r, c);
    tile[at] = channel.k[r] * decay;
    tile[SIZE + at] = channel.q[r] * decay;
    tile[2 * SIZE + at] =
        inside ? channel.k[r] * (sg_exp2(-sum) * SHRINK) : 0.0f;
  }
  sum = 0.0f;
#pragma unroll
  for (int32_t r = ROWS - 2; r >= 0; --r) {
    if (r >= first) continue;
    sum += channel.decay[r + 1];
    tile[2 * SIZE + sg_tile_index(r, c)] =
        channel.k[r] * (sg_exp2(sum) * SHRINK);
  }
}

// Each wave multiplies some of the key tiles.
template <int32_t KEY_TILES, int32_t WAVES>
SG_DEVICE void multiply_scores(const float* operands,
                               float products[2][SG_TILE_ELEMENTS]) {
  constexpr int32_t SIZE = KEY_TILES * SG_TILE_ELEMENTS;
  sg_tile_t kk = sg_tile_zero(), qk = sg_tile_zero();
#pragma unroll
  for (int32_t i = 0; i < KEY_TILES / WAVES; ++i) {
    const float* tile = operands + (i * WAVES + sg_wave()) * SG_TILE_ELEMENTS;
    const sg_right_t<float> right = sg_right_load(tile + 2 * SIZE);
    sg_tile_multiply(&kk, sg_left_load(tile), right);
    sg_tile_multiply(&qk, sg_left_load(tile + SIZE), right);
  }
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    products[0][i * SG_WAVE + sg_lane()] = kk.value[i];
    products[1][i * SG_WAVE + sg_lane()] = qk.value[i];
  }
}

// Adds up the waves' products for rows |first| to |end| - 1. What pairs with a
// later row is undefined in the product, infinite at times, and replaced by 0.
template <typename shared_type>
SG_DEVICE void combine_scores(shared_type* shared, int32_t first, int32_t end) {
#pragma unroll
  for (int32_t base = 0; base < SG_TILE_VALUES; base += shared_type::WAVES) {
    const int32_t i = base + sg_wave();
    const int32_t r = sg_tile_row(i);
    const int32_t s = sg_tile_column(i);
    if (i >= SG_TILE_VALUES || r < first || r >= end) continue;
    float kk = 0.0f, qk = 0.0f;
    for (int32_t wave = 0; wave < shared_type::WAVES; ++wave) {
      kk += shared->products[wave][0][i * SG_WAVE + sg_lane()];
      qk += shared->products[wave][1][i * SG_WAVE + sg_lane()];
    }
    shared->scores[0][r][s] = s < r ? shared->beta[r] * kk : 0.0f;
    shared->scores[1][r][s] = s <= r ? qk : 0.0f;
  }
}

template <int32_t KEY_TILES, typename shared_type>
SG_DEVICE void make_scores(const channel_t& channel, int32_t count,
                           shared_type* shared) {
  for (int32_t i = sg_thread(); i < 2 * ROWS * ROWS; i += THREADS<KEY_TILES>) {
    (&shared->scores[0][0][0])[i] = 0.0f;
  }
  float* operands = (float*)shared->region;
  // The sums of squares have been read, other than the words at hand.
  const bool whole = is_one_segment(channel, (uint64_t*)shared->squares);
  for (int32_t first = 0; first < count;) {
    int32_t end = count;
    if (whole) {
      // With constants nothing is left of the conditions. Rows beyond |count|
      // are zero.
      put_operands<KEY_TILES>(channel, 0, ROWS, operands);
    } else {
      end = find_segment(channel, first, count, shared->words);
      put_operands<KEY_TILES>(channel, first, end, operands);
    }
    sg_block_barrier();
    multiply_scores<KEY_TILES, shared_type::WAVES>(operands,
                                                   shared->products[sg_wave()]);
    sg_block_barrier();
    combine_scores(shared, first, end);
    first = end;
  }
  sg_block_barrier();
}

// A thread's column of (I + A)^-1 diag(beta), by forward substitution: what is
// known of the column goes into all rows below at once.
template <typename element_t, typename shared_type>
SG_DEVICE void put_solve(const shared_type* shared, element_t* solve) {
  const int32_t column = sg_thread();
  const float beta = shared->beta[column];
  float x[ROWS];
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) x[r] = r == column ? 1.0f : 0.0f;
#pragma unroll
  for (int32_t s = 0; s < ROWS; ++s) {
#pragma unroll
    for (int32_t r = s + 1; r < ROWS; ++r) {
      x[r] -= shared->scores[0][r][s] * x[s];
    }
  }
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    // What is zero stays so with a beta that is not a number.
    sg_element_set(&solve[sg_tile_index(r, column)],
                   r < column ? 0.0f : x[r] * beta);
  }
}

// Q.
template <int32_t KEY_TILES, typename element_t, typename shared_type>
SG_DEVICE void put_scores(const shared_type* shared, element_t* scores) {
  for (int32_t i = sg_thread(); i < SG_TILE_ELEMENTS; i += THREADS<KEY_TILES>) {
    sg_element_set(&scores[sg_tile_index(i / ROWS, i % ROWS)],
                   shared->scores[1][i / ROWS][i % ROWS] * FACTOR<element_t>);
  }
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_PREPARE_SCORES_H_
