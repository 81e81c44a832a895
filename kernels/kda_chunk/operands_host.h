// SPDX-License-Identifier: Apache-2.0
//
// The operands of one block of tokens on the host: what its k and q read the
// state with, what its k writes to it, and what scores.h multiplies.
//
// With G the running sum of base-2 log decays, the block's first token
// included, E(x) = 2^x, L the last row and k^, q^ the normalised rows (q^
// scaled as well), a block wants
//
//   k_read = k^ E(G)    q_read = q^ E(G)    k_write = k^ E(G[L] - G)
//
// and, for its scores, k_read and q_read against k_grown = k^ E(-G). A row is
// *gentle* while no channel has decayed below 2^GENTLE_FLOOR since the block
// began: then E(G) and E(-G) are numbers like any other, one exponential gives
// both, and k_write is k_grown E(G[L]). That holds for whole blocks under a
// lower bound of -5. The rows after it are *steep*; scores_host.h takes them in
// pairs and k_write sums decays from the last row back.
//
// Whether a row is gentle depends on no later one, and so do its operands:
// later tokens cannot change the bits of earlier outputs.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_OPERANDS_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_OPERANDS_HOST_H_

#include "kernels/common/host_transpose.h"
#include "kernels/common/kda_rows_host.h"
#include "kernels/kda_chunk/scratch_host.h"

#define SG_KDA_GENTLE_FLOOR -120.0f

// Reads are this much larger and k_grown as much smaller than said above, which
// centres both in the range of fp32: products with the state and with small
// elements of k stay clear of subnormal numbers, which processors handle
// slowly. A power of two, so that no bit of a result depends on it.
#define SG_KDA_READ_SCALE 0x1p60f

// The rows of one block and the heads that they are of.
typedef struct sg_kda_block_t {
  const sg_kda_params_t* params;
  sg_kda_scan_scratch_t* scratch;
  sg_kda_gate_t gate;
  int32_t value_head;
  int32_t key_dim;
  int64_t first_token;
  int32_t count;
  // The first of them that are gentle.
  int32_t gentle_count;
} sg_kda_block_t;

// q, k and the factors of their norms, and betas.
static inline void sg_kda_block_load_keys(const sg_kda_block_t* block) {
  const sg_kda_params_t* params = block->params;
  sg_kda_scan_scratch_t* scratch = block->scratch;
  enum { B = SG_KDA_BLOCK_TOKENS };
  float q_lanes[B][16], k_lanes[B][16];
  float q_squares[B], k_squares[B];
  float raw_beta[B] = {0};
  for (int32_t r = 0; r < block->count; ++r) {
    const int64_t token = block->first_token + r;
    float* q = scratch->q_read[r];
    float* k = scratch->k_write[r];
    sg_kda_load_key(params, params->q, params->q_row_stride, token,
                    block->value_head, q);
    sg_kda_load_key(params, params->k, params->k_row_stride, token,
                    block->value_head, k);
    sg_dot_lanes(q, q, block->key_dim, q_lanes[r]);
    sg_dot_lanes(k, k, block->key_dim, k_lanes[r]);
    raw_beta[r] = sg_kda_load_beta(params, token, block->value_head);
  }
  for (int32_t r = block->count; r < B; ++r) {
    memset(q_lanes[r], 0, sizeof(q_lanes[r]));
    memset(k_lanes[r], 0, sizeof(k_lanes[r]));
  }
  sg_sum_rows((const float(*)[16])q_lanes, q_squares);
  sg_sum_rows((const float(*)[16])k_lanes, k_squares);
  for (int32_t r = 0; r < B; ++r) {
    scratch->q_factor[r] =
        sg_kda_norm_factor(params, q_squares[r]) * params->scale;
    scratch->k_factor[r] = sg_kda_norm_factor(params, k_squares[r]);
    scratch->beta[r] = sg_kda_beta(params, raw_beta[r]);
  }
}

// Whether all of |sum| are above the floor.
static inline bool sg_kda_is_gentle(const float* restrict sum, int32_t count) {
  int32_t below = 0;
  count &= ~15;
  for (int32_t c = 0; c < count; ++c) below |= sum[c] < SG_KDA_GENTLE_FLOOR;
  return below == 0;
}

static inline void sg_kda_add_row(float* restrict sum,
                                  const float* restrict row, int32_t count) {
  count &= ~15;
  for (int32_t c = 0; c < count; ++c) sum[c] += row[c];
}

