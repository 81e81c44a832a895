// SPDX-License-Identifier: Apache-2.0
//
// The KDA recurrence token by token in double precision, from the raw inputs:
// the formulas of arXiv 2510.26692 as they stand, nothing of a kernel's.

#ifndef STEPGRAPH_TESTS_KERNELS_KDA_RECURRENCE_H_
#define STEPGRAPH_TESTS_KERNELS_KDA_RECURRENCE_H_

#include "tests/kernels/kda_inputs.h"

typedef struct kda_expected_t {
  double* o;       // [tokens, value_heads, value_dim]
  double* states;  // [sequences, value_heads, value_dim, key_dim]
} kda_expected_t;

// Outputs of all tokens, 0 for sequences without a slot, and the states after
// them, as given for sequences that are not live.
void kda_expected_initialize(const kda_case_t* test, const kda_inputs_t* inputs,
                             kda_expected_t* out_expected);
void kda_expected_deinitialize(kda_expected_t* expected);

#endif  // STEPGRAPH_TESTS_KERNELS_KDA_RECURRENCE_H_
