// SPDX-License-Identifier: Apache-2.0
//
// Scratch of one block of the host kernel, in what the launch asks for as
// shared memory. Contents are undefined at the start.

#ifndef STEPGRAPH_KERNELS_KDA_RECURRENT_SCRATCH_HOST_H_
#define STEPGRAPH_KERNELS_KDA_RECURRENT_SCRATCH_HOST_H_

#include "kernels/common/kda_params.h"

// Rows of the state that are worked on together, to share loads of k and q.
enum { SG_KDA_RECURRENT_HOST_ROWS = 4 };

typedef struct sg_kda_recurrent_scratch_t {
  float decay[SG_KDA_DIM_MAX];
  float k[SG_KDA_DIM_MAX];
  // k and q times the decay: what they read an undecayed state with.
  float k_read[SG_KDA_DIM_MAX];
  float q_read[SG_KDA_DIM_MAX];
  float values[SG_KDA_DIM_MAX];
  // Those of a state that is not fp32.
  float rows[SG_KDA_RECURRENT_HOST_ROWS * SG_KDA_DIM_MAX];
} sg_kda_recurrent_scratch_t;

#endif  // STEPGRAPH_KERNELS_KDA_RECURRENT_SCRATCH_HOST_H_
