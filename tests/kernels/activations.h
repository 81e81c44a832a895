// SPDX-License-Identifier: Apache-2.0
//
// Tensors of the activation dtype in tests: random values, single elements,
// and what rounding to the dtype may cost.

#ifndef STEPGRAPH_TESTS_KERNELS_ACTIVATIONS_H_
#define STEPGRAPH_TESTS_KERNELS_ACTIVATIONS_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/common/host_convert.h"
#include "runtime/base/dtype.h"

// Uniform in [-1, 1), from a linear congruential generator (Knuth's MMIX).
static inline double random_unit(uint64_t* seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) * 0x1p-52 - 1.0;
}

static inline double activation_get(sg_dtype_t dtype, const void* tensor,
                                    int64_t index) {
  if (dtype == SG_DTYPE_FP32) return (double)((const float*)tensor)[index];
  const uint16_t narrow = ((const uint16_t*)tensor)[index];
  return (double)(dtype == SG_DTYPE_BF16 ? sg_float_from_bf16(narrow)
                                         : sg_float_from_fp16(narrow));
}

static inline void activation_set(sg_dtype_t dtype, void* tensor, int64_t index,
                                  double value) {
  if (dtype == SG_DTYPE_FP32) {
    ((float*)tensor)[index] = (float)value;
  } else if (dtype == SG_DTYPE_BF16) {
    ((uint16_t*)tensor)[index] = sg_bf16_from_float((float)value);
  } else {
    ((uint16_t*)tensor)[index] = sg_fp16_from_float((float)value);
  }
}

static inline void activation_fill(sg_dtype_t dtype, void* tensor,
                                   int64_t count, double value) {
  for (int64_t i = 0; i < count; ++i) activation_set(dtype, tensor, i, value);
}

// Largest error of an fp32 result within 5 units in the last place, stored in
// |dtype|: half a unit of that dtype besides, below its normal numbers half a
// subnormal step.
static inline double activation_tolerance(sg_dtype_t dtype, double expected) {
  const double relative = dtype == SG_DTYPE_FP32   ? 0.0
                          : dtype == SG_DTYPE_BF16 ? 0x1p-8
                                                   : 0x1p-11;
  const double absolute = dtype == SG_DTYPE_FP16 ? 0x1p-25 : 0.0;
  return fabs(expected) * (relative + 5 * 0x1p-23) + absolute;
}

#endif  // STEPGRAPH_TESTS_KERNELS_ACTIVATIONS_H_
