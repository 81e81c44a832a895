// SPDX-License-Identifier: Apache-2.0
//
// Whole KDA steps, replayed and eager, against the recurrence in double
// precision over many steps of many sequences.

#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/graphs/kda_fixture.h"

// fp32 activations: rounding of a few hundred fp32 operations, and of the
// carried state. bf16: the output's own rounding is 2^-9 an element. Behind a
// convolution some q, k and v in 10^4 are rounded the other way, by 2^-8: one v
// of the 64 in a state of few tokens, of three times their size, is 1.5e-3.
static const double fp32_tolerance = 1e-5;
static const double bf16_o_tolerance = 5e-3;
static const double bf16_conv_state_tolerance = 1.5e-3;

static void run_steps(const kda_fixture_options_t* options, int count,
                      double o_tolerance, double state_tolerance) {
  kda_fixture_t f;
  kda_fixture_set_up(&f, options);
  for (int i = 0; i < count; ++i) {
    kda_batch_t b;
    kda_fixture_new_inputs(&f);
    kda_fixture_random_batch(&f, &b);
    kda_fixture_step(&f, &b.batch, o_tolerance, state_tolerance, NULL);
  }
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.steps, count);
  assert_int_equal(statistics.error_steps, 0);
  assert_int_equal(statistics.mismatched_rows, 0);
  assert_int_equal(statistics.graph_steps, options->always_eager ? 0 : count);
  kda_fixture_tear_down(&f);
}

static void test_replayed_steps(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.verify_every = 2;
  run_steps(&options, 30, fp32_tolerance, fp32_tolerance);
}

static void test_eager_steps(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.always_eager = true;
  run_steps(&options, 10, fp32_tolerance, fp32_tolerance);
}

static void test_grouped_heads_and_lower_bound(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.geometry.value_heads = 4;
  options.geometry.key_dim = 48;
  options.geometry.gate_kind = SG_GATE_LOWER_BOUND;
  options.geometry.beta_kind = SG_BETA_DOUBLE_SIGMOID;
  options.tables = SG_TABLES_HOST;
  options.verify_every = 1;
  run_steps(&options, 15, fp32_tolerance, fp32_tolerance);
}

static void test_bf16_activations(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.geometry.activation_dtype = SG_DTYPE_BF16;
  options.verify_every = 1;
  // The host multiplies in fp32; GPUs round operands to 11 bits.
  bool on_host = sg_flavour_of_build() == SG_FLAVOUR_HOST;
  run_steps(&options, 15, bf16_o_tolerance, on_host ? fp32_tolerance : 1.1e-3);
}

static kda_fixture_options_t whole_layer(void) {
  kda_fixture_options_t options = kda_fixture_defaults();
  options.with_conv = true;
  options.with_norm = true;
  return options;
}

static void test_whole_layers_replayed(void** state) {
  (void)state;
  kda_fixture_options_t options = whole_layer();
  options.verify_every = 2;
  run_steps(&options, 40, fp32_tolerance, fp32_tolerance);
}

static void test_whole_layers_eager(void** state) {
  (void)state;
  kda_fixture_options_t options = whole_layer();
  options.always_eager = true;
  run_steps(&options, 15, fp32_tolerance, fp32_tolerance);
}

static void test_whole_layers_in_bf16(void** state) {
  (void)state;
  kda_fixture_options_t options = whole_layer();
  options.geometry.activation_dtype = SG_DTYPE_BF16;
  options.verify_every = 1;
  run_steps(&options, 20, bf16_o_tolerance, bf16_conv_state_tolerance);
}

// Grouped heads, key_dim above value_dim, and the narrow convolutions.
static void test_whole_layers_of_other_geometry(void** state) {
  (void)state;
  for (int32_t width = 2; width <= 3; ++width) {
    kda_fixture_options_t options = whole_layer();
    options.geometry.value_heads = 4;
    options.geometry.key_dim = 48;
    options.geometry.conv_width = width;
    options.geometry.gate_kind = SG_GATE_LOWER_BOUND;
    options.tables = SG_TABLES_HOST;
    options.verify_every = 1;
    run_steps(&options, 15, fp32_tolerance, fp32_tolerance);
  }
}

static void test_conv_and_norm_are_independent(void** state) {
  (void)state;
  kda_fixture_options_t options = whole_layer();
  options.with_norm = false;
  run_steps(&options, 10, fp32_tolerance, fp32_tolerance);
  options.with_norm = true;
  options.with_conv = false;
  run_steps(&options, 10, fp32_tolerance, fp32_tolerance);
}

