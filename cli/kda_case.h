// SPDX-License-Identifier: Apache-2.0
//
// A batch of one KDA layer as a safetensors file: what stepgraph kda reads.
//
//   q, k              [T, heads, key_dim]
//   v                 [T, value_heads, value_dim]
//   raw_g             [T, value_heads, key_dim]      F32 where gates are given
//   raw_beta          [T, value_heads]               F32 where betas are given
//   A_log             [value_heads] F32              not where gates are given
//   dt_bias           [value_heads, key_dim] F32     optional: 0
//   query_start_loc   [N + 1] I32 or I64
//   computed_lens     [N] I32 or I64                 optional: 1 where a past
//                                                    is given, else 0
//   slots             [N] I32 or I64                 optional: 0 to N - 1
//   initial_state     [N, value_heads, value_dim, key_dim]
//                                                    the model's state type
//   conv_weight       [channels, conv_width] F32     optional: no convolution
//   conv_cache        [N, conv_width - 1, channels]
//   norm_weight       [value_dim] F32                optional: no norm
//   output_gate       [T, value_heads, value_dim]
//
// T tokens of N sequences lie behind each other, as query_start_loc says.
// Without a type in this list tensors have the model's activation type; nothing
// is converted. channels is 2 * heads * key_dim + value_heads * value_dim, in
// the order q, k, v.
//
// initial_state and conv_cache are the past of the sequences, which one with a
// computed length above 0 needs and a fresh one does not read. A slot below 0
// is none; others may stand once.
//
// Everything else is SG_STATUS_INVALID_DATA, with a message that names file and
// tensor, what was found and what was expected: a tensor that is missing, or
// that the layer would not read, or of another type or shape.

#ifndef STEPGRAPH_CLI_KDA_CASE_H_
#define STEPGRAPH_CLI_KDA_CASE_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/kda_geometry.h"
#include "schemas/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_kda_case_tensor_t {
  SG_KDA_CASE_Q = 0,
  SG_KDA_CASE_K,
  SG_KDA_CASE_V,
  SG_KDA_CASE_RAW_G,
  SG_KDA_CASE_RAW_BETA,
  SG_KDA_CASE_A_LOG,
  SG_KDA_CASE_DT_BIAS,
  SG_KDA_CASE_QUERY_START_LOC,
  SG_KDA_CASE_COMPUTED_LENS,
  SG_KDA_CASE_SLOTS,
  SG_KDA_CASE_INITIAL_STATE,
  SG_KDA_CASE_CONV_WEIGHT,
  SG_KDA_CASE_CONV_CACHE,
  SG_KDA_CASE_NORM_WEIGHT,
  SG_KDA_CASE_OUTPUT_GATE,
} sg_kda_case_tensor_t;

enum { SG_KDA_CASE_TENSOR_COUNT = SG_KDA_CASE_OUTPUT_GATE + 1 };

enum { SG_KDA_CASE_MAX_SLOTS = 1 << 20 };

// Owns the file and the arrays. Not changed after it was read.
typedef struct sg_kda_case_t {
  const char* path;
  sg_safetensors_t file;
  // In the file; NULL where it has none.
  const sg_tensor_t* tensors[SG_KDA_CASE_TENSOR_COUNT];
  bool has_conv;
  bool has_norm;
  int32_t token_count;
  int32_t sequence_count;
  // sequence_count + 1 rows where the sequences begin and end.
  int32_t* starts;
  // One a sequence.
  int32_t* computed_lens;
  int32_t* slots;
  // Slots that a pool must have, at least 1.
  int32_t slot_count;
} sg_kda_case_t;

// What files call the model's activation and state types.
sg_tensor_dtype_t sg_kda_case_activation_type(
    const sg_kda_geometry_t* geometry);
sg_tensor_dtype_t sg_kda_case_state_type(const sg_kda_geometry_t* geometry);

// Reads the file at |path|, which must outlive the case, for a layer of
// |geometry|. Pools will have |slot_count| slots, or with 0 as many as the case
// needs.
SG_MUST_USE sg_status_t sg_kda_case_load(const char* path,
                                         const sg_kda_geometry_t* geometry,
                                         int32_t slot_count,
                                         sg_kda_case_t* out_case);

// Accepts NULL, a zeroed case and one whose reading failed.
void sg_kda_case_deinitialize(sg_kda_case_t* kda_case);

// Internal: finds the tensors of kda_case->file, and checks which there are,
// their types and shapes. Sets everything but the arrays.
SG_MUST_USE sg_status_t sg__kda_case_find_tensors(
    const sg_kda_geometry_t* geometry, sg_kda_case_t* kda_case);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_KDA_CASE_H_
