// SPDX-License-Identifier: Apache-2.0
//
// Inputs that break kernels: resets, long memories, repeated keys, extreme
// weights, numbers of very different sizes; and prefills in parts.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/kernels/kda_check.h"

// Rounding of o to bf16 is a few 1e-3; where keys repeat, errors of earlier
// values come back with each token that corrects them.
static double hard_tolerance(sg_dtype_t dtype) {
  return dtype == SG_DTYPE_BF16 ? 1e-2 : 1e-4;
}

static void check_kind(kda_inputs_kind_t kind, const int32_t* lens,
                       int32_t count) {
  for (int32_t gate = SG_GATE_SOFTPLUS; gate <= SG_GATE_GIVEN; ++gate) {
    for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_BF16; ++dtype) {
      kda_case_t test = kda_case_of(count, lens);
      test.inputs = kind;
      test.geometry.gate_kind = (sg_gate_kind_t)gate;
      test.geometry.activation_dtype = (sg_dtype_t)dtype;
      test.geometry.beta_kind =
          gate == SG_GATE_GIVEN ? SG_BETA_GIVEN : SG_BETA_SIGMOID;
      kda_check_step(&test, hard_tolerance((sg_dtype_t)dtype));
    }
  }
}

static void test_kda_extreme_inputs(void** state) {
  (void)state;
  const int32_t lens[] = {1, 200, 1, 65};
  for (int32_t kind = KDA_INPUTS_HARD; kind <= KDA_INPUTS_MINUS_INFINITY;
       ++kind) {
    check_kind((kda_inputs_kind_t)kind, lens, 4);
  }
}

// The limits for fp32 and bf16 hold for the reference's hard inputs as well.
static void test_kda_hard_inputs_are_accurate(void** state) {
  (void)state;
  const int32_t lens[] = {0, 1, 63, 64, 65, 200};
  for (int32_t gate = SG_GATE_SOFTPLUS; gate <= SG_GATE_GIVEN; ++gate) {
    for (int32_t isa = 0; isa < SG_HOST_ISA_COUNT; ++isa) {
      if (!sg__host_isa_available((sg_host_isa_t)isa)) continue;
      kda_case_t test = kda_case_of(6, lens);
      test.inputs = KDA_INPUTS_HARD;
      test.isa = (sg_host_isa_t)isa;
      test.geometry.gate_kind = (sg_gate_kind_t)gate;
      test.geometry.key_dim = 128;
      test.geometry.value_dim = 128;
      kda_check_step(&test, 0.0);
      test.geometry.activation_dtype = SG_DTYPE_BF16;
      kda_check_step(&test, 0.0);
    }
  }
}

// Inputs of |part|: the tokens of |whole| from |first| on, starting from the
// state that |before| left, or from the whole's own where that is NULL.
static void cut_inputs(const kda_case_t* whole, const kda_inputs_t* inputs,
                       int64_t first, const kda_run_t* before,
                       const kda_case_t* part, kda_inputs_t* out_part) {
  const sg_kda_geometry_t* geometry = &whole->geometry;
  kda_inputs_initialize(part, out_part);
  const int64_t count = kda_case_tokens(part);
  const int64_t heads = geometry->value_heads;
  const int64_t keys = (int64_t)geometry->heads * geometry->key_dim;
  const int64_t gates = heads * geometry->key_dim;
  const int64_t values = heads * geometry->value_dim;
  const size_t bytes = sizeof(double) * (size_t)count;
  memcpy(out_part->q, inputs->q + first * keys, bytes * (size_t)keys);
  memcpy(out_part->k, inputs->k + first * keys, bytes * (size_t)keys);
  memcpy(out_part->v, inputs->v + first * values, bytes * (size_t)values);
  memcpy(out_part->raw_g, inputs->raw_g + first * gates, bytes * (size_t)gates);
  memcpy(out_part->raw_beta, inputs->raw_beta + first * heads,
         bytes * (size_t)heads);
  memcpy(out_part->a_log, inputs->a_log, sizeof(double) * (size_t)heads);
  memcpy(out_part->dt_bias, inputs->dt_bias, sizeof(double) * (size_t)gates);
  if (before == NULL) {
    memcpy(out_part->states, inputs->states,
           sizeof(double) * (size_t)(values * geometry->key_dim));
    return;
  }
  double* s = out_part->states;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t v = 0; v < geometry->value_dim; ++v) {
      for (int64_t k = 0; k < geometry->key_dim; ++k) {
        *s++ = kda_run_state(before, 0, h, v, k);
      }
    }
  }
}

// Adds the squares of the outputs of |run| that |o| expects.
static void add_outputs(const kda_run_t* run, const double* o,
                        double* difference, double* expected) {
  const sg_kda_geometry_t* geometry = &run->test.geometry;
  for (int64_t t = 0; t < kda_case_tokens(&run->test); ++t) {
    for (int64_t h = 0; h < geometry->value_heads; ++h) {
      for (int64_t v = 0; v < geometry->value_dim; ++v, ++o) {
        const double error = kda_run_output(run, t, h, v) - *o;
        *difference += error * error;
        *expected += *o * *o;
      }
    }
  }
}

