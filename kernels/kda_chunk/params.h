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
//   scan       grid sequence capacity x value_heads x column splits; block
//              (sequence, value head, SG_KDA_CHUNK_SPLIT_COLUMNS columns of v)
//   host       1 thread a block; scratch as in scratch_host.h
//
// On the host one kernel does it all and there is no workspace. A quarter of
// its time goes into what does not depend on the state, which a kernel before
// it could make for all chunks at once. Two such kernels were measured: their
// scan alone took as long as this one does in all, since what it read was more
// than q, k and the gates that it is made from. At best, with fewer heads than
// processors and reads that cost nothing, they could win that quarter.

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
  int32_t chunk_size;
  int32_t split_count;
} sg_kda_chunk_params_t;

_Static_assert(sizeof(sg_kda_chunk_params_t) == 240, "no padding");

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_PARAMS_H_
