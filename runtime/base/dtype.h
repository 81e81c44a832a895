// SPDX-License-Identifier: Apache-2.0
//
// Element types of tensors. Plain C that host and device code both read.

#ifndef STEPGRAPH_RUNTIME_BASE_DTYPE_H_
#define STEPGRAPH_RUNTIME_BASE_DTYPE_H_

#include <stddef.h>

typedef enum sg_dtype_t {
  SG_DTYPE_FP32 = 0,
  SG_DTYPE_BF16 = 1,
  SG_DTYPE_FP16 = 2,
} sg_dtype_t;

static inline size_t sg_dtype_bytes(sg_dtype_t dtype) {
  return dtype == SG_DTYPE_FP32 ? 4 : 2;
}

// "fp32", "bf16" or "fp16", as JSON files spell them.
static inline const char* sg_dtype_name(sg_dtype_t dtype) {
  switch (dtype) {
    case SG_DTYPE_FP32:
      return "fp32";
    case SG_DTYPE_BF16:
      return "bf16";
    case SG_DTYPE_FP16:
      return "fp16";
  }
  return "unknown";
}

#endif  // STEPGRAPH_RUNTIME_BASE_DTYPE_H_
