// SPDX-License-Identifier: Apache-2.0
//
// Seeded inputs of a case in double precision, dense and already rounded to
// the dtype that the kernels read them in, so that a reference and a kernel
// start from the same numbers.

#ifndef STEPGRAPH_TESTS_KERNELS_KDA_INPUTS_H_
#define STEPGRAPH_TESTS_KERNELS_KDA_INPUTS_H_

#include "tests/kernels/kda_case.h"

typedef struct kda_inputs_t {
  double* q;         // [tokens, heads, key_dim]
  double* k;         // [tokens, heads, key_dim]
  double* v;         // [tokens, value_heads, value_dim]
  double* raw_g;     // [tokens, value_heads, key_dim]
  double* raw_beta;  // [tokens, value_heads]
  double* a_log;     // [value_heads]
  double* dt_bias;   // [value_heads, key_dim]
  double* states;    // [sequences, value_heads, value_dim, key_dim]
} kda_inputs_t;

// Numbers of one stream, each from the last by splitmix64.
double kda_random_uniform(uint64_t* stream);
double kda_random_normal(uint64_t* stream);
uint64_t kda_random_bits(uint64_t* stream);

// |value| as the nearest number of |dtype|.
double kda_round(sg_dtype_t dtype, double value);

void kda_inputs_initialize(const kda_case_t* test, kda_inputs_t* out_inputs);
void kda_inputs_deinitialize(kda_inputs_t* inputs);

#endif  // STEPGRAPH_TESTS_KERNELS_KDA_INPUTS_H_
