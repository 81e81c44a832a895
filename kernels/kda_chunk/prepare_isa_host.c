// SPDX-License-Identifier: Apache-2.0
//
// kda_chunk_prepare on the host: what a chunk contributes that does not depend
// on the state. Compiled once for each instruction set.
//
// A chunk is worked through in blocks of 16 tokens. With G the running sum of
// base-2 log decays from the block's first token, E(x) = 2^x, and k^ and q^
// the normalised rows (q^ scaled as well), the scores of a block are
//
//   A[r, s] = beta_r sum_c k^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s < r
//   Q[r, s] =        sum_c q^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s <= r
//
// (KDA_SPEC: A_kk and A_qk of arXiv 2510.26692). As a matrix product the
// exponential has to be split into a factor of row r and one of row s, neither
// of which may overflow. The block is cut into segments of rows: a segment
// ends before the row at which some channel has decayed by more than
// 2^SEGMENT_FLOOR since its first row a. With P the running sum from a, rows
// r of the segment have the factor E(P[r]) <= 1, and row s the factor
// E(-P[s]) <= 2^-SEGMENT_FLOOR within the segment, E(G[a] - G[s]) <= 1 before
// it. A lower bound of -5 or gentle gates make one segment or two; sixteen are
// the worst case, after hard resets.
//
// Where segments start depends on earlier rows only, and so does each score:
// later tokens cannot change the bits of earlier outputs.

#include "kernels/common/host_symbol.h"
#include "kernels/common/kda_rows_host.h"
#include "kernels/kda_chunk/scratch_host.h"
#include "runtime/hip/host_kernel.h"

#define SEGMENT_FLOOR -100.0f

enum {
  B = SG_KDA_BLOCK_TOKENS,
  // Vectors in one pass over the columns of the scores.
  SCORE_VECTORS = SG_VECTOR_FLOATS < B ? SG_TILE_VECTORS : 1,
};

// The rows of one block in tensors and workspace.
typedef struct block_rows_t {
  int64_t first_token;
  int32_t count;
  int32_t value_head;
  // Rows of the block that follows in the chunk.
  int32_t next_count;
  float* decays;                  // [B][key_dim]
  float (*scores)[2][B];          // [B]: A, then Q
  sg_kda_row_factors_t* factors;  // [B]
} block_rows_t;

static void prefetch_row(const sg_kda_params_t* params, int64_t token,
                         int32_t head) {
  const int32_t dtype = params->activation_dtype;
  sg_row_prefetch(dtype, params->q,
                  sg_kda_key_offset(params, params->q_row_stride, token, head),
                  params->key_dim);
  sg_row_prefetch(dtype, params->k,
                  sg_kda_key_offset(params, params->k_row_stride, token, head),
                  params->key_dim);
  sg_row_prefetch(sg_kda_gate_dtype(params), params->raw_g,
                  sg_kda_gate_offset(params, token, head), params->key_dim);
}

// Loads the rows of a block and, while at it, asks for those |next_count| of
// the block after it.
static void load_rows(const sg_kda_params_t* params, const block_rows_t* rows,
                      sg_kda_prepare_scratch_t* scratch) {
  const int32_t count = params->key_dim & ~15;
  for (int32_t r = 0; r < rows->count; ++r) {
    const int64_t token = rows->first_token + r;
    float* restrict q = scratch->q[r];
    float* restrict k = scratch->k[r];
    if (r < rows->next_count) prefetch_row(params, token + B, rows->value_head);
    sg_kda_load_key(params, params->q, params->q_row_stride, token,
                    rows->value_head, q);
    sg_kda_load_key(params, params->k, params->k_row_stride, token,
                    rows->value_head, k);
    sg_kda_row_factors_t* factors = &rows->factors[r];
    factors->beta = sg_kda_beta(params, token, rows->value_head);
    factors->k = sg_kda_norm_factor(params, k);
    factors->q = sg_kda_norm_factor(params, q) * params->scale;
    factors->unused = 0.0f;
    for (int32_t c = 0; c < count; ++c) {
      q[c] *= factors->q;
      k[c] *= factors->k;
    }
    sg_kda_load_gate(params, token, rows->value_head, scratch->decays[r]);
    memcpy(rows->decays + (int64_t)r * count, scratch->decays[r],
           sizeof(float) * (size_t)count);
  }
}