typedef struct names_case_t {
  bool with_conv;
  bool with_norm;
  // Buffers of a layer, in their order.
  const char* names;
} names_case_t;

static sg_kda_step_options_t step_options_of(const sg_model_t* model) {
  const sg_target_t* target;
  assert_ok(sg_target_find("host", &target));
  return (sg_kda_step_options_t){.allocator = sg_allocator_system(),
                                 .model = model,
                                 .limits = {64, 8},
                                 .target = target,
                                 .slot_count = 8,
                                 .null_slot = -1};
}

static void test_buffers_and_fingerprint_follow_the_options(void** state) {
  (void)state;
  static const names_case_t cases[] = {
      {false, false, "q k v raw_g raw_beta a_log dt_bias state o "},
      {true, false,
       "qkv conv_weight conv_cache raw_g raw_beta a_log dt_bias state o "},
      {false, true,
       "q k v raw_g raw_beta a_log dt_bias state o output_gate norm_weight "},
      {true, true,
       "qkv conv_weight conv_cache raw_g raw_beta a_log dt_bias state o "
       "output_gate norm_weight "},
  };
  enum { CASES = sizeof(cases) / sizeof(cases[0]) };
  uint64_t fingerprints[CASES];
  const sg_model_t model = {.layers = 2,
                            .geometry = kda_fixture_defaults().geometry};
  for (int i = 0; i < CASES; ++i) {
    sg_kda_step_options_t options = step_options_of(&model);
    options.with_conv = cases[i].with_conv;
    options.with_norm = cases[i].with_norm;
    sg_kda_step_t* step;
    assert_ok(sg_kda_step_create(&options, &step));
    const sg_program_t* program = sg_kda_step_program(step);
    fingerprints[i] = program->fingerprint;
    for (int j = 0; j < i; ++j) {
      assert_true(fingerprints[i] != fingerprints[j]);
    }
    char names[256] = "";
    int32_t next = 0;
    for (int b = 0; b < 2 * SG_KDA_BUFFER_COUNT; ++b) {
      int32_t index =
          sg_kda_step_buffer(step, b / SG_KDA_BUFFER_COUNT,
                             (sg_kda_buffer_t)(b % SG_KDA_BUFFER_COUNT));
      if (index < 0) continue;
      assert_int_equal(index, next++);
      if (program->buffers[index].layer > 0) continue;
      size_t used = strlen(names);
      snprintf(names + used, sizeof(names) - used, "%s ",
               program->buffers[index].name + strlen("layers.0."));
    }
    assert_int_equal(next, program->buffer_count);
    assert_string_equal(names, cases[i].names);
    sg_kda_step_destroy(step);
  }
}

static void test_unsupported_models_are_refused(void** state) {
  (void)state;
  sg_model_t model = {.layers = 1, .geometry = kda_fixture_defaults().geometry};
  sg_kda_step_options_t options = step_options_of(&model);
  sg_kda_step_t* step = NULL;
  model.geometry.key_dim = 40;
  sg_status_t status = sg_kda_step_create(&options, &step);
  assert_code(status, SG_STATUS_UNSUPPORTED);
  assert_non_null(strstr(status.message, "40"));
  assert_null(step);
  model.geometry.key_dim = 32;
  options.slot_count = 0;
  assert_code(sg_kda_step_create(&options, &step), SG_STATUS_INVALID_ARGUMENT);
  options.slot_count = 8;

  // Asked only of the ops that the step has.
  model.geometry.conv_width = 5;
  model.geometry.norm_epsilon = 0;
  assert_ok(sg_kda_step_create(&options, &step));
  sg_kda_step_destroy(step);
  options.with_conv = true;
  status = sg_kda_step_create(&options, &step);
  assert_code(status, SG_STATUS_UNSUPPORTED);
  assert_non_null(strstr(status.message, "short_conv: width 5"));
  options.with_conv = false;
  options.with_norm = true;
  status = sg_kda_step_create(&options, &step);
  assert_code(status, SG_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(status.message, "gated_norm: epsilon 0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replayed_steps),
      cmocka_unit_test(test_eager_steps),
      cmocka_unit_test(test_grouped_heads_and_lower_bound),
      cmocka_unit_test(test_bf16_activations),
      cmocka_unit_test(test_whole_layers_replayed),
      cmocka_unit_test(test_whole_layers_eager),
      cmocka_unit_test(test_whole_layers_in_bf16),
      cmocka_unit_test(test_whole_layers_of_other_geometry),
      cmocka_unit_test(test_conv_and_norm_are_independent),
      cmocka_unit_test(test_buffers_and_fingerprint_follow_the_options),
      cmocka_unit_test(test_unsupported_models_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
