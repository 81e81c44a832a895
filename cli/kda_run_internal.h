// SPDX-License-Identifier: Apache-2.0
//
// What a run of a case works on: kda_run.c forms and runs its steps,
// kda_transfer.c moves tensors between case, device and result.

#ifndef STEPGRAPH_CLI_KDA_RUN_INTERNAL_H_
#define STEPGRAPH_CLI_KDA_RUN_INTERNAL_H_

#include "cli/kda_run.h"

#ifdef __cplusplus
extern "C" {
#endif

// Tokens of a sequence in a step.
typedef struct sg_kda_part_t {
  int32_t sequence;
  // Place of the first one among the sequence's tokens in the case.
  int32_t first_token;
} sg_kda_part_t;

typedef struct sg_kda_run_t {
  sg_session_t* session;
  const sg_kda_case_t* kda_case;
  const sg_kda_run_options_t* options;
  sg_kda_result_t* result;
  // q, k and v of each token behind each other; NULL without convolution.
  unsigned char* qkv;
  // The step's batch, one entry a sequence of it.
  sg_kda_part_t* parts;
  int32_t* query_lens;
  int32_t* computed_lens;
  int32_t* slots;
} sg_kda_run_t;

// Everything is enqueued on the session's stream.

// Fills all buffers with NaN, then weights and slots with what the case has.
SG_MUST_USE sg_status_t sg__kda_load(sg_kda_run_t* run);

// Copies the rows of the step's tokens to the inputs, or from the output.
SG_MUST_USE sg_status_t sg__kda_load_inputs(const sg_kda_run_t* run,
                                            const sg_batch_t* batch);
SG_MUST_USE sg_status_t sg__kda_fetch_output(const sg_kda_run_t* run,
                                             const sg_batch_t* batch);

// Allocates the result.
SG_MUST_USE sg_status_t sg__kda_make_result(const sg_kda_run_t* run);

// Copies the slots and, but for recurrent runs, the chunk tables. Waits.
SG_MUST_USE sg_status_t sg__kda_fetch_result(const sg_kda_run_t* run);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_KDA_RUN_INTERNAL_H_
