// SPDX-License-Identifier: Apache-2.0
//
// The scores of one block of tokens on the host, in the terms of
// operands_host.h (A_kk and A_qk of arXiv 2510.26692):
//
//   A[r, s] = beta_r sum_c k^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s < r
//   Q[r, s] =        sum_c q^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s <= r
//
// For gentle rows the exponential is split into a factor of row r and one of
// row s, and the scores are a matrix product. Steep rows carry the decays of
// all rows s before them along, times one more row's each time, and take
// products one by one.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SCORES_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SCORES_HOST_H_

#include "kernels/kda_chunk/operands_host.h"

// kk[i][s] = sum over c of k_read[i][c] * k_grown[s][c], and qk likewise, for
// the rows of one tile. Both at once: a tile as narrow as this leaves too few
// sums in flight.
static inline void sg_kda_multiply_scores(
    const float* restrict k_read, const float* restrict q_read,
    const float (*restrict columns)[SG_KDA_BLOCK_TOKENS], int32_t count,
    float kk[SG_TILE_ROWS][SG_KDA_BLOCK_TOKENS],
    float qk[SG_TILE_ROWS][SG_KDA_BLOCK_TOKENS]) {
  for (int32_t s = 0; s < SG_KDA_BLOCK_TOKENS; s += SG_VECTOR_FLOATS) {
    sg_vector_t k_sum[SG_TILE_ROWS] = {0}, q_sum[SG_TILE_ROWS] = {0};
    for (int32_t c = 0; c < count; ++c) {
      const sg_vector_t column = sg_vector_load(&columns[c][s]);
#pragma GCC unroll 8
      for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
        k_sum[i] += k_read[i * SG_KDA_ROW_FLOATS + c] * column;
        q_sum[i] += q_read[i * SG_KDA_ROW_FLOATS + c] * column;
      }
    }
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
      sg_vector_store(&kk[i][s], k_sum[i]);
      sg_vector_store(&qk[i][s], q_sum[i]);
    }
  }
}

// The first |count| of a row of scores, times |factor|; the others, which may
// be anything, become 0.
static inline void sg_kda_store_scores(const float* restrict product,
                                       float factor, int32_t count,
                                       float* restrict scores) {
  enum { B = SG_KDA_BLOCK_TOKENS };
  static const uint32_t keep[2 * B] = {
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
  };
  const uint32_t* restrict mask = keep + B - count;
  for (int32_t s = 0; s < B; ++s) {
    scores[s] =
        sg_float_from_bits(sg_float_bits(factor * product[s]) & mask[s]);
  }
}

// Scores of the gentle rows, from their reads and k_grown.
static inline void sg_kda_score_gentle(const sg_kda_block_t* block) {
  enum { B = SG_KDA_BLOCK_TOKENS };
  sg_kda_scan_scratch_t* scratch = block->scratch;
  const int32_t end = block->gentle_count;
  const int32_t count = block->key_dim;
  sg_transpose(&scratch->k_grown[0][0], SG_KDA_ROW_FLOATS,
               &scratch->k_columns[0][0], B, B, count);
  for (int32_t tile = 0; tile < end; tile += SG_TILE_ROWS) {
    float kk[SG_TILE_ROWS][B], qk[SG_TILE_ROWS][B];
    sg_kda_multiply_scores(scratch->k_read[tile], scratch->q_read[tile],
                           (const float(*)[B])scratch->k_columns, count, kk,
                           qk);
    for (int32_t i = 0; i < SG_TILE_ROWS && tile + i < end; ++i) {
      const int32_t r = tile + i;
      sg_kda_store_scores(kk[i], scratch->beta[r], r, scratch->scores[r][0]);
      sg_kda_store_scores(qk[i], 1.0f, r + 1, scratch->scores[r][1]);
    }
  }
}

// Rows |s| below |r| of |carried| become E(G[r - 1] - G[s]).
static inline void sg_kda_start_carrying(const sg_kda_block_t* block, int32_t r,
                                         sg_kda_key_rows_t carried) {
  const int32_t count = block->key_dim & ~15;
  float sum[SG_KDA_DIM_MAX];
  memset(sum, 0, sizeof(float) * (size_t)count);
  for (int32_t s = r - 1; s >= 0; --s) {
    const float* restrict decay = block->scratch->decays[s];
    float* restrict target = carried[s];
    for (int32_t c = 0; c < count; ++c) {
      target[c] = sg_decay(sum[c]);
      sum[c] += decay[c];
    }
  }
}

