// SPDX-License-Identifier: Apache-2.0
//
// What one Kimi Delta Attention layer computes, in numbers. Model files are
// read into it and kernels are configured by it. It says what is asked for;
// whether a kernel can do it is answered by that kernel's supports function.

#ifndef STEPGRAPH_RUNTIME_BASE_KDA_GEOMETRY_H_
#define STEPGRAPH_RUNTIME_BASE_KDA_GEOMETRY_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/dtype.h"

// How the log decay g (natural logarithm, per key channel) comes from the
// input raw_g, with x = raw_g + dt_bias.
typedef enum sg_gate_kind_t {
  // g = -exp(A_log) * softplus(x), as in Kimi-Linear-48B.
  SG_GATE_SOFTPLUS = 0,
  // g = lower_bound * sigmoid(exp(A_log) * x), as in Kimi-K3.
  SG_GATE_LOWER_BOUND = 1,
  // g = raw_g, given in fp32; A_log and dt_bias are not read.
  SG_GATE_GIVEN = 2,
} sg_gate_kind_t;

// How the write strength beta comes from the input raw_beta.
typedef enum sg_beta_kind_t {
  SG_BETA_SIGMOID = 0,
  // 2 * sigmoid, which allows negative eigenvalues of the transition.
  SG_BETA_DOUBLE_SIGMOID = 1,
  // beta = raw_beta, given in fp32.
  SG_BETA_GIVEN = 2,
} sg_beta_kind_t;

typedef struct sg_kda_geometry_t {
  // q/k heads and value heads; value_heads is a multiple of heads, and value
  // head j reads q/k head j / (value_heads / heads).
  int32_t heads;
  int32_t value_heads;
  int32_t key_dim;
  int32_t value_dim;
  // Width of the causal short convolution, in tokens.
  int32_t conv_width;
  // Tokens a chunk.
  int32_t chunk_size;
  sg_gate_kind_t gate_kind;
  // Below 0; read for SG_GATE_LOWER_BOUND only.
  float gate_lower_bound;
  sg_beta_kind_t beta_kind;
  // Whether q and k are divided by sqrt(sum of squares + 1e-6) per head.
  bool qk_l2norm;
  // Factor on q; key_dim^-1/2 unless the model says otherwise.
  float scale;
  // Element type of q, k, v, o, and of raw_g and raw_beta unless given.
  sg_dtype_t activation_dtype;
  // Element type that states are kept in between steps.
  sg_dtype_t state_dtype;
  // Added to the mean of squares in the output norm.
  float norm_epsilon;
} sg_kda_geometry_t;

#endif  // STEPGRAPH_RUNTIME_BASE_KDA_GEOMETRY_H_
