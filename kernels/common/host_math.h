// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions of host kernels in fp32. Straight-line code without
// calls or branches, so that loops over them become vector code; the results
// are the same for a scalar and for every lane of a vector.
//
// Polynomials are the minimax ones of the Cephes library (expf, exp2f, logf);
// the largest errors, measured over all binades that kernels use, are below
// 2 units in the last place.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_MATH_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_MATH_H_

#include <stdint.h>
#include <string.h>

#define SG_LOG2_E 1.44269504088896341f

static inline uint32_t sg_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float sg_float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Adding 1.5 * 2^23 rounds |value| <= 2^21 to the nearest integer, which then
// stands in the low bits of the sum.
#define SG_ROUND_MAGIC 12582912.0f

// 2^n for the integer n in the low bits of |rounded| = n + SG_ROUND_MAGIC,
// times |mantissa|.
static inline float sg_scale_by_exponent(float mantissa, float rounded) {
  return sg_float_from_bits(sg_float_bits(mantissa) +
                            (sg_float_bits(rounded) << 23));
}

// 2^x for x in [-126, 127]; anything outside must be selected away.
static inline float sg_exp2_in_range(float x) {
  float rounded = x + SG_ROUND_MAGIC;
  float f = x - (rounded - SG_ROUND_MAGIC);
  float p = 1.535336188319500e-4f;
  p = p * f + 1.339887440266574e-3f;
  p = p * f + 9.618437357674640e-3f;
  p = p * f + 5.550332471162809e-2f;
  p = p * f + 2.402264791363012e-1f;
  p = p * f + 6.931472028550421e-1f;
  p = p * f + 1.0f;
  return sg_scale_by_exponent(p, rounded);
}

// 2^x and 2^-x for x in [-126, 126], by the same polynomial: its even powers
// and its odd ones, added and subtracted.
static inline void sg_exp2_both(float x, float* out_up, float* out_down) {
  float rounded = x + SG_ROUND_MAGIC;
  float f = x - (rounded - SG_ROUND_MAGIC);
  float square = f * f;
  float even = 1.535336188319500e-4f;
  even = even * square + 9.618437357674640e-3f;
  even = even * square + 2.402264791363012e-1f;
  even = even * square + 1.0f;
  float odd = 1.339887440266574e-3f;
  odd = odd * square + 5.550332471162809e-2f;
  odd = odd * square + 6.931472028550421e-1f;
  uint32_t exponent = sg_float_bits(rounded) << 23;
  *out_up = sg_float_from_bits(sg_float_bits(even + f * odd) + exponent);
  *out_down = sg_float_from_bits(sg_float_bits(even - f * odd) - exponent);
}

// Decays below 2^-64 are taken as 0: what they would leave of anything is far
// below the rounding of what it is added to, and products with them would run
// into subnormal numbers, which processors handle slowly.
#define SG_DECAY_FLOOR -64.0f

// 2^x of a base-2 log decay x <= 0 (values up to 127 are right as well).
static inline float sg_decay(float x) {
  float in_range = x > SG_DECAY_FLOOR ? x : SG_DECAY_FLOOR;
  float power = sg_exp2_in_range(in_range);
  return x < SG_DECAY_FLOOR ? 0.0f : power;
}

// e^x. The argument is clamped to [-87, 87], so that the result is positive
// and finite whatever |x| is, infinities included.
static inline float sg_exp_clamped(float x) {
  x = x > -87.0f ? x : -87.0f;
  x = x < 87.0f ? x : 87.0f;
  float rounded = x * SG_LOG2_E + SG_ROUND_MAGIC;
  float n = rounded - SG_ROUND_MAGIC;
  // ln 2 in two parts, the first with enough trailing zeros for an exact n * c.
  float f = x - n * 0.693359375f;
  f = f - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = (p * f) * f + f + 1.0f;
  return sg_scale_by_exponent(p, rounded);
}

// 1 / x for x in [1, 2^126). Vector division takes three times as long as
// this: a guess, right to 12 %, from the exponent's sign turned round, and two
// steps that cube its error.
static inline float sg_reciprocal(float x) {
  float guess = sg_float_from_bits(0x7ef311c7u - sg_float_bits(x));
  float error = 1.0f - x * guess;
  guess = guess + guess * (error * error + error);
  error = 1.0f - x * guess;
  return guess + guess * (error * error + error);
}

// 1 / (1 + e^-x), and a normal number above 0 for x far below 0.
static inline float sg_sigmoid(float x) {
  return sg_reciprocal(1.0f + sg_exp_clamped(-x));
}

// ln(1 + y) for y in [0, 1], with full relative accuracy near 0. Where 1 + y
// is above sqrt 2 it is halved first; both reduced arguments are exact.
static inline float sg_log1p_unit(float y) {
  int upper = y > 0.41421356f;
  float t = upper ? (y - 1.0f) * 0.5f : y;
  float p = 7.0376836292e-2f;
  p = p * t - 1.1514610310e-1f;
  p = p * t + 1.1676998740e-1f;
  p = p * t - 1.2420140846e-1f;
  p = p * t + 1.4249322787e-1f;
  p = p * t - 1.6668057665e-1f;
  p = p * t + 2.0000714765e-1f;
  p = p * t - 2.4999993993e-1f;
  p = p * t + 3.3333331174e-1f;
  float square = t * t;
  float log = t + (p * t * square - 0.5f * square);
  return upper ? log + 0.69314718056f : log;
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), exactly 0 for x below -87.
static inline float sg_softplus(float x) {
  float magnitude = x < 0.0f ? -x : x;
  float tail = sg_log1p_unit(sg_exp_clamped(-magnitude));
  tail = magnitude > 87.0f ? 0.0f : tail;
  return (x > 0.0f ? x : 0.0f) + tail;
}

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_MATH_H_
