// SPDX-License-Identifier: Apache-2.0
//
// bf16 and IEEE half precision to fp32 and back, in integer arithmetic without
// branches so that loops over them become vector code. Narrowing rounds to
// nearest, ties to even; a NaN stays a NaN.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_CONVERT_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_CONVERT_H_

#include <stdint.h>

#include "kernels/common/host_math.h"

static inline float sg_float_from_bf16(uint16_t value) {
  return sg_float_from_bits((uint32_t)value << 16);
}

static inline uint16_t sg_bf16_from_float(float value) {
  uint32_t bits = sg_float_bits(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // Rounding could carry a NaN's payload into the sign: make it quiet instead.
  uint32_t quiet = (bits >> 16) | 0x40u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline float sg_float_from_fp16(uint16_t value) {
  uint32_t magnitude = (uint32_t)(value & 0x7fffu) << 13;
  // The exponent's bias differs by 112; the multiplication also normalises
  // subnormal halves.
  uint32_t finite = sg_float_bits(sg_float_from_bits(magnitude) * 0x1p112f);
  uint32_t special = magnitude | 0x7f800000u;
  uint32_t bits = magnitude >= (0x7c00u << 13) ? special : finite;
  return sg_float_from_bits(bits | (uint32_t)(value & 0x8000u) << 16);
}

static inline uint16_t sg_fp16_from_float(float value) {
  uint32_t bits = sg_float_bits(value);
  uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the result is subnormal: adding 0.5 leaves, in the low bits,
  // the value in units of 2^-24, rounded by the addition.
  uint32_t subnormal =
      sg_float_bits(sg_float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal =
      (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
  half = magnitude >= (143u << 23) ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return (uint16_t)(half | ((bits >> 16) & 0x8000u));
}

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_CONVERT_H_
