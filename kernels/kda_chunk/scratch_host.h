// SPDX-License-Identifier: Apache-2.0
//
// Scratch of one block of the host kernel, in what the launch asks for as
// shared memory. Contents are undefined at the start.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SCRATCH_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SCRATCH_HOST_H_

#include <stddef.h>

#include "kernels/kda_chunk/params.h"

enum {
  // Distance between rows: a constant, so that addresses of a tile need no
  // multiplication, and not a power of two, so that rows share no cache set.
  SG_KDA_ROW_FLOATS = SG_KDA_DIM_MAX + 16,
};

typedef float sg_kda_key_rows_t[SG_KDA_BLOCK_TOKENS][SG_KDA_ROW_FLOATS];

// Cache lines to be asked for, one after another.
typedef struct sg_kda_line_queue_t {
  // Rows of q, k, raw_g, v and o, of at most 4 bytes an element.
  const char* lines[SG_KDA_BLOCK_TOKENS * 5 * (SG_KDA_DIM_MAX * 4 / 64 + 1)];
  int32_t count;
  int32_t next;
} sg_kda_line_queue_t;

// A tile of AMX's: 16 rows of 16 pairs of bf16.
typedef uint32_t sg_amx_tile_t[16][16];

enum { SG_AMX_DEPTHS = SG_KDA_DIM_MAX / 32 };

// Operands in tiles, [2] a high part and a low one (advance_amx_host.h).
typedef struct sg_kda_amx_scratch_t {
  sg_amx_tile_t state[SG_KDA_CHUNK_SPLIT_COLUMNS / 16][SG_AMX_DEPTHS][2];
  sg_amx_tile_t k_read[SG_AMX_DEPTHS][2];
  sg_amx_tile_t q_read[SG_AMX_DEPTHS][2];
} sg_kda_amx_scratch_t;

// Rows, here, are the tokens of one block. Arrays are multiples of 64 bytes,
// so that vectors of them are aligned.
typedef struct sg_kda_scan_scratch_t {
  // The state, [panels of columns][key_dim][columns of a panel].
  float state[SG_KDA_DIM_MAX * SG_KDA_CHUNK_SPLIT_COLUMNS];
  // q as loaded, then what q reads the state with.
  sg_kda_key_rows_t q_read;
  // What k reads the state with; before the first block and after the last one
  // rows of a state that is not fp32.
  sg_kda_key_rows_t k_read;
  // k as loaded, then what k writes to the state.
  sg_kda_key_rows_t k_write;
  // k grown by what has decayed since the block's start: the right operand of
  // the scores, by rows and by columns.
  sg_kda_key_rows_t k_grown;
  float k_columns[SG_KDA_DIM_MAX][SG_KDA_BLOCK_TOKENS];
  // Base-2 log decays of each row, and their sums.
  sg_kda_key_rows_t decays;
  float sum[SG_KDA_DIM_MAX];
  // By how much a whole block decays the state.
  float block_decay[SG_KDA_DIM_MAX];
  // A, then Q.
  float scores[SG_KDA_BLOCK_TOKENS][2][SG_KDA_BLOCK_TOKENS];
  // What k and q are multiplied by to be normalised (and q scaled).
  float k_factor[SG_KDA_BLOCK_TOKENS];
  float q_factor[SG_KDA_BLOCK_TOKENS];
  float beta[SG_KDA_BLOCK_TOKENS];
  // v, then o, of the columns of this block.
  float values[SG_KDA_BLOCK_TOKENS][SG_KDA_CHUNK_SPLIT_COLUMNS];
  // Of one panel: what k read, then the change of the values; what q read, then
  // the output. The width is that of the widest panel.
  float delta[SG_KDA_BLOCK_TOKENS * SG_KDA_CHUNK_SPLIT_COLUMNS];
  float out[SG_KDA_BLOCK_TOKENS * SG_KDA_CHUNK_SPLIT_COLUMNS];
  // For AMX alone.
  sg_kda_amx_scratch_t amx;
  // Those of the block after this one.
  sg_kda_line_queue_t queue;
} sg_kda_scan_scratch_t;
_Static_assert(offsetof(sg_kda_scan_scratch_t, queue) % 64 == 0,
               "vectors and rows of tiles do not cross cache lines");

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SCRATCH_HOST_H_
