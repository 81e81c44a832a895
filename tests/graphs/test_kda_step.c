// SPDX-License-Identifier: Apache-2.0
//
// Whole KDA steps, replayed and eager, against the recurrence in double
// precision over many steps of many sequences.

#include <string.h>

#include "tests/check.h"
#include "tests/graphs/kda_fixture.h"

// fp32 activations: rounding of a few hundred fp32 operations, and of the
// carried state. bf16: the output's own rounding is 2^-9 an element.
static const double fp32_tolerance = 1e-5;
static const double bf16_o_tolerance = 5e-3;

static void run_steps(const kda_fixture_options_t* options, int count,
                      double o_tolerance) {
  kda_fixture_t f;
  kda_fixture_set_up(&f, options);
  for (int i = 0; i < count; ++i) {
    kda_batch_t b;
    kda_fixture_new_inputs(&f);
    kda_fixture_random_batch(&f, &b);
    kda_fixture_step(&f, &b.batch, o_tolerance, fp32_tolerance, NULL);
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
  run_steps(&options, 30, fp32_tolerance);
}

static void test_eager_steps(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.always_eager = true;
  run_steps(&options, 10, fp32_tolerance);
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
  run_steps(&options, 15, fp32_tolerance);
}

static void test_bf16_activations(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.geometry.activation_dtype = SG_DTYPE_BF16;
  options.verify_every = 1;
  run_steps(&options, 15, bf16_o_tolerance);
}

// A mixed step whose sequences were also run alone gives the same bits.
static void test_mixed_step_equals_its_sequences_alone(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  kda_fixture_t together, alone;
  kda_fixture_set_up(&together, &options);
  kda_fixture_set_up(&alone, &options);
  enum { N = 5 };
  static const int32_t lens[N] = {70, 64, 1, 0, 130};
  static const int32_t fresh[N] = {0};
  static const int32_t slots[N] = {7, 1, 9, 2, 4};
  sg_batch_t batch = {N, lens, fresh, slots};
  assert_ok(sg_executor_run(together.executor, &batch, together.stream, NULL));
  assert_hip(hipStreamSynchronize(together.stream));
  size_t slot_bytes = together.program->buffers[SG_KDA_BUFFER_STATE].row_bytes;
  char* left = test_malloc(KDA_SLOTS * slot_bytes);
  char* right = test_malloc(KDA_SLOTS * slot_bytes);
  // Alone, a sequence's inputs start at row 0, so only the first one's are the
  // same; it runs with all others empty.
  static const int32_t only_first[N] = {70, 0, 0, 0, 0};
  batch.query_lens = only_first;
  assert_ok(sg_executor_run(alone.executor, &batch, alone.stream, NULL));
  assert_hip(hipStreamSynchronize(alone.stream));
  kda_fixture_read(&together, 1, SG_KDA_BUFFER_STATE, left,
                   KDA_SLOTS * slot_bytes);
  kda_fixture_read(&alone, 1, SG_KDA_BUFFER_STATE, right,
                   KDA_SLOTS * slot_bytes);
  assert_memory_equal(left + 7 * slot_bytes, right + 7 * slot_bytes,
                      slot_bytes);
  // The slot of the empty sequence still holds what it held: NaN bytes.
  for (size_t i = 0; i < slot_bytes; ++i) {
    assert_int_equal((unsigned char)left[2 * slot_bytes + i], 0xff);
  }
  test_free(left);
  test_free(right);
  kda_fixture_tear_down(&together);
  kda_fixture_tear_down(&alone);
}

static void test_unsupported_models_are_refused(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  sg_model_t model = {.layers = 1, .geometry = options.geometry};
  model.geometry.key_dim = 40;
  const sg_target_t* target;
  assert_ok(sg_target_find("host", &target));
  sg_kda_step_options_t step_options = {.allocator = sg_allocator_system(),
                                        .model = &model,
                                        .limits = {64, 8},
                                        .target = target,
                                        .slot_count = 8,
                                        .null_slot = -1};
  sg_kda_step_t* step = NULL;
  sg_status_t status = sg_kda_step_create(&step_options, &step);
  assert_code(status, SG_STATUS_UNSUPPORTED);
  assert_non_null(strstr(status.message, "40"));
  assert_null(step);
  model.geometry.key_dim = 32;
  step_options.slot_count = 0;
  assert_code(sg_kda_step_create(&step_options, &step),
              SG_STATUS_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replayed_steps),
      cmocka_unit_test(test_eager_steps),
      cmocka_unit_test(test_grouped_heads_and_lower_bound),
      cmocka_unit_test(test_bf16_activations),
      cmocka_unit_test(test_mixed_step_equals_its_sequences_alone),
      cmocka_unit_test(test_unsupported_models_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
