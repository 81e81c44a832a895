// SPDX-License-Identifier: Apache-2.0
//
// Assertions about a run of the KDA kernels.

#ifndef STEPGRAPH_TESTS_KERNELS_KDA_CHECK_H_
#define STEPGRAPH_TESTS_KERNELS_KDA_CHECK_H_

#include "tests/kernels/kda_recurrence.h"
#include "tests/kernels/kda_run.h"

// sqrt(sum of squared differences / sum of squares of the expected).
typedef struct kda_errors_t {
  double o;
  double state;
} kda_errors_t;

// Relative L2 errors of the outputs of all tokens and of the states of all live
// sequences; a NaN anywhere makes an error infinite.
kda_errors_t kda_errors_of(const kda_run_t* run,
                           const kda_expected_t* expected);

// Asserts that nothing changed that must not: states of slots without a live
// sequence and the gaps between slots; gaps between rows and, without
// zero_tail, rows beyond the batch; that rows of sequences without a slot
// are zero, and so is the tail with zero_tail.
void kda_check_untouched(const kda_run_t* run);

// Runs the step of |test| and asserts both of the above; 0 as tolerance for
// what the dtypes of activations and state allow. Returns the errors.
kda_errors_t kda_check_step(const kda_case_t* test, double tolerance);

// Asserts that outputs of the first |tokens| tokens have the same bits.
void kda_check_same_outputs(const kda_run_t* a, const kda_run_t* b,
                            int64_t tokens);

// Asserts that states of all live sequences have the same bits.
void kda_check_same_states(const kda_run_t* a, const kda_run_t* b);

// Asserts that a step of |a| and a step of |b|, which differ in nothing that
// results may depend on, have the same bits.
void kda_check_same_steps(const kda_case_t* a, const kda_case_t* b);

#endif  // STEPGRAPH_TESTS_KERNELS_KDA_CHECK_H_
