// SPDX-License-Identifier: Apache-2.0
//
// What a server's KDA layer holds and answers, in double precision: states by
// slot, advanced token by token with the recurrence of arXiv 2510.26692. Takes
// the same raw inputs as the kernels and shares no code with them.

#ifndef STEPGRAPH_TESTS_GRAPHS_SERVING_MODEL_H_
#define STEPGRAPH_TESTS_GRAPHS_SERVING_MODEL_H_

#include "runtime/base/kda_geometry.h"
#include "runtime/batch.h"

// Inputs of one layer, dense, rows of tokens.
typedef struct serving_inputs_t {
  const double* q;
  const double* k;
  const double* v;
  const double* raw_g;
  const double* raw_beta;
  const double* a_log;
  const double* dt_bias;
} serving_inputs_t;

// Advances |states| [slots, value_heads, value_dim, key_dim] by |batch| and
// writes |o| [tokens, value_heads, value_dim]; rows of sequences without a slot
// are zero.
void serving_model_step(const sg_kda_geometry_t* geometry,
                        const sg_batch_t* batch, int32_t null_slot,
                        const serving_inputs_t* inputs, double* states,
                        double* o);

#endif  // STEPGRAPH_TESTS_GRAPHS_SERVING_MODEL_H_
