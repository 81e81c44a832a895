// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions and conversions of host kernels against the C library
// in double precision.

#include <math.h>

#include "kernels/common/host_convert.h"
#include "kernels/common/host_math.h"
#include "tests/check.h"
#include "tests/kernels/kda_inputs.h"

// Difference in units in the last place of the expected number.
static double ulps(float actual, double expected) {
  if (expected == 0.0) return actual == 0.0f ? 0.0 : (double)INFINITY;
  int exponent;
  frexp(expected, &exponent);
  return fabs((double)actual - expected) / ldexp(1.0, exponent - 24);
}

// Largest error of |function| over numbers from |low| to |high|.
static double worst_ulps(float (*function)(float), double (*exact)(double),
                         double low, double high) {
  double worst = 0.0;
  for (int32_t i = 0; i <= 200000; ++i) {
    const float x = (float)(low + (high - low) * i / 200000.0);
    worst = fmax(worst, ulps(function(x), exact(x)));
  }
  return worst;
}

static float both_up(float x) {
  float up, down;
  sg_exp2_both(x, &up, &down);
  return up;
}

static float both_down(float x) {
  float up, down;
  sg_exp2_both(x, &up, &down);
  return down;
}

static double exact_exp2_of_minus(double x) { return exp2(-x); }
static double exact_reciprocal(double x) { return 1.0 / x; }
static double exact_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static double exact_softplus(double x) {
  return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

static void test_math_errors(void** state) {
  (void)state;
  assert_true(worst_ulps(sg_exp2_in_range, exp2, -126.0, 127.0) < 2.0);
  assert_true(worst_ulps(sg_exp2_in_range, exp2, -0.01, 0.01) < 1.0);
  assert_true(worst_ulps(sg_decay, exp2, -64.0, 0.0) < 2.0);
  assert_true(worst_ulps(sg_exp_clamped, exp, -87.0, 87.0) < 2.0);
  assert_true(worst_ulps(sg_log1p_unit, log1p, 0.0, 1.0) < 2.0);
  assert_true(worst_ulps(sg_log1p_unit, log1p, 0.0, 1e-6) < 2.0);
  assert_true(worst_ulps(both_up, exp2, -126.0, 126.0) < 3.0);
  assert_true(worst_ulps(both_down, exact_exp2_of_minus, -126.0, 126.0) < 3.0);
  assert_true(worst_ulps(sg_reciprocal, exact_reciprocal, 1.0, 2.0) < 2.0);
  assert_true(worst_ulps(sg_reciprocal, exact_reciprocal, 1.0, 1e6) < 2.0);
  assert_true(worst_ulps(sg_reciprocal, exact_reciprocal, 1.0, 8e37) < 2.0);
  // Sums and quotients of those add a rounding or two.
  assert_true(worst_ulps(sg_sigmoid, exact_sigmoid, -86.0, 86.0) < 4.0);
  assert_true(worst_ulps(sg_softplus, exact_softplus, -87.0, 100.0) < 4.0);
}

static void test_math_limits(void** state) {
  (void)state;
  const float infinity = (float)INFINITY;
  assert_true(sg_decay(0.0f) == 1.0f);
  assert_true(both_up(0.0f) == 1.0f && both_down(0.0f) == 1.0f);
  assert_true(sg_reciprocal(1.0f) == 1.0f);
  assert_true(sg_decay(-65.0f) == 0.0f);
  assert_true(sg_decay(-infinity) == 0.0f);
  assert_true(isfinite(sg_exp_clamped(infinity)));
  assert_true(sg_exp_clamped(-infinity) > 0.0f);
  assert_true(sg_sigmoid(infinity) == 1.0f);
  assert_true(sg_sigmoid(-infinity) < 1e-37f);
  assert_true(sg_softplus(-infinity) == 0.0f);
  assert_true(sg_softplus(infinity) == infinity);
}

static void test_convert_narrow_numbers_survive(void** state) {
  (void)state;
  for (uint32_t i = 0; i < 0x10000u; ++i) {
    const uint16_t narrow = (uint16_t)i;
    const float from_bf16 = sg_float_from_bf16(narrow);
    const float from_fp16 = sg_float_from_fp16(narrow);
    if (isnan(from_bf16)) {
      assert_true(isnan(sg_float_from_bf16(sg_bf16_from_float(from_bf16))));
    } else {
      assert_int_equal(sg_bf16_from_float(from_bf16), narrow);
    }
    if (isnan(from_fp16)) {
      assert_true((i & 0x7fffu) > 0x7c00u);
      assert_true(isnan(sg_float_from_fp16(sg_fp16_from_float(from_fp16))));
    } else {
      assert_int_equal(sg_fp16_from_float(from_fp16), narrow);
    }
  }
  // Values by hand: the smallest subnormal, one, the largest.
  assert_true(sg_float_from_fp16(0x0001) == 0x1p-24f);
  assert_true(sg_float_from_fp16(0x3c00) == 1.0f);
  assert_true(sg_float_from_fp16(0xfbff) == -65504.0f);
  assert_true(sg_float_from_bf16(0x3f80) == 1.0f);
}

static void test_convert_rounds_to_nearest_even(void** state) {
  (void)state;
  uint64_t stream = 7;
  for (int32_t i = 0; i < 200000; ++i) {
    // Every third number lies half way between two of bf16, every third between
    // two of fp16.
    uint32_t bits = (uint32_t)kda_random_bits(&stream);
    if (i % 3 == 1) bits = (bits & 0xffff0000u) | 0x8000u;
    if (i % 3 == 2) bits = (bits & 0xffffe000u) | 0x1000u;
    const float value = sg_float_from_bits(bits);
    if (!isfinite(value)) continue;
    const double as_bf16 = kda_round(SG_DTYPE_BF16, value);
    if (fabs(as_bf16) <= 0x1.fep127) {
      assert_true(sg_float_from_bf16(sg_bf16_from_float(value)) == as_bf16);
    }
    // Exponents that fp16 has, subnormals included.
    const float small = sg_float_from_bits((bits & 0x807fffffu) |
                                           (uint32_t)(98 + i % 45) << 23);
    const double as_fp16 = kda_round(SG_DTYPE_FP16, small);
    const float actual = sg_float_from_fp16(sg_fp16_from_float(small));
    assert_true(fabs(as_fp16) > 65504.0 ? isinf(actual) : actual == as_fp16);
  }
  assert_true(isinf(sg_float_from_fp16(sg_fp16_from_float(1e6f))));
  assert_true(isinf(sg_float_from_bf16(sg_bf16_from_float(3.4e38f))));
  // A NaN whose payload is in the low bits only.
  assert_true(isnan(
      sg_float_from_bf16(sg_bf16_from_float(sg_float_from_bits(0x7f800001u)))));
  assert_true(isnan(
      sg_float_from_fp16(sg_fp16_from_float(sg_float_from_bits(0xffffffffu)))));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_math_errors),
      cmocka_unit_test(test_math_limits),
      cmocka_unit_test(test_convert_narrow_numbers_survive),
      cmocka_unit_test(test_convert_rounds_to_nearest_even),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
