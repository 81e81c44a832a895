// SPDX-License-Identifier: Apache-2.0
//
// The step program of KDA layers: batch ingest, chunk metadata once, and then
// for each layer the recurrent form for decodes and the chunk form for the
// rest. A decode shape records the recurrent form alone, a prefill shape the
// chunk form alone.

#ifndef STEPGRAPH_GRAPHS_KDA_STEP_H_
#define STEPGRAPH_GRAPHS_KDA_STEP_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/program.h"
#include "schemas/model.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_kda_step_options_t {
  sg_allocator_t allocator;
  // Copied.
  const sg_model_t* model;
  sg_shape_limits_t limits;
  // What workspaces are sized for.
  const sg_target_t* target;
  // Slots of each pool, and the one that is never touched, or -1.
  int32_t slot_count;
  int32_t null_slot;
  // Whether output rows beyond the real tokens are set to zero.
  bool zero_tail;
  sg_table_source_t tables;
} sg_kda_step_options_t;

// Buffers of layer l, each named "layers.l.NAME", in this order:
enum {
  SG_KDA_BUFFER_Q = 0,     // [max_tokens, heads, key_dim]
  SG_KDA_BUFFER_K,         // [max_tokens, heads, key_dim]
  SG_KDA_BUFFER_V,         // [max_tokens, value_heads, value_dim]
  SG_KDA_BUFFER_RAW_G,     // [max_tokens, value_heads, key_dim]
  SG_KDA_BUFFER_RAW_BETA,  // [max_tokens, value_heads]
  SG_KDA_BUFFER_A_LOG,     // [value_heads] fp32
  SG_KDA_BUFFER_DT_BIAS,   // [value_heads, key_dim] fp32
  SG_KDA_BUFFER_STATE,     // [slots, value_heads, value_dim, key_dim]
  SG_KDA_BUFFER_O,         // [max_tokens, value_heads, value_dim]
  SG_KDA_BUFFERS_PER_LAYER,
};

typedef struct sg_kda_step_t sg_kda_step_t;

// SG_STATUS_UNSUPPORTED with the numbers when an op cannot do the model.
// Given tables (SG_TABLES_GIVEN) add two buffers behind those of the layers:
// "chunk_indices" and "chunk_offsets".
SG_MUST_USE sg_status_t sg_kda_step_create(const sg_kda_step_options_t* options,
                                           sg_kda_step_t** out_step);

// Accepts NULL.
void sg_kda_step_destroy(sg_kda_step_t* step);

// Lives as long as |step|.
const sg_program_t* sg_kda_step_program(const sg_kda_step_t* step);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_GRAPHS_KDA_STEP_H_