// Decays |carried| by one row. What comes to less than 2^-61 is 0 from then on,
// so that products with sg_decay's least never become subnormal.
static inline void sg_kda_carry(float* restrict carried,
                                const float* restrict step, int32_t count) {
  count &= ~15;
  for (int32_t c = 0; c < count; ++c) {
    const float product = carried[c] * step[c];
    carried[c] = product < 0x1p-61f ? 0.0f : product;
  }
}

// Products of the carried |key| with |k| and |q|, as 16 partial sums.
static inline void sg_kda_score_carried(const float* restrict key,
                                        const float* restrict carried,
                                        const float* restrict k,
                                        const float* restrict q, int32_t count,
                                        float k_lanes[16], float q_lanes[16]) {
  enum { VECTORS = 16 / SG_VECTOR_FLOATS };
  sg_vector_t k_sum[VECTORS] = {0}, q_sum[VECTORS] = {0};
  for (int32_t c = 0; c < count; c += 16) {
#pragma GCC unroll 4
    for (int32_t j = 0; j < VECTORS; ++j) {
      const int32_t at = c + j * SG_VECTOR_FLOATS;
      const sg_vector_t decayed =
          sg_vector_load(key + at) * sg_vector_load(carried + at);
      k_sum[j] += decayed * sg_vector_load(k + at);
      q_sum[j] += decayed * sg_vector_load(q + at);
    }
  }
#pragma GCC unroll 4
  for (int32_t j = 0; j < VECTORS; ++j) {
    sg_vector_store(k_lanes + j * SG_VECTOR_FLOATS, k_sum[j]);
    sg_vector_store(q_lanes + j * SG_VECTOR_FLOATS, q_sum[j]);
  }
}

// Scores of the steep rows, from k and q as loaded. k_grown is done with and
// holds the decays that are carried along.
static inline void sg_kda_score_steep(const sg_kda_block_t* block) {
  enum { B = SG_KDA_BLOCK_TOKENS };
  sg_kda_scan_scratch_t* scratch = block->scratch;
  const int32_t count = block->key_dim & ~15;
  const float* factor = scratch->k_factor;
  float step[SG_KDA_DIM_MAX];
  float k_lanes[B][16] = {{0}}, q_lanes[B][16] = {{0}};
  float k_dots[B], q_dots[B];
  sg_kda_start_carrying(block, block->gentle_count, scratch->k_grown);
  for (int32_t r = block->gentle_count; r < block->count; ++r) {
    const float* k = scratch->k_write[r];
    const float* q = scratch->q_read[r];
    for (int32_t c = 0; c < count; ++c) {
      step[c] = sg_decay(scratch->decays[r][c]);
      scratch->k_grown[r][c] = 1.0f;
    }
    for (int32_t s = 0; s < r; ++s) {
      sg_kda_carry(scratch->k_grown[s], step, count);
      sg_kda_score_carried(scratch->k_write[s], scratch->k_grown[s], k, q,
                           count, k_lanes[s], q_lanes[s]);
    }
    sg_dot_lanes(q, k, count, q_lanes[r]);
    sg_sum_rows((const float(*)[16])k_lanes, k_dots);
    sg_sum_rows((const float(*)[16])q_lanes, q_dots);
    for (int32_t s = 0; s < B; ++s) {
      k_dots[s] *= factor[s];
      q_dots[s] *= factor[s];
    }
    sg_kda_store_scores(k_dots, scratch->beta[r] * factor[r], r,
                        scratch->scores[r][0]);
    sg_kda_store_scores(q_dots, scratch->q_factor[r], r + 1,
                        scratch->scores[r][1]);
  }
}

// Everything of a block that does not depend on the state.
static inline void sg_kda_block_prepare(sg_kda_block_t* block) {
  sg_kda_scan_scratch_t* scratch = block->scratch;
  float sum[SG_KDA_DIM_MAX];
  memset(sum, 0, sizeof(float) * (size_t)block->key_dim);
  sg_kda_block_load_keys(block);
  sg_kda_block_load_decays(block);
  for (int32_t r = 0; r < block->gentle_count; ++r) {
    sg_kda_scale_gentle(scratch, r, block->key_dim, sum);
  }
  sg_kda_score_gentle(block);
  if (block->gentle_count < block->count) sg_kda_score_steep(block);
  sg_kda_block_finish(block, sum);
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SCORES_HOST_H_
