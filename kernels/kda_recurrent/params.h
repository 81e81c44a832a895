// SPDX-License-Identifier: Apache-2.0
//
// What the kernel of the kda_recurrent op is launched with: one step of the
// KDA recurrence for each decode.
//
// Constraints
//   dtypes     q, k, v, o, raw_g, raw_beta: fp32, bf16 or fp16, alike (raw_g
//              and raw_beta fp32 when given); a_log, dt_bias fp32; state fp32
//              or bf16: what a step starts from and leaves, in between it is
//              fp32
//   shapes     key_dim, value_dim 32 to 256 in steps of 16; value_heads a
//              multiple of heads
//   alignment  that of the elements; on GPUs the state's is 16 bytes, its
//              slots' a multiple of 4 elements
//   gates      given log decays are at most 0
//   host       grid sequence capacity x value_heads, block (decode, value
//              head), 1 thread; scratch as in scratch_host.h
//   GPUs       work items (decode, value head, SG_KDA_RECURRENT_ROWS rows of
//              the state) that the blocks take in turns, SG_KDA_RECURRENT_GRID
//              blocks a compute unit at most, at least 4 of them resident (2
//              for key_dim above 128); 4.1 KiB of static shared memory

#ifndef STEPGRAPH_KERNELS_KDA_RECURRENT_PARAMS_H_
#define STEPGRAPH_KERNELS_KDA_RECURRENT_PARAMS_H_

#include <assert.h>

#include "kernels/common/kda_params.h"

enum {
  SG_KDA_RECURRENT_THREADS = 128,
  SG_KDA_RECURRENT_ROWS = 32,
  // Blocks a compute unit of the largest grid: more than are resident, so that
  // an early end of one leaves no hole.
  SG_KDA_RECURRENT_GRID = 8,
};

typedef struct sg_kda_recurrent_params_t {
  sg_kda_params_t kda;
} sg_kda_recurrent_params_t;

static_assert(sizeof(sg_kda_recurrent_params_t) == 224, "no padding");

#endif  // STEPGRAPH_KERNELS_KDA_RECURRENT_PARAMS_H_
