// SPDX-License-Identifier: Apache-2.0

#include "schemas/tensor_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/checked.h"

typedef struct dtype_t {
  const char* name;
  size_t bytes;
} dtype_t;

static const dtype_t dtypes[SG_TENSOR_DTYPE_COUNT] = {
    [SG_TENSOR_BOOL] = {"BOOL", 1},       [SG_TENSOR_U8] = {"U8", 1},
    [SG_TENSOR_I8] = {"I8", 1},           [SG_TENSOR_F8_E5M2] = {"F8_E5M2", 1},
    [SG_TENSOR_F8_E4M3] = {"F8_E4M3", 1}, [SG_TENSOR_U16] = {"U16", 2},
    [SG_TENSOR_I16] = {"I16", 2},         [SG_TENSOR_F16] = {"F16", 2},
    [SG_TENSOR_BF16] = {"BF16", 2},       [SG_TENSOR_U32] = {"U32", 4},
    [SG_TENSOR_I32] = {"I32", 4},         [SG_TENSOR_F32] = {"F32", 4},
    [SG_TENSOR_U64] = {"U64", 8},         [SG_TENSOR_I64] = {"I64", 8},
    [SG_TENSOR_F64] = {"F64", 8},
};

const char* sg_tensor_dtype_name(sg_tensor_dtype_t dtype) {
  return dtypes[dtype].name;
}

size_t sg_tensor_dtype_bytes(sg_tensor_dtype_t dtype) {
  return dtypes[dtype].bytes;
}

bool sg__tensor_bytes(const sg_tensor_t* tensor, size_t* out_bytes) {
  *out_bytes = 0;
  size_t bytes = sg_tensor_dtype_bytes(tensor->dtype);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    const int64_t dimension = tensor->shape[i];
    if (dimension < 0 || (uint64_t)dimension > SIZE_MAX ||
        !sg_checked_mul(bytes, (size_t)dimension, &bytes)) {
      return false;
    }
  }
  *out_bytes = bytes;
  return true;
}

void sg__tensor_text(const sg_tensor_t* tensor,
                     char out_text[SG_TENSOR_TEXT_BYTES]) {
  snprintf(out_text, SG_TENSOR_TEXT_BYTES, "%s [",
           sg_tensor_dtype_name(tensor->dtype));
  for (int32_t i = 0; i < tensor->rank; ++i) {
    const size_t used = strlen(out_text);
    snprintf(out_text + used, SG_TENSOR_TEXT_BYTES - used, "%s%" PRId64,
             i == 0 ? "" : ", ", tensor->shape[i]);
  }
  const size_t used = strlen(out_text);
  snprintf(out_text + used, SG_TENSOR_TEXT_BYTES - used, "]");
}
