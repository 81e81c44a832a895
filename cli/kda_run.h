// SPDX-License-Identifier: Apache-2.0
//
// Runs a case through the step program of one layer and the executor.

#ifndef STEPGRAPH_CLI_KDA_RUN_H_
#define STEPGRAPH_CLI_KDA_RUN_H_

#include <stdbool.h>
#include <stdint.h>

#include "cli/kda_case.h"
#include "cli/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_kda_run_options_t {
  // Enqueue the launches one by one instead of replaying a graph.
  bool eager;
  // Run one token of each sequence a step instead of all in one step.
  bool recurrent;
  // The capacity of the step; 0 for exactly what the case needs.
  int32_t max_tokens;
  int32_t max_sequences;
} sg_kda_run_options_t;

// Host memory, dense, in the order of the case. Owned;
// sg_kda_result_deinitialize frees it.
typedef struct sg_kda_result_t {
  // [tokens, value_heads, value_dim], activation dtype.
  void* o;
  // [sequences, value_heads, value_dim, key_dim] fp32. That of a sequence
  // without a slot is its initial state, or 0.
  void* final_state;
  // [sequences, conv_width - 1, channels], activation dtype; NULL without
  // convolution. Sequences without a slot as above.
  void* conv_cache;
  // What the device built, [chunk_count, 2] and [sequences + 1]; NULL for
  // recurrent runs, whose steps have tables of their own.
  int32_t* chunk_indices;
  int64_t* chunk_offsets;
  int64_t chunk_count;
  int64_t step_count;
} sg_kda_result_t;

// |session| has its model, and is started here with a model of one layer and
// shapes for the case. Everything that the case does not give is NaN on the
// device, so that nothing can be read there without being seen.
//
// SG_STATUS_OUT_OF_RANGE where the case does not fit the capacity;
// SG_STATUS_INTERNAL where the device found a fault in the batch, or a graph
// could not be captured or launched.
SG_MUST_USE sg_status_t sg_kda_run(sg_session_t* session,
                                   const sg_kda_case_t* kda_case,
                                   const sg_kda_run_options_t* options,
                                   sg_kda_result_t* out_result);

// Accepts NULL, a zeroed result and one whose run failed.
void sg_kda_result_deinitialize(sg_kda_result_t* result);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_KDA_RUN_H_