static void test_kda_prefill_split_anywhere(void** state) {
  (void)state;
  const int32_t length = 130;
  kda_case_t whole = kda_case_of(1, &length);
  kda_inputs_t inputs;
  kda_expected_t expected;
  kda_inputs_initialize(&whole, &inputs);
  kda_expected_initialize(&whole, &inputs, &expected);
  for (int32_t cut = 1; cut < length; ++cut) {
    const int32_t rest = length - cut;
    kda_case_t first = kda_case_of(1, &cut);
    kda_case_t second = kda_case_of(1, &rest);
    kda_inputs_t first_inputs, second_inputs;
    kda_run_t first_run, second_run;
    cut_inputs(&whole, &inputs, 0, NULL, &first, &first_inputs);
    kda_run_initialize(&first, &first_inputs, &first_run);
    kda_run_step(&first_run);
    cut_inputs(&whole, &inputs, cut, &first_run, &second, &second_inputs);
    kda_run_initialize(&second, &second_inputs, &second_run);
    kda_run_step(&second_run);
    double difference = 0.0, sum = 0.0;
    add_outputs(&first_run, expected.o, &difference, &sum);
    add_outputs(&second_run, expected.o + cut * 2 * 64, &difference, &sum);
    assert_true(sqrt(difference / sum) < 1e-5);
    // The second part's reference is the whole one's state.
    const kda_expected_t end = {.o = expected.o + cut * 2 * 64,
                                .states = expected.states};
    assert_true(kda_errors_of(&second_run, &end).state < 1e-5);
    kda_run_deinitialize(&first_run);
    kda_run_deinitialize(&second_run);
    kda_inputs_deinitialize(&first_inputs);
    kda_inputs_deinitialize(&second_inputs);
  }
  kda_expected_deinitialize(&expected);
  kda_inputs_deinitialize(&inputs);
}

// Relative L2 error of the outputs of one column from token |first| on.
static double column_error(const kda_run_t* run, const kda_expected_t* expected,
                           int64_t first, int64_t column) {
  const sg_kda_geometry_t* geometry = &run->test.geometry;
  double difference = 0.0, sum = 0.0;
  for (int64_t t = first; t < kda_case_tokens(&run->test); ++t) {
    for (int64_t h = 0; h < geometry->value_heads; ++h) {
      const double o =
          expected->o[(t * geometry->value_heads + h) * geometry->value_dim +
                      column];
      const double error = kda_run_output(run, t, h, column) - o;
      difference += error * error;
      sum += o * o;
    }
  }
  return sqrt(difference / sum);
}

static void check_columns(const kda_case_t* test, const kda_inputs_t* inputs,
                          int64_t first, double tolerance) {
  kda_expected_t expected;
  kda_run_t run;
  kda_expected_initialize(test, inputs, &expected);
  kda_run_initialize(test, inputs, &run);
  kda_run_step(&run);
  for (int64_t i = 0; i < test->geometry.value_dim; ++i) {
    const double error = column_error(&run, &expected, first, i);
    if (!(error < tolerance)) {
      fail_msg("column %d: error %.2e", (int)i, error);
    }
  }
  kda_run_deinitialize(&run);
  kda_expected_deinitialize(&expected);
}

// Columns of v have nothing to do with each other: small ones are as exact
// beside large ones as alone.
static void test_kda_columns_of_different_sizes(void** state) {
  (void)state;
  const int32_t lens[] = {100};
  for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_BF16; ++dtype) {
    kda_case_t test = kda_case_of(1, lens);
    test.geometry.activation_dtype = (sg_dtype_t)dtype;
    const sg_kda_geometry_t* geometry = &test.geometry;
    kda_inputs_t inputs;
    kda_inputs_initialize(&test, &inputs);
    const int64_t heads = geometry->value_heads;
    for (int64_t i = 0; i < 100 * heads * geometry->value_dim; ++i) {
      inputs.v[i] *= exp2((double)(i % geometry->value_dim * 37 % 121 - 60));
    }
    for (int64_t i = 0; i < heads * geometry->value_dim; ++i) {
      for (int64_t c = 0; c < geometry->key_dim; ++c) {
        inputs.states[i * geometry->key_dim + c] *=
            exp2((double)(i % geometry->value_dim * 37 % 121 - 60));
      }
    }
    check_columns(&test, &inputs, 0, hard_tolerance((sg_dtype_t)dtype));
    kda_inputs_deinitialize(&inputs);
  }
}

// What was large and is forgotten leaves no trace in what is small, nor the
// other way round.
static void test_kda_sizes_that_change(void** state) {
  (void)state;
  const int32_t lens[] = {100};
  const double sizes[][2] = {{60.0, -60.0}, {-60.0, 60.0}};
  for (int32_t i = 0; i < 4; ++i) {
    kda_case_t test = kda_case_of(1, lens);
    test.geometry.activation_dtype = i < 2 ? SG_DTYPE_BF16 : SG_DTYPE_FP32;
    test.geometry.gate_kind = SG_GATE_GIVEN;
    const sg_kda_geometry_t* geometry = &test.geometry;
    kda_inputs_t inputs;
    kda_inputs_initialize(&test, &inputs);
    for (int64_t t = 0; t < 100; ++t) {
      const int64_t values = geometry->value_heads * geometry->value_dim;
      for (int64_t v = t * values; v < (t + 1) * values; ++v) {
        inputs.v[v] *= exp2(sizes[i % 2][t < 20 ? 0 : 1]);
      }
      const int64_t gates = geometry->value_heads * geometry->key_dim;
      for (int64_t g = t * gates; t >= 20 && t < 40 && g < (t + 1) * gates;
           ++g) {
        inputs.raw_g[g] = -1000.0;
      }
    }
    check_columns(&test, &inputs, 40,
                  hard_tolerance(test.geometry.activation_dtype));
    kda_inputs_deinitialize(&inputs);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kda_extreme_inputs),
      cmocka_unit_test(test_kda_hard_inputs_are_accurate),
      cmocka_unit_test(test_kda_prefill_split_anywhere),
      cmocka_unit_test(test_kda_columns_of_different_sizes),
      cmocka_unit_test(test_kda_sizes_that_change),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
