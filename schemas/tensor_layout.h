// SPDX-License-Identifier: Apache-2.0
//
// Internal: what the reader and the writer of safetensors files share.

#ifndef STEPGRAPH_SCHEMAS_TENSOR_LAYOUT_H_
#define STEPGRAPH_SCHEMAS_TENSOR_LAYOUT_H_

#include <stdbool.h>
#include <stddef.h>

#include "schemas/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SG_SAFETENSORS_LENGTH_BYTES = 8,
  SG_SAFETENSORS_MAX_HEADER_BYTES = 16 << 20,
  SG_TENSOR_TEXT_BYTES = 96,
};

#define SG_SAFETENSORS_METADATA_KEY "__metadata__"

// Bytes that dtype, rank and shape of |tensor| make. False when they overflow;
// a product before a dimension of 0 counts.
bool sg__tensor_bytes(const sg_tensor_t* tensor, size_t* out_bytes);

// Writes dtype and shape, e.g. "BF16 [7, 2, 64]".
void sg__tensor_text(const sg_tensor_t* tensor,
                     char out_text[SG_TENSOR_TEXT_BYTES]);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_TENSOR_LAYOUT_H_
