// SPDX-License-Identifier: Apache-2.0
//
// Scratch of one block of the host kernels, in what the launch asks for as
// shared memory. Contents are undefined at the start. And how both kernels cut
// tokens into blocks.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SCRATCH_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SCRATCH_HOST_H_

#include "kernels/kda_chunk/params.h"

enum {
  // Distance between rows: a constant, so that addresses of a tile need no
  // multiplication, and not a power of two, so that rows share no cache set.
  SG_KDA_ROW_FLOATS = SG_KDA_DIM_MAX + 16,
};

typedef float sg_kda_key_rows_t[SG_KDA_BLOCK_TOKENS][SG_KDA_ROW_FLOATS];

typedef struct sg_kda_prepare_scratch_t {
  sg_kda_key_rows_t q;
  sg_kda_key_rows_t k;
  sg_kda_key_rows_t decays;
  // Running sums of the decays from the first row of a segment.
  sg_kda_key_rows_t sums;
  // Left operands of the scores.
  sg_kda_key_rows_t decayed_q;
  sg_kda_key_rows_t decayed_k;
  // Their right operand, by rows and transposed.
  sg_kda_key_rows_t grown_k;
  float grown_k_columns[SG_KDA_DIM_MAX][SG_KDA_BLOCK_TOKENS];
} sg_kda_prepare_scratch_t;

typedef struct sg_kda_scan_scratch_t {
  // The state, [panels of columns][key_dim][columns of a panel].
  float state[SG_KDA_DIM_MAX * SG_KDA_CHUNK_SPLIT_COLUMNS];
  // Factors with which k reads, q reads and k writes the state.
  sg_kda_key_rows_t k_read;
  sg_kda_key_rows_t q_read;
  sg_kda_key_rows_t k_write;
  float block_decay[SG_KDA_DIM_MAX];
  float sum[SG_KDA_DIM_MAX];
  // v, then o, of the columns of this block.
  float values[SG_KDA_BLOCK_TOKENS][SG_KDA_CHUNK_SPLIT_COLUMNS];
  float transposed[SG_KDA_BLOCK_TOKENS][SG_KDA_DIM_MAX];
} sg_kda_scan_scratch_t;

// Rows of the block that starts at |first| of |count| tokens; 0 beyond them.
static inline int32_t sg_kda_block_rows(int64_t first, int64_t count) {
  const int64_t left = count - first;
  if (left <= 0) return 0;
  return (int32_t)(left < SG_KDA_BLOCK_TOKENS ? left : SG_KDA_BLOCK_TOKENS);
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SCRATCH_HOST_H_
