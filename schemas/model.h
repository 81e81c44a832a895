// SPDX-License-Identifier: Apache-2.0
//
// Model files: the geometry of a model's Kimi Delta Attention layers on one
// tensor-parallel rank. schemas/model.schema.json describes the format:
//
//   { "version": 1, "name": "tiny", "layers": 2, "heads": 2,
//     "key_dim": 64, "value_dim": 64, "gate": { "kind": "softplus" } }
//
// These keys are required, since no value of them suits every model. The others
// and what they are when absent:
//
//   value_heads       heads
//   conv_width        4
//   chunk_size        64
//   beta              "sigmoid"
//   qk_l2norm         true
//   scale             null, which is key_dim^-1/2
//   activation_dtype  "bf16"
//   state_dtype       "fp32"; with "bf16" a step computes in fp32 and rounds
//                     the state that it leaves
//   norm_epsilon      1e-5
//
// A gate of kind "lower_bound" also has the key "lower_bound", a number in
// [-5, 0); other gates do not have it. The schema cannot say that value_heads
// is a multiple of heads; the reader checks it.
//
// Errors: SG_STATUS_IO when a file cannot be read, SG_STATUS_INVALID_DATA when
// it breaks the rules, SG_STATUS_NOT_FOUND from sg_model_open,
// SG_STATUS_OUT_OF_MEMORY. Messages name the file with line and column
// (syntax), or the file with the JSON pointer of the value (meaning).

#ifndef STEPGRAPH_SCHEMAS_MODEL_H_
#define STEPGRAPH_SCHEMAS_MODEL_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/allocator.h"
#include "runtime/base/kda_geometry.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A plain value that owns its name; not changed after it was read, so threads
// may share it.
typedef struct sg_model_t {
  sg_allocator_t allocator;
  // 1 to 64 of A-Z a-z 0-9 . _ - with a letter or digit first.
  char* name;
  int32_t layers;
  sg_kda_geometry_t geometry;
} sg_model_t;

// Reads a model from |bytes| bytes at |text|, which need no final NUL and are
// not kept. |source_name| stands for the file in messages.
SG_MUST_USE sg_status_t sg_model_parse(sg_allocator_t allocator,
                                       const char* text, size_t bytes,
                                       const char* source_name,
                                       sg_model_t* out_model);

// Reads the file at |path|, of at most 1 MiB.
SG_MUST_USE sg_status_t sg_model_load(sg_allocator_t allocator,
                                      const char* path, sg_model_t* out_model);

// Reads the bundled model called |name_or_path| (schemas/bundled.h) or, if
// there is none or the name has a '/' or ends in ".json", the file.
// SG_STATUS_NOT_FOUND lists the bundled names when it is neither.
SG_MUST_USE sg_status_t sg_model_open(sg_allocator_t allocator,
                                      const char* name_or_path,
                                      sg_model_t* out_model);

// Accepts NULL, a zeroed model and one whose reading failed.
void sg_model_deinitialize(sg_model_t* model);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_MODEL_H_
