// SPDX-License-Identifier: Apache-2.0
//
// The step program of KDA layers: batch ingest, chunk metadata once, and then
// for each layer the short convolution, the recurrent form for decodes, the
// chunk form for the rest, and the gated norm. A decode shape records the
// recurrent form alone, a prefill shape the chunk form alone. Convolution and
// norm are options, for callers that have ops of their own for them.

#ifndef STEPGRAPH_GRAPHS_KDA_STEP_H_
#define STEPGRAPH_GRAPHS_KDA_STEP_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/common/batch_tables.h"
#include "runtime/program.h"
#include "schemas/model.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_kda_step_t sg_kda_step_t;

// A piece of a step of the caller's own, while it is recorded. The batch has
// been taken in and checked when the first piece begins.
typedef struct sg_kda_segment_t {
  // Where the caller's launches go. Under capture nothing may be called that
  // waits, queries or allocates, and streams that are forked must be joined.
  hipStream_t stream;
  // Whether the piece runs at once, is captured, or is warmed up with an empty
  // batch, in which case a caller may do what a first launch needs.
  sg_record_mode_t mode;
  int32_t piece;
  // What grids and workspaces are to be sized by.
  sg_step_capacity_t capacity;
  // Device pointers for the caller's kernels.
  sg_batch_tables_t tables;
  // For sg_kda_segment_layer.
  const sg_kda_step_t* step;
  const sg_recording_t* recording;
} sg_kda_segment_t;

// Enqueues the piece |segment->piece|: the caller's launches and, in any order
// between them, layers by sg_kda_segment_layer; at least one launch or layer.
// Called by whichever thread runs or captures, possibly again for the same
// piece; under the background policy by both at once, so that streams and
// events of the caller's own must not be shared between modes then. A failure
// in a warm-up or a capture leaves the shape to eager steps; in an eager step
// it ends the executor with SG_STATUS_DEVICE, since what was enqueued before it
// cannot be taken back.
typedef sg_status_t (*sg_kda_record_function_t)(
    void* self, const sg_kda_segment_t* segment);

// Enqueues layer |layer| with its bound buffers; for record functions.
SG_MUST_USE sg_status_t sg_kda_segment_layer(const sg_kda_segment_t* segment,
                                             int32_t layer);

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
  // Whether q, k and v come from the short convolution, whose inputs then take
  // their places (kernels/short_conv/params.h).
  bool with_conv;
  // Whether o is normalised and gated in place (kernels/gated_norm/params.h).
  bool with_norm;
  sg_table_source_t tables;
  // A step of the caller's own, so that projections and KDA of all layers are
  // one graph; NULL for the layers alone, one after another.
  sg_kda_record_function_t record;
  void* record_self;
  // Pieces that |record| cuts a step into, for callers that run something
  // between them (sg_executor_begin); 0 or 1 for none. They share the metadata
  // of the first.
  int32_t piece_count;
} sg_kda_step_options_t;

// Buffers of a layer. Those of layer l are called "layers.l.NAME", NAME being
// the enumerator's in lower case. Types are the activation dtype, or what
// stands behind the shape; raw_g and raw_beta are fp32 where gates and betas
// are given. channels is 2 * heads * key_dim + value_heads * value_dim.
typedef enum sg_kda_buffer_t {
  // Without convolution.
  SG_KDA_BUFFER_Q = 0,  // [max_tokens, heads, key_dim]
  SG_KDA_BUFFER_K,      // [max_tokens, heads, key_dim]
  SG_KDA_BUFFER_V,      // [max_tokens, value_heads, value_dim]
  // With convolution: its inputs packed q | k | v, weights and histories.
  SG_KDA_BUFFER_QKV,          // [max_tokens, channels]
  SG_KDA_BUFFER_CONV_WEIGHT,  // [channels, conv_width] fp32
  SG_KDA_BUFFER_CONV_CACHE,   // [slots, conv_width - 1, channels]
  // Always.
  SG_KDA_BUFFER_RAW_G,     // [max_tokens, value_heads, key_dim]
  SG_KDA_BUFFER_RAW_BETA,  // [max_tokens, value_heads]
  SG_KDA_BUFFER_A_LOG,     // [value_heads] fp32
  SG_KDA_BUFFER_DT_BIAS,   // [value_heads, key_dim] fp32
  SG_KDA_BUFFER_STATE,     // [slots, value_heads, value_dim, key_dim] fp32
  SG_KDA_BUFFER_O,         // [max_tokens, value_heads, value_dim]
  // With norm.
  SG_KDA_BUFFER_OUTPUT_GATE,  // [max_tokens, value_heads, value_dim]
  SG_KDA_BUFFER_NORM_WEIGHT,  // [value_dim] fp32
} sg_kda_buffer_t;

enum { SG_KDA_BUFFER_COUNT = SG_KDA_BUFFER_NORM_WEIGHT + 1 };

// SG_STATUS_UNSUPPORTED with the numbers when an op cannot do the model.
// Given tables (SG_TABLES_GIVEN) add two buffers behind those of the layers:
// "chunk_indices" and "chunk_offsets".
SG_MUST_USE sg_status_t sg_kda_step_create(const sg_kda_step_options_t* options,
                                           sg_kda_step_t** out_step);

// Accepts NULL.
void sg_kda_step_destroy(sg_kda_step_t* step);

// Lives as long as |step|.
const sg_program_t* sg_kda_step_program(const sg_kda_step_t* step);

// Where |buffer| of |layer| stands among the program's buffers, or -1 where
// |step| has no such buffer.
int32_t sg_kda_step_buffer(const sg_kda_step_t* step, int32_t layer,
                           sg_kda_buffer_t buffer);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_GRAPHS_KDA_STEP_H_