// Adds row |r| of the decays to the sums of the row before it. Returns whether
// the segment still holds the row.
static bool extend_segment(sg_kda_prepare_scratch_t* scratch, int32_t r,
                           int32_t count) {
  const float* restrict decay = scratch->decays[r];
  const float* restrict before = scratch->sums[r - 1];
  float* restrict sum = scratch->sums[r];
  int32_t below = 0;
  count &= ~15;
  for (int32_t c = 0; c < count; ++c) {
    sum[c] = before[c] + decay[c];
    below |= sum[c] < SEGMENT_FLOOR;
  }
  return below == 0;
}

// Finds the segment that starts at row |first| and leaves its sums. Returns
// the row after its last.
static int32_t find_segment(sg_kda_prepare_scratch_t* scratch, int32_t first,
                            int32_t row_count, int32_t count) {
  memset(scratch->sums[first], 0, sizeof(float) * (size_t)count);
  int32_t end = first + 1;
  while (end < row_count && extend_segment(scratch, end, count)) ++end;
  return end;
}

// Rows |first| to |end| - 1 of both operands.
static void scale_segment(sg_kda_prepare_scratch_t* scratch, int32_t first,
                          int32_t end, int32_t count) {
  count &= ~15;
  for (int32_t r = first; r < end; ++r) {
    const float* restrict sum = scratch->sums[r];
    const float* restrict q = scratch->q[r];
    const float* restrict k = scratch->k[r];
    float* restrict decayed_q = scratch->decayed_q[r];
    float* restrict decayed_k = scratch->decayed_k[r];
    float* restrict grown_k = scratch->grown_k[r];
    for (int32_t c = 0; c < count; ++c) {
      const float decay = sg_exp2_in_range(sum[c]);
      decayed_q[c] = q[c] * decay;
      decayed_k[c] = k[c] * decay;
      grown_k[c] = k[c] * sg_exp2_in_range(-sum[c]);
    }
  }
}

// Rows before |first| of the right operand: decays from them to row |first|.
static void scale_earlier(sg_kda_prepare_scratch_t* scratch, int32_t first,
                          int32_t count) {
  float sums[SG_KDA_DIM_MAX] = {0};
  count &= ~15;
  for (int32_t s = first - 1; s >= 0; --s) {
    const float* restrict decay = scratch->decays[s + 1];
    const float* restrict k = scratch->k[s];
    float* restrict grown_k = scratch->grown_k[s];
    for (int32_t c = 0; c < count; ++c) {
      sums[c] += decay[c];
      grown_k[c] = k[c] * sg_decay(sums[c]);
    }
  }
}

// product[i][s] = sum over c of left[i][c] * grown_k[s][c], for the rows of one
// tile.
static void multiply_scores(const float (*left)[SG_KDA_ROW_FLOATS],
                            const float (*columns)[B], int32_t count,
                            float product[SG_TILE_ROWS][B]) {
  for (int32_t s = 0; s < B; s += SCORE_VECTORS * SG_VECTOR_FLOATS) {
    sg_vector_t sum[SG_TILE_ROWS][SG_TILE_VECTORS] = {{{0}}};
    sg_tile_multiply(sum, SCORE_VECTORS, count, &left[0][0], SG_KDA_ROW_FLOATS,
                     1, &columns[0][s], B);
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
      for (int32_t j = 0; j < SCORE_VECTORS; ++j) {
        sg_vector_store(&product[i][s + j * SG_VECTOR_FLOATS], sum[i][j]);
      }
    }
  }
}

