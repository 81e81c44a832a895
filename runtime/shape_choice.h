// SPDX-License-Identifier: Apache-2.0
//
// Which graph a batch runs in, decided from lengths that the host knows.

#ifndef STEPGRAPH_RUNTIME_SHAPE_CHOICE_H_
#define STEPGRAPH_RUNTIME_SHAPE_CHOICE_H_

#include <stdint.h>

#include "runtime/batch.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

// Why a step ran eagerly. actual and limit are the numbers beside it.
typedef enum sg_eager_reason_t {
  // It did not: the step was a replay.
  SG_EAGER_NONE = 0,
  // The caller asked for it.
  SG_EAGER_REQUESTED,
  // No shape of a phase that may hold the batch; no numbers.
  SG_EAGER_PHASE,
  // actual tokens, at most limit in any shape of a fitting phase.
  SG_EAGER_TOKENS,
  // actual sequences, at most limit in any shape that has the tokens.
  SG_EAGER_SEQUENCES,
  // actual is the smallest padding ratio of a fitting shape, limit the policy.
  SG_EAGER_PADDING,
  // The shape's graph is not captured yet.
  SG_EAGER_NOT_CAPTURED,
  // actual bytes would be in use by graphs, limit is the budget.
  SG_EAGER_MEMORY_BUDGET,
  // Capturing the shape's graph failed; it is not tried again.
  SG_EAGER_CAPTURE_FAILED,
  // hipGraphLaunch refused the graph; it is not tried again.
  SG_EAGER_LAUNCH_FAILED,
} sg_eager_reason_t;

enum { SG_EAGER_REASON_COUNT = SG_EAGER_LAUNCH_FAILED + 1 };

// One word in lower case with underscores, e.g. "not_captured".
const char* sg_eager_reason_name(sg_eager_reason_t reason);

typedef struct sg_shape_choice_t {
  // Index in shapes, or -1 with the reason why none fits.
  int32_t shape_index;
  sg_eager_reason_t reason;
  double actual;
  double limit;
} sg_shape_choice_t;

// Decode-only batches fit decode and mixed shapes, prefill-only ones prefill
// and mixed shapes, others mixed shapes alone. Of the shapes that fit in tokens
// and sequences, and in max_padding_ratio (decode shapes are exempt), the
// batch's own phase goes before mixed, then fewer tokens, fewer sequences, and
// the order in the file. A batch without tokens has the padding ratio of one
// with one token.
void sg_shape_choose(const sg_shapes_t* shapes,
                     const sg_batch_summary_t* summary,
                     sg_shape_choice_t* out_choice);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_SHAPE_CHOICE_H_
