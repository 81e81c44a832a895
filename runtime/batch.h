// SPDX-License-Identifier: Apache-2.0
//
// The batch of one step, as the host knows it.

#ifndef STEPGRAPH_RUNTIME_BATCH_H_
#define STEPGRAPH_RUNTIME_BATCH_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

// Arrays of sequence_count elements, read during the call that they are given
// to and not afterwards.
typedef struct sg_batch_t {
  int32_t sequence_count;
  // Tokens of each sequence in this step; 0 is legal anywhere.
  const int32_t* query_lens;
  // Tokens of each sequence in earlier steps; 0 means fresh.
  const int32_t* computed_lens;
  // State slot of each sequence; below 0 for none. Whether slots are in range
  // and different is checked on the device.
  const int32_t* slots;
} sg_batch_t;

// A batch whose lengths and slots are on the device, for stacks that schedule
// ahead of it. The host states bounds; what the device finds beyond them is a
// fault of the step. The arrays are read when the step runs, so they must hold
// their values, in the order of the stream, from the call until the step ends.
typedef struct sg_device_batch_t {
  // Device addresses. [max_sequences + 1] running sum of query lengths, first
  // 0.
  const int32_t* query_start_loc;
  // [max_sequences] each; see sg_batch_t.
  const int32_t* computed_lens;
  const int32_t* slots;
  // How many sequences there are, at most max_sequences; NULL for just those.
  const int32_t* sequence_count;
  int32_t max_sequences;
  int32_t max_tokens;
  // Whether any sequence may be something else than a decode. Without it the
  // step runs in decode shapes.
  bool has_prefill;
} sg_device_batch_t;

// What the host knows of a batch: its sizes, or the bounds of a device batch.
typedef struct sg_batch_summary_t {
  int32_t sequence_count;
  int32_t token_count;
  // Longest prefix of sequences with one token and a computed length above 0.
  // A later sequence of one token counts as prefill.
  int32_t decode_count;
  // SG_PHASE_DECODE where nothing but decodes has tokens, SG_PHASE_PREFILL
  // where there are no decodes, else SG_PHASE_MIXED.
  sg_phase_t phase;
} sg_batch_summary_t;

// Checks lengths against |limits| and sums the batch up. SG_STATUS_INVALID_DATA
// for a length below 0, SG_STATUS_OUT_OF_RANGE beyond the limits.
SG_MUST_USE sg_status_t sg_batch_summarize(const sg_batch_t* batch,
                                           sg_shape_limits_t limits,
                                           sg_batch_summary_t* out_summary);

// The same of a device batch: decode_count is 0 and the phase decode or mixed.
// SG_STATUS_INVALID_ARGUMENT for an array that is missing,
// SG_STATUS_OUT_OF_RANGE beyond the limits.
SG_MUST_USE sg_status_t sg_device_batch_summarize(
    const sg_device_batch_t* batch, sg_shape_limits_t limits,
    sg_batch_summary_t* out_summary);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_BATCH_H_
