// SPDX-License-Identifier: Apache-2.0

#include "runtime/batch.h"

#include <stdbool.h>

static sg_status_t sum_lengths(const sg_batch_t* batch,
                               sg_shape_limits_t limits,
                               int64_t* out_token_count) {
  *out_token_count = 0;
  int64_t total = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    int32_t length = batch->query_lens[n];
    int32_t computed = batch->computed_lens[n];
    if (length < 0 || computed < 0) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "batch: sequence %d has query length %d and "
                            "computed length %d, expected 0 or more",
                            n, length, computed);
    }
    total += length;
  }
  if (total > limits.max_tokens) {
    return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                          "batch: %lld tokens, limits allow %d",
                          (long long)total, limits.max_tokens);
  }
  *out_token_count = total;
  return sg_status_ok();
}

sg_status_t sg_batch_summarize(const sg_batch_t* batch,
                               sg_shape_limits_t limits,
                               sg_batch_summary_t* out_summary) {
  *out_summary = (sg_batch_summary_t){0};
  if (batch->sequence_count < 0 ||
      batch->sequence_count > limits.max_sequences) {
    return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                          "batch: %d sequences, limits allow 0 to %d",
                          batch->sequence_count, limits.max_sequences);
  }
  int64_t token_count = 0;
  SG_RETURN_IF_ERROR(sum_lengths(batch, limits, &token_count));
  int32_t decode_count = 0;
  while (decode_count < batch->sequence_count &&
         batch->query_lens[decode_count] == 1 &&
         batch->computed_lens[decode_count] > 0) {
    ++decode_count;
  }
  bool has_prefill = token_count > decode_count;
  *out_summary = (sg_batch_summary_t){
      .sequence_count = batch->sequence_count,
      .token_count = (int32_t)token_count,
      .decode_count = decode_count,
      .phase = !has_prefill        ? SG_PHASE_DECODE
               : decode_count == 0 ? SG_PHASE_PREFILL
                                   : SG_PHASE_MIXED,
  };
  return sg_status_ok();
}

sg_status_t sg_device_batch_summarize(const sg_device_batch_t* batch,
                                      sg_shape_limits_t limits,
                                      sg_batch_summary_t* out_summary) {
  *out_summary = (sg_batch_summary_t){0};
  if (batch->query_start_loc == NULL || batch->computed_lens == NULL ||
      batch->slots == NULL) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "device batch: query_start_loc, computed_lens and "
                          "slots are needed, found a NULL among them");
  }
  if (batch->max_sequences < 0 || batch->max_tokens < 0 ||
      batch->max_sequences > limits.max_sequences ||
      batch->max_tokens > limits.max_tokens) {
    return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                          "device batch: bounds of %d tokens and %d sequences, "
                          "limits allow %d and %d",
                          batch->max_tokens, batch->max_sequences,
                          limits.max_tokens, limits.max_sequences);
  }
  *out_summary = (sg_batch_summary_t){
      .sequence_count = batch->max_sequences,
      .token_count = batch->max_tokens,
      .phase = batch->has_prefill ? SG_PHASE_MIXED : SG_PHASE_DECODE,
  };
  return sg_status_ok();
}
