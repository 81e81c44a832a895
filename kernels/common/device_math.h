// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions and conversions of device code in fp32, the same
// operations as host_math.h and host_convert.h. Errors are a few units in the
// last place.

#ifndef STEPGRAPH_KERNELS_COMMON_DEVICE_MATH_H_
#define STEPGRAPH_KERNELS_COMMON_DEVICE_MATH_H_

#include "kernels/common/device.h"
#include "runtime/base/dtype.h"

#define SG_LOG2_E 1.44269504088896341f

// e^x with the argument clamped to [-87, 87]: positive and finite whatever |x|
// is. The rounding of x * log2(e), which grows with x, is put back.
SG_DEVICE float sg_exp_clamped(float x) {
  x = x > -87.0f ? x : -87.0f;
  x = x < 87.0f ? x : 87.0f;
  const float power = x * SG_LOG2_E;
  const float lost = __builtin_fmaf(x, SG_LOG2_E, -power) + x * 1.92596299e-8f;
  return __builtin_fmaf(sg_exp2(power), lost * 0.69314718f, sg_exp2(power));
}

// 1 / (1 + e^-x), and a normal number above 0 for x far below 0.
SG_DEVICE float sg_sigmoid(float x) {
  return sg_reciprocal(1.0f + sg_exp_clamped(-x));
}

// ln(1 + y) for y in [0, 1], with full relative accuracy near 0: the series
// of 2 artanh(t), t = y / (2 + y) <= 1/3, up to t^17 / 17 < 2^-31.
SG_DEVICE float sg_log1p_unit(float y) {
  const float t = y / (2.0f + y);
  const float s = t * t;
  float p = 1.0f / 17.0f;
  p = p * s + 1.0f / 15.0f;
  p = p * s + 1.0f / 13.0f;
  p = p * s + 1.0f / 11.0f;
  p = p * s + 1.0f / 9.0f;
  p = p * s + 1.0f / 7.0f;
  p = p * s + 1.0f / 5.0f;
  p = p * s + 1.0f / 3.0f;
  return 2.0f * (t + t * (s * p));
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), exactly 0 for x below -87.
SG_DEVICE float sg_softplus(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float tail = sg_log1p_unit(sg_exp_clamped(-magnitude));
  return (x > 0.0f ? x : 0.0f) + (magnitude > 87.0f ? 0.0f : tail);
}

// 2^exponent, 0 below -126; |exponent| is at most 127.
SG_DEVICE float sg_power_of_two(int32_t exponent) {
  return sg_float_of((uint32_t)(exponent > -127 ? exponent + 127 : 0) << 23);
}

SG_DEVICE float sg_float_of_bf16(uint16_t bits) {
  return sg_float_of((uint32_t)bits << 16);
}

// Of the two that sg_bf16_pair_of makes a word of.
SG_DEVICE float sg_bf16_pair_low(uint32_t pair) {
  return sg_float_of(pair << 16);
}
SG_DEVICE float sg_bf16_pair_high(uint32_t pair) {
  return sg_float_of(pair & 0xffff0000u);
}

// Elements of tensors whose dtype is known when the kernel runs, as they are in
// memory: what is loaded ahead of its use must not be computed with before.
SG_DEVICE uint32_t sg_load_bits(int32_t dtype, const void* tensor,
                                int64_t offset) {
  return dtype == SG_DTYPE_FP32 ? ((const uint32_t*)tensor)[offset]
                                : ((const uint16_t*)tensor)[offset];
}
SG_DEVICE float sg_element_of_bits(int32_t dtype, uint32_t bits) {
  if (dtype == SG_DTYPE_FP32) return sg_float_of(bits);
  return dtype == SG_DTYPE_BF16 ? sg_float_of_bf16((uint16_t)bits)
                                : sg_float_of_fp16((uint16_t)bits);
}
SG_DEVICE float sg_load_element(int32_t dtype, const void* tensor,
                                int64_t offset) {
  return sg_element_of_bits(dtype, sg_load_bits(dtype, tensor, offset));
}

SG_DEVICE void sg_store_element(int32_t dtype, void* tensor, int64_t offset,
                                float value) {
  if (dtype == SG_DTYPE_FP32) {
    ((float*)tensor)[offset] = value;
  } else {
    ((uint16_t*)tensor)[offset] =
        dtype == SG_DTYPE_BF16 ? sg_bf16_of(value) : sg_fp16_of(value);
  }
}

SG_DEVICE int64_t sg_element_bytes(int32_t dtype) {
  return dtype == SG_DTYPE_FP32 ? 4 : 2;
}

#endif  // STEPGRAPH_KERNELS_COMMON_DEVICE_MATH_H_
