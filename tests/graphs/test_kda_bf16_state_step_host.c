// SPDX-License-Identifier: Apache-2.0
//
// Whole steps of a model that keeps its states in bf16, verified.

#include "tests/check.h"
#include "tests/graphs/kda_fixture.h"

// The model rounds its states after each step as well. A state of the two that
// lies on either side of a tie, about 1e-6 of a unit away, is rounded the other
// way, by up to 2^-7: few elements in 10^4, 1e-4 of the whole, and what later
// steps make of it.
static const double tolerance = 1e-3;

static void run_steps(const kda_fixture_options_t* options, int count) {
  kda_fixture_t f;
  kda_fixture_set_up(&f, options);
  const sg_buffer_spec_t* spec = kda_fixture_spec(&f, 0, SG_KDA_BUFFER_STATE);
  assert_int_equal(spec->dtype, SG_DTYPE_BF16);
  assert_int_equal(spec->row_bytes, 2 * 32 * 32 * sizeof(uint16_t));
  for (int i = 0; i < count; ++i) {
    kda_batch_t b;
    kda_fixture_new_inputs(&f);
    kda_fixture_random_batch(&f, &b);
    kda_fixture_step(&f, &b.batch, tolerance, tolerance, NULL);
  }
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.error_steps, 0);
  assert_int_equal(statistics.graph_steps, options->always_eager ? 0 : count);
  if (options->verify_every == 1) {
    assert_int_equal(statistics.verified_steps, count);
  }
  assert_int_equal(statistics.mismatched_rows, 0);
  kda_fixture_tear_down(&f);
}

static void test_steps_with_bf16_states(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.geometry.state_dtype = SG_DTYPE_BF16;
  options.verify_every = 1;
  run_steps(&options, 30);
}

static void test_whole_layers_with_bf16_states(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.geometry.state_dtype = SG_DTYPE_BF16;
  options.with_conv = true;
  options.with_norm = true;
  options.verify_every = 1;
  run_steps(&options, 30);
}

static void test_eager_steps_with_bf16_states(void** state) {
  (void)state;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.geometry.state_dtype = SG_DTYPE_BF16;
  options.always_eager = true;
  run_steps(&options, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps_with_bf16_states),
      cmocka_unit_test(test_whole_layers_with_bf16_states),
      cmocka_unit_test(test_eager_steps_with_bf16_states),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
