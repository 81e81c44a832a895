// SPDX-License-Identifier: Apache-2.0
//
// What the kernel of the kda_recurrent op is launched with: one step of the
// KDA recurrence for each decode.
//
// Constraints
//   dtypes     q, k, v, o, raw_g, raw_beta: fp32, bf16 or fp16, alike (raw_g
//              and raw_beta fp32 when given); state, a_log, dt_bias fp32
//   shapes     key_dim, value_dim 32 to 256 in steps of 16; value_heads a
//              multiple of heads
//   alignment  that of the elements
//   gates      given log decays are at most 0
//   grid       sequence capacity x value_heads; block (decode, value head)
//   host       1 thread a block; scratch as in scratch_host.h

#ifndef STEPGRAPH_KERNELS_KDA_RECURRENT_PARAMS_H_
#define STEPGRAPH_KERNELS_KDA_RECURRENT_PARAMS_H_

#include "kernels/common/kda_params.h"

typedef struct sg_kda_recurrent_params_t {
  sg_kda_params_t kda;
} sg_kda_recurrent_params_t;

_Static_assert(sizeof(sg_kda_recurrent_params_t) == 216, "no padding");

#endif  // STEPGRAPH_KERNELS_KDA_RECURRENT_PARAMS_H_
