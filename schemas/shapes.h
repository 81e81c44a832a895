// SPDX-License-Identifier: Apache-2.0
//
// Shapes files: which batch shapes get a graph, and what happens to batches
// without one. schemas/shapes.schema.json describes the format:
//
//   { "version": 1,
//     "limits": { "max_tokens": 8192, "max_sequences": 128 },
//     "shapes": [ { "name": "decode-64", "phase": "decode",
//                   "max_tokens": 64, "max_sequences": 64 } ],
//     "policy": { "max_padding_ratio": null, "capture": "startup",
//                 "memory_budget_bytes": null, "on_no_match": "eager" } }
//
// The policy and each of its keys are optional; the example has the defaults.
// An empty list of shapes is legal: every step runs eagerly.
//
// Rules beyond the schema, checked by the reader:
// - a shape stays within the limits;
// - names are unique, and so are (phase, max_tokens, max_sequences);
// - a decode shape has max_tokens <= max_sequences: a decoding sequence has one
//   token, so that the rest could never be filled. Fewer tokens than sequences
//   are useful, since empty sequences are legal in a batch.
//
// Errors are those of schemas/model.h.

#ifndef STEPGRAPH_SCHEMAS_SHAPES_H_
#define STEPGRAPH_SCHEMAS_SHAPES_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"
#include "schemas/json_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a batch consists of, or what a shape may hold.
typedef enum sg_phase_t {
  // Sequences of one token that continue from a state.
  SG_PHASE_DECODE = 0,
  SG_PHASE_PREFILL = 1,
  // Both in any proportion.
  SG_PHASE_MIXED = 2,
} sg_phase_t;

enum { SG_PHASE_COUNT = 3 };

// "decode", "prefill" or "mixed", as JSON files spell them.
const char* sg_phase_name(sg_phase_t phase);

typedef enum sg_capture_time_t {
  // All shapes before the first step, the largest first.
  SG_CAPTURE_STARTUP = 0,
  // A shape when a batch first needs it.
  SG_CAPTURE_LAZY = 1,
  // All shapes on a thread of its own, while steps run eagerly.
  SG_CAPTURE_BACKGROUND = 2,
} sg_capture_time_t;

// "startup", "lazy" or "background".
const char* sg_capture_time_name(sg_capture_time_t capture);

typedef enum sg_no_match_t {
  SG_NO_MATCH_EAGER = 0,
  SG_NO_MATCH_ERROR = 1,
} sg_no_match_t;

// "eager" or "error".
const char* sg_no_match_name(sg_no_match_t on_no_match);

typedef struct sg_shape_t {
  // 1 to 64 of A-Z a-z 0-9 . _ - with a letter or digit first.
  char* name;
  sg_phase_t phase;
  int32_t max_tokens;
  int32_t max_sequences;
} sg_shape_t;

typedef struct sg_shape_limits_t {
  int32_t max_tokens;
  int32_t max_sequences;
} sg_shape_limits_t;

typedef struct sg_shape_policy_t {
  // Largest max_tokens of a shape over the tokens of a batch; 0 is no maximum,
  // anything else is at least 1.
  double max_padding_ratio;
  sg_capture_time_t capture;
  // 0 is no budget.
  uint64_t memory_budget_bytes;
  sg_no_match_t on_no_match;
} sg_shape_policy_t;

// A plain value that owns its array and the names in it; not changed after it
// was read, so threads may share it.
typedef struct sg_shapes_t {
  sg_allocator_t allocator;
  sg_shape_limits_t limits;
  // In file order.
  sg_shape_t* shapes;
  size_t shape_count;
  sg_shape_policy_t policy;
} sg_shapes_t;

// Reads shapes from |bytes| bytes at |text|, which need no final NUL and are
// not kept. |source_name| stands for the file in messages.
SG_MUST_USE sg_status_t sg_shapes_parse(sg_allocator_t allocator,
                                        const char* text, size_t bytes,
                                        const char* source_name,
                                        sg_shapes_t* out_shapes);

// Reads the file at |path|, of at most 1 MiB.
SG_MUST_USE sg_status_t sg_shapes_load(sg_allocator_t allocator,
                                       const char* path,
                                       sg_shapes_t* out_shapes);

// Reads the bundled shapes called |name_or_path| (schemas/bundled.h) or, if
// there are none or the name has a '/' or ends in ".json", the file.
// SG_STATUS_NOT_FOUND lists the bundled names when it is neither.
SG_MUST_USE sg_status_t sg_shapes_open(sg_allocator_t allocator,
                                       const char* name_or_path,
                                       sg_shapes_t* out_shapes);

// Writes |shapes| as one value; what is written reads back equal. Errors stay
// in |writer|.
void sg_shapes_write(const sg_shapes_t* shapes, sg_json_writer_t* writer);

// Accepts NULL, zeroed shapes and those whose reading failed.
void sg_shapes_deinitialize(sg_shapes_t* shapes);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_SHAPES_H_