// The first |count| of a row of scores, times |factor|; the others, which may
// be anything, become 0.
static void store_scores(const float* restrict product, float factor,
                         int32_t count, float* restrict scores) {
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

// Scores of rows |first| to |end| - 1. Columns of later rows are undefined in
// the product and are replaced by 0.
static void score_segment(const block_rows_t* rows,
                          sg_kda_prepare_scratch_t* scratch, int32_t first,
                          int32_t end, int32_t count) {
  for (int32_t c = 0; c < count; c += B) {
    sg_transpose(&scratch->grown_k[0][c], SG_KDA_ROW_FLOATS,
                 &scratch->grown_k_columns[c][0], B, B, B);
  }
  const int32_t first_tile = first / SG_TILE_ROWS * SG_TILE_ROWS;
  for (int32_t tile = first_tile; tile < end; tile += SG_TILE_ROWS) {
    float kk[SG_TILE_ROWS][B], qk[SG_TILE_ROWS][B];
    multiply_scores((const float(*)[SG_KDA_ROW_FLOATS])scratch->decayed_k[tile],
                    (const float(*)[B])scratch->grown_k_columns, count, kk);
    multiply_scores((const float(*)[SG_KDA_ROW_FLOATS])scratch->decayed_q[tile],
                    (const float(*)[B])scratch->grown_k_columns, count, qk);
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
      const int32_t r = tile + i;
      if (r < first || r >= end) continue;
      store_scores(kk[i], rows->factors[r].beta, r, rows->scores[r][0]);
      store_scores(qk[i], 1.0f, r + 1, rows->scores[r][1]);
    }
  }
}

static void prepare_block(const sg_kda_params_t* params,
                          const block_rows_t* rows,
                          sg_kda_prepare_scratch_t* scratch) {
  const int32_t count = params->key_dim;
  load_rows(params, rows, scratch);
  for (int32_t first = 0; first < rows->count;) {
    const int32_t end = find_segment(scratch, first, rows->count, count);
    scale_segment(scratch, first, end, count);
    scale_earlier(scratch, first, count);
    score_segment(rows, scratch, first, end, count);
    first = end;
  }
}

void SG_HOST_SYMBOL(sg__kda_chunk_prepare_run)(const void* params_pointer,
                                               const sg_host_block_t* block);

void SG_HOST_SYMBOL(sg__kda_chunk_prepare_run)(const void* params_pointer,
                                               const sg_host_block_t* block) {
  const sg_kda_chunk_params_t* params = params_pointer;
  const sg_kda_params_t* kda = &params->kda;
  const int32_t value_heads = kda->value_heads;
  const int64_t row = block->index / (uint32_t)value_heads;
  const int32_t value_head = (int32_t)(block->index % (uint32_t)value_heads);
  const sg_batch_counts_t* counts = kda->counts;
  if (counts->error_code != SG_STEP_ERROR_NONE || row >= counts->chunk_count) {
    return;
  }
  const int32_t sequence = params->chunk_indices[2 * row];
  if (!sg_kda_has_slot(kda, sequence)) return;

  const int64_t size = params->chunk_size;
  const int64_t first_token = kda->query_start_loc[sequence] +
                              params->chunk_indices[2 * row + 1] * size;
  const int64_t end_token = kda->query_start_loc[sequence + 1];
  const int64_t base = (row * value_heads + value_head) * size;
  const int64_t all = end_token - first_token;
  const int64_t count = all < size ? all : size;
  for (int64_t t = 0; t < count && t < B; ++t) {
    prefetch_row(kda, first_token + t, value_head);
  }
  for (int64_t t = 0; t < count; t += B) {
    const block_rows_t rows = {
        .first_token = first_token + t,
        .count = sg_kda_block_rows(t, count),
        .value_head = value_head,
        .next_count = sg_kda_block_rows(t + B, count),
        .decays = params->decays + (base + t) * kda->key_dim,
        .scores = (float(*)[2][B])(params->scores + (base + t) * 2 * B),
        .factors = (sg_kda_row_factors_t*)(void*)params->factors + base + t,
    };
    prepare_block(kda, &rows, block->shared);
  }
}
