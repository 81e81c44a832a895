// SPDX-License-Identifier: Apache-2.0
//
// What a server's KDA layer holds and answers, in double precision: states and
// convolution histories by slot, advanced token by token with the formulas of
// arXiv 2510.26692. Takes the same raw inputs as the kernels and shares no code
// with them.

#ifndef STEPGRAPH_TESTS_GRAPHS_SERVING_MODEL_H_
#define STEPGRAPH_TESTS_GRAPHS_SERVING_MODEL_H_

#include "runtime/base/kda_geometry.h"
#include "runtime/batch.h"

// Inputs of one layer, dense, rows of tokens.
typedef struct serving_inputs_t {
  // Read where qkv is NULL.
  const double* q;
  const double* k;
  const double* v;
  // Inputs of the convolution, q | k | v, [tokens, channels], and its weights
  // [channels, conv_width]; NULL for a layer without one.
  const double* qkv;
  const double* conv_weight;
  const double* raw_g;
  const double* raw_beta;
  const double* a_log;
  const double* dt_bias;
  // NULL for a layer without norm.
  const double* output_gate;
  const double* norm_weight;
  // What becomes of a number that is kept in the activation dtype between two
  // ops.
  double (*rounded)(double value);
} serving_inputs_t;

// Advances |states| [slots, value_heads, value_dim, key_dim] and, with a
// convolution, |caches| [slots, conv_width - 1, channels] by |batch|, and
// writes |o| [tokens, value_heads, value_dim]; rows of sequences without a slot
// are zero.
void serving_model_step(const sg_kda_geometry_t* geometry,
                        const sg_batch_t* batch, int32_t null_slot,
                        const serving_inputs_t* inputs, double* states,
                        double* caches, double* o);

#endif  // STEPGRAPH_TESTS_GRAPHS_SERVING_MODEL_H_