// Decays. Leaves their sums over the whole block and finds its gentle rows;
// log decays are at most 0, so that none is gentle after one that is not.
static inline void sg_kda_block_load_decays(sg_kda_block_t* block) {
  sg_kda_scan_scratch_t* scratch = block->scratch;
  const int32_t count = block->key_dim;
  const size_t bytes = sizeof(float) * (size_t)count;
  memset(scratch->sum, 0, bytes);
  for (int32_t r = 0; r < block->count; ++r) {
    sg_kda_load_gate(block->params, &block->gate, block->first_token + r,
                     scratch->decays[r]);
    sg_kda_add_row(scratch->sum, scratch->decays[r], count);
  }
  block->gentle_count = block->count;
  if (sg_kda_is_gentle(scratch->sum, count)) return;
  float sum[SG_KDA_DIM_MAX];
  memset(sum, 0, bytes);
  for (int32_t r = 0; r < block->count; ++r) {
    sg_kda_add_row(sum, scratch->decays[r], count);
    if (!sg_kda_is_gentle(sum, count)) {
      block->gentle_count = r;
      return;
    }
  }
}

// Reads and k_grown of a gentle row, whose decay is added to |sum| first.
static inline void sg_kda_scale_gentle(sg_kda_scan_scratch_t* scratch,
                                       int32_t r, int32_t count,
                                       float* restrict sum) {
  const float* restrict decay = scratch->decays[r];
  const float* restrict k = scratch->k_write[r];
  float* restrict q_read = scratch->q_read[r];
  float* restrict k_read = scratch->k_read[r];
  float* restrict k_grown = scratch->k_grown[r];
  const float q_up = scratch->q_factor[r] * SG_KDA_READ_SCALE;
  const float k_up = scratch->k_factor[r] * SG_KDA_READ_SCALE;
  const float k_down = scratch->k_factor[r] * (1.0f / SG_KDA_READ_SCALE);
  count &= ~15;
  for (int32_t c = 0; c < count; ++c) {
    float shrunk, grown;
    sum[c] += decay[c];
    sg_exp2_both(sum[c], &shrunk, &grown);
    q_read[c] = q_read[c] * q_up * shrunk;
    k_read[c] = k[c] * k_up * shrunk;
    k_grown[c] = k[c] * k_down * grown;
  }
}

// Reads of a steep row, whose decay is added to |sum| first.
static inline void sg_kda_scale_steep(sg_kda_scan_scratch_t* scratch, int32_t r,
                                      int32_t count, float* restrict sum) {
  const float* restrict decay = scratch->decays[r];
  const float* restrict k = scratch->k_write[r];
  float* restrict q_read = scratch->q_read[r];
  float* restrict k_read = scratch->k_read[r];
  const float q_up = scratch->q_factor[r] * SG_KDA_READ_SCALE;
  const float k_up = scratch->k_factor[r] * SG_KDA_READ_SCALE;
  count &= ~15;
  for (int32_t c = 0; c < count; ++c) {
    sum[c] += decay[c];
    const float shrunk = sg_decay(sum[c]);
    q_read[c] = q_read[c] * q_up * shrunk;
    k_read[c] = k[c] * k_up * shrunk;
  }
}

// k_write of a block of gentle rows only.
static inline void sg_kda_write_gentle(const sg_kda_block_t* block) {
  sg_kda_scan_scratch_t* scratch = block->scratch;
  const int32_t count = block->key_dim & ~15;
  float factor[SG_KDA_DIM_MAX];
  for (int32_t c = 0; c < count; ++c) {
    factor[c] = sg_exp2_in_range(scratch->sum[c]) * SG_KDA_READ_SCALE;
  }
  for (int32_t r = 0; r < block->count; ++r) {
    const float* restrict k_grown = scratch->k_grown[r];
    float* restrict k_write = scratch->k_write[r];
    for (int32_t c = 0; c < count; ++c) k_write[c] = k_grown[c] * factor[c];
  }
}

// k_write of any block.
static inline void sg_kda_write_steep(const sg_kda_block_t* block) {
  sg_kda_scan_scratch_t* scratch = block->scratch;
  const int32_t count = block->key_dim & ~15;
  float sum[SG_KDA_DIM_MAX];
  memset(sum, 0, sizeof(float) * (size_t)count);
  for (int32_t r = block->count - 1; r >= 0; --r) {
    const float* restrict decay = scratch->decays[r];
    float* restrict k_write = scratch->k_write[r];
    const float factor = scratch->k_factor[r];
    for (int32_t c = 0; c < count; ++c) {
      k_write[c] *= factor * sg_decay(sum[c]);
      sum[c] += decay[c];
    }
  }
}

// What is left to do once the scores, which want k and the steep rows of q as
// they were loaded, are there.
static inline void sg_kda_block_finish(const sg_kda_block_t* block,
                                       float* restrict sum) {
  sg_kda_scan_scratch_t* scratch = block->scratch;
  const int32_t count = block->key_dim & ~15;
  for (int32_t r = block->gentle_count; r < block->count; ++r) {
    sg_kda_scale_steep(scratch, r, count, sum);
  }
  if (block->gentle_count == block->count) {
    sg_kda_write_gentle(block);
  } else {
    sg_kda_write_steep(block);
  }
  for (int32_t c = 0; c < count; ++c) {
    scratch->block_decay[c] = sg_decay(scratch->sum[c]);
  }
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_OPERANDS_HOST_H_
