// SPDX-License-Identifier: Apache-2.0

#include "runtime/shape_choice.h"

#include <stdbool.h>

const char* sg_eager_reason_name(sg_eager_reason_t reason) {
  switch (reason) {
    case SG_EAGER_NONE:
      return "none";
    case SG_EAGER_REQUESTED:
      return "requested";
    case SG_EAGER_PHASE:
      return "phase";
    case SG_EAGER_TOKENS:
      return "tokens";
    case SG_EAGER_SEQUENCES:
      return "sequences";
    case SG_EAGER_PADDING:
      return "padding";
    case SG_EAGER_NOT_CAPTURED:
      return "not_captured";
    case SG_EAGER_MEMORY_BUDGET:
      return "memory_budget";
    case SG_EAGER_CAPTURE_FAILED:
      return "capture_failed";
    case SG_EAGER_LAUNCH_FAILED:
      return "launch_failed";
  }
  return "unknown";
}

static double padding_ratio(const sg_shape_t* shape,
                            const sg_batch_summary_t* summary) {
  // An empty batch pads whatever it runs in; one token keeps this finite.
  int32_t tokens = summary->token_count > 0 ? summary->token_count : 1;
  return (double)shape->max_tokens / tokens;
}

// Whether |a| goes before |b|, both of which fit. Ties go to the file's order.
static bool goes_before(const sg_shape_t* a, const sg_shape_t* b,
                        sg_phase_t phase) {
  bool a_own = a->phase == phase;
  bool b_own = b->phase == phase;
  if (a_own != b_own) return a_own;
  if (a->max_tokens != b->max_tokens) return a->max_tokens < b->max_tokens;
  return a->max_sequences < b->max_sequences;
}

// What a search that fails has seen on the way.
typedef struct near_miss_t {
  bool any_of_phase;
  bool any_with_tokens;
  int32_t most_tokens;
  int32_t most_sequences;
  double smallest_ratio;
} near_miss_t;

// Whether |shape| can take the batch; notes in |miss| how far it got.
static bool fits(const sg_shapes_t* shapes, const sg_shape_t* shape,
                 const sg_batch_summary_t* summary, near_miss_t* miss) {
  if (shape->phase != summary->phase && shape->phase != SG_PHASE_MIXED) {
    return false;
  }
  miss->any_of_phase = true;
  if (shape->max_tokens > miss->most_tokens) {
    miss->most_tokens = shape->max_tokens;
  }
  if (shape->max_tokens < summary->token_count) return false;
  miss->any_with_tokens = true;
  if (shape->max_sequences > miss->most_sequences) {
    miss->most_sequences = shape->max_sequences;
  }
  if (shape->max_sequences < summary->sequence_count) return false;
  double ratio = padding_ratio(shape, summary);
  double limit = shapes->policy.max_padding_ratio;
  if (limit == 0 || shape->phase == SG_PHASE_DECODE || ratio <= limit) {
    return true;
  }
  if (miss->smallest_ratio == 0 || ratio < miss->smallest_ratio) {
    miss->smallest_ratio = ratio;
  }
  return false;
}

static sg_shape_choice_t explain(const sg_shapes_t* shapes,
                                 const sg_batch_summary_t* summary,
                                 const near_miss_t* miss) {
  sg_shape_choice_t choice = {.shape_index = -1};
  if (!miss->any_of_phase) {
    choice.reason = SG_EAGER_PHASE;
  } else if (!miss->any_with_tokens) {
    choice.reason = SG_EAGER_TOKENS;
    choice.actual = summary->token_count;
    choice.limit = miss->most_tokens;
  } else if (miss->smallest_ratio == 0) {
    choice.reason = SG_EAGER_SEQUENCES;
    choice.actual = summary->sequence_count;
    choice.limit = miss->most_sequences;
  } else {
    choice.reason = SG_EAGER_PADDING;
    choice.actual = miss->smallest_ratio;
    choice.limit = shapes->policy.max_padding_ratio;
  }
  return choice;
}

void sg_shape_choose(const sg_shapes_t* shapes,
                     const sg_batch_summary_t* summary,
                     sg_shape_choice_t* out_choice) {
  near_miss_t miss = {0};
  const sg_shape_t* best = NULL;
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    const sg_shape_t* shape = &shapes->shapes[i];
    if (!fits(shapes, shape, summary, &miss)) continue;
    if (best == NULL || goes_before(shape, best, summary->phase)) best = shape;
  }
  if (best == NULL) {
    *out_choice = explain(shapes, summary, &miss);
    return;
  }
  *out_choice =
      (sg_shape_choice_t){.shape_index = (int32_t)(best - shapes->shapes)};
}
