// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of the kda_chunk op are launched with: the KDA recurrence
// over the sequences after the decodes, in chunks.
//
// Constraints
//   dtypes     q, k, v, o, raw_g, raw_beta: fp32, bf16 or fp16, alike (raw_g
//              and raw_beta fp32 when given); state, a_log, dt_bias fp32
//   shapes     key_dim, value_dim 32 to 256 in steps of 16; value_heads a
//              multiple of heads; chunk_size 16, 32 or 64
//   alignment  that of the elements
//   gates      given log decays are at most 0
//   prepare    grid chunk capacity x value_heads; block (chunk row, value head)
//   scan       grid sequence capacity x value_heads x column splits; block
//              (sequence, value head, SG_KDA_CHUNK_SPLIT_COLUMNS columns of v)
//   host       1 thread a block; scratch as in scratch_host.h
//
// Workspace, by rows of chunk_indices, since chunks of different sequences
// never share one, and by value head; B = 16 is the width of a token block:
//   decays [chunks, value_heads, chunk_size, key_dim]  base-2 log decays
//   scores [chunks, value_heads, chunk_size, 2, B]     see prepare_isa_host.c
//   factors [chunks, value_heads, chunk_size, 4]       see sg_kda_row_factors_t

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_PARAMS_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_PARAMS_H_

#include <stdint.h>

#include "kernels/common/kda_params.h"

enum {
  // Tokens of the blocks that chunks are worked through in, whatever the chunk
  // size, so that a result does not depend on it.
  SG_KDA_BLOCK_TOKENS = 16,
  // Columns of the state that one block of the scan carries.
  SG_KDA_CHUNK_SPLIT_COLUMNS = 128,
};

typedef struct sg_kda_chunk_params_t {
  sg_kda_params_t kda;
  const int32_t* chunk_indices;
  const int64_t* chunk_offsets;
  float* decays;
  float* scores;
  float* factors;
  int32_t chunk_size;
  int32_t split_count;
} sg_kda_chunk_params_t;

_Static_assert(sizeof(sg_kda_chunk_params_t) == 264, "no padding");

// Of one token and value head: beta, and what k and q are multiplied by, which
// is the L2 norm and for q the scale as well.
typedef struct sg_kda_row_factors_t {
  float beta;
  float k;
  float q;
  float unused;
} sg_kda_row_factors_t;

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_PARAMS_H_
