// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of the kda_chunk op are launched with: the KDA recurrence
// over the sequences after the decodes, in chunks.
//
// Constraints
//   dtypes     q, k, v, o, raw_g, raw_beta: fp32, bf16 or fp16, alike (raw_g
//              and raw_beta fp32 when given); a_log, dt_bias fp32; state fp32
//              or bf16: what a step starts from and leaves, in between it is
//              fp32
//   shapes     key_dim, value_dim 32 to 256 in steps of 16; value_heads a
//              multiple of heads; chunk_size 16, 32 or 64
//   alignment  that of the elements
//   gates      given log decays are at most 0; given betas are 0 to 2 on GPUs
//              where panels are of fp16
//   alignment  of the state on GPUs: 16 bytes, slots of a multiple of 4
//              elements
//   values     v and elements of the state below 2^60 on the host, whose reads
//              of them are larger by 2^60
//   host       1 thread a block; scratch as in scratch_host.h
//     scan     blocks (sequence, value head, columns of v), those of the batch
//              before all others. At least one for every
//              SG_KDA_CHUNK_SPLIT_COLUMNS columns at capacity; up to
//              SG_KDA_CHUNK_SPLIT_GRID, one for SG_KDA_CHUNK_STEP_COLUMNS
//   GPUs       blocks take work items in turns; those of a compute unit that
//              stay resident are, by key_dim up to 64, 128, 256
//                             panels of fp16          of fp32 (panel.h)
//     prepare  AMD            2, 2, 1                 2, 1, 1
//              NVIDIA         3, 3, 1                 2, 2, 1
//     scan     AMD            4, 4, 2                 4, 2, 1
//              NVIDIA         5, 4, 2                 4, 2, 1
//     prepare  items (chunk row, value head, 16 tokens); a thread a channel of
//              key_dim, rounded up to those numbers
//     scan     items (sequence, value head, 32 columns of v); 2 waves
//
// Workspace, on GPUs alone, by rows of chunk_indices, since chunks of different
// sequences never share one, and by value head; B = 16 is the width of a token
// block:
//   panels [chunks, value_heads, chunk_size / B]       see panel.h
//
// On the host one kernel does it all and there is no workspace. A quarter of
// its time goes into what does not depend on the state, which a kernel before
// it could make for all chunks at once. Two such kernels were measured: their
// scan alone took as long as this one does in all, since what it read was more
// than q, k and the gates that it is made from. At best, with fewer heads than
// processors and reads that cost nothing, they could win that quarter.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_PARAMS_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_PARAMS_H_

#include <assert.h>
#include <stdint.h>

#include "kernels/common/kda_params.h"

// Blocks a compute unit that the registers and shared memory of device code
// leave room for, by key tiles (panel.h) and element size.
#define SG_KDA_SCAN_RESIDENT(key_tiles, element_bytes) \
  ((key_tiles) > 8 ? 1 : (element_bytes) > 2 ? 2 : 4)
#define SG_KDA_PREPARE_RESIDENT(key_tiles, element_bytes) \
  ((key_tiles) > 8 ? 1 : (element_bytes) > 2 ? 2 : 3)

enum {
  // Tokens of the blocks that chunks are worked through in, whatever the chunk
  // size, so that a result does not depend on it.
  SG_KDA_BLOCK_TOKENS = 16,
};

// The host: share_host.h.
enum {
  // Most and fewest columns of the state that one block of the scan carries.
  SG_KDA_CHUNK_SPLIT_COLUMNS = 128,
  SG_KDA_CHUNK_STEP_COLUMNS = 32,
  // Blocks of the scan for one sequence and head at most.
  SG_KDA_CHUNK_STEPS_MOST = SG_KDA_DIM_MAX / SG_KDA_CHUNK_STEP_COLUMNS,
  // Grids up to this are enlarged so that columns can be split further.
  SG_KDA_CHUNK_SPLIT_GRID = 256,
};

// GPUs.
enum {
  // A wave of the scan has 16 rows of the state; few waves a block make many
  // blocks, which a single long sequence needs to spread over a device.
  SG_KDA_SCAN_WAVES = 2,
  // Panels of the scan in shared memory.
  SG_KDA_SCAN_STAGES_NVIDIA = 3,
  SG_KDA_SCAN_STAGES_AMD = 1,
  // Blocks a compute unit of the largest grids.
  SG_KDA_SCAN_GRID = 8,
  SG_KDA_PREPARE_GRID = 16,
};

typedef struct sg_kda_chunk_params_t {
  sg_kda_params_t kda;
  const int32_t* chunk_indices;
  const int64_t* chunk_offsets;
  unsigned char* panels;
  int32_t chunk_size;
  // Blocks of the scan for a sequence and value head on GPUs; 0 on the host.
  int32_t split_count;
} sg_kda_chunk_params_t;

static_assert(sizeof(sg_kda_chunk_params_t) == 256, "no padding");

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_PARAMS_H_
