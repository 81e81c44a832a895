// SPDX-License-Identifier: Apache-2.0
//
// What a step does besides computing: what it leaves alone, zeroes and does not
// depend on. Comparisons are of bits.

#include <math.h>

#include "tests/check.h"
#include "tests/kernels/kda_check.h"

// Two decodes, then resumed, fresh, empty and one-token sequences.
static kda_case_t mixed_case(void) {
  const int32_t lens[] = {1, 1, 65, 0, 17, 1, 130};
  kda_case_t test = kda_case_of(7, lens);
  test.computed[1] = 9;
  return test;
}

// A step with an error, in which |zeroing| op 0 (none), 1 (kda_recurrent) or 2
// (kda_chunk) zeroes outputs.
static void run_failed_step(int32_t zeroing, kda_run_t* out_run) {
  kda_case_t test = mixed_case();
  test.error_code = SG_STEP_ERROR_SLOT_RANGE;
  test.spare_tokens = 40;
  test.spare_sequences = 3;
  test.row_padding = 5;
  kda_inputs_t inputs;
  kda_inputs_initialize(&test, &inputs);
  kda_run_initialize(&test, &inputs, out_run);
  kda_run_recurrent(out_run, zeroing == 1);
  kda_run_chunk(out_run, zeroing == 2);
  kda_inputs_deinitialize(&inputs);
}

static void test_kda_error_changes_no_state_and_zeroes_outputs(void** state) {
  (void)state;
  for (int32_t zeroing = 1; zeroing <= 2; ++zeroing) {
    kda_run_t run;
    run_failed_step(zeroing, &run);
    kda_check_untouched(&run);
    kda_run_deinitialize(&run);
  }
}

static void test_kda_error_leaves_outputs_to_the_op_that_zeroes(void** state) {
  (void)state;
  kda_run_t run;
  run_failed_step(0, &run);
  const unsigned char* bytes = run.o.data;
  for (size_t i = 0; i < run.o.bytes; ++i) assert_int_equal(bytes[i], 0xff);
  assert_memory_equal(run.state.data, run.initial_state.data, run.state.bytes);
  kda_run_deinitialize(&run);
}

static void test_kda_zero_tail(void** state) {
  (void)state;
  for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_FP16; ++dtype) {
    kda_case_t test = mixed_case();
    test.geometry.activation_dtype = (sg_dtype_t)dtype;
    test.zero_tail = true;
    test.spare_tokens = 77;
    test.row_padding = 3;
    kda_check_step(&test, 0.0);
  }
}

static void test_kda_result_does_not_depend_on_capacity(void** state) {
  (void)state;
  const int32_t spare[][2] = {{1, 0}, {0, 1}, {63, 5}, {1000, 64}};
  const kda_case_t exact = mixed_case();
  for (size_t i = 0; i < sizeof(spare) / sizeof(spare[0]); ++i) {
    kda_case_t larger = exact;
    larger.spare_tokens = spare[i][0];
    larger.spare_sequences = spare[i][1];
    kda_check_same_steps(&exact, &larger);
  }
}

static void test_kda_result_does_not_depend_on_strides(void** state) {
  (void)state;
  const kda_case_t dense = mixed_case();
  kda_case_t spread = dense;
  spread.row_padding = 7;
  // GPUs want slots aligned to 16 bytes.
  spread.slot_padding = 36;
  kda_check_same_steps(&dense, &spread);
}

static void test_kda_result_does_not_depend_on_chunk_size(void** state) {
  (void)state;
  const kda_case_t large = mixed_case();
  kda_case_t small = large;
  for (small.geometry.chunk_size = 16; small.geometry.chunk_size < 64;
       small.geometry.chunk_size *= 2) {
    kda_check_same_steps(&large, &small);
  }
}

static void test_kda_result_does_not_depend_on_block_order(void** state) {
  (void)state;
  const kda_case_t ascending = mixed_case();
  kda_case_t shuffled = ascending;
  for (shuffled.block_order = 1; shuffled.block_order < 6;
       ++shuffled.block_order) {
    kda_check_same_steps(&ascending, &shuffled);
  }
}

static void test_kda_repeats_are_identical(void** state) {
  (void)state;
  const kda_case_t test = mixed_case();
  kda_inputs_t inputs;
  kda_run_t first;
  kda_inputs_initialize(&test, &inputs);
  kda_run_initialize(&test, &inputs, &first);
  kda_run_step(&first);
  for (int32_t i = 1; i < 200; ++i) {
    kda_run_t run;
    kda_run_initialize(&test, &inputs, &run);
    kda_run_step(&run);
    kda_check_same_outputs(&first, &run, kda_case_tokens(&test));
    kda_check_same_states(&first, &run);
    kda_run_deinitialize(&run);
  }
  kda_run_deinitialize(&first);
  kda_inputs_deinitialize(&inputs);
}

typedef enum poison_t {
  POISON_VALUES = 0,
  POISON_KEYS,
  POISON_BETAS,
  POISON_COUNT,
} poison_t;

// Replaces everything of tokens |first| and later, by what poisons whatever it
// is multiplied into, zeros included.
static void change_tokens(const kda_case_t* test, int64_t first,
                          poison_t poison, kda_inputs_t* inputs) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t tokens = kda_case_tokens(test);
  const int64_t key_width = (int64_t)geometry->heads * geometry->key_dim;
  const int64_t heads = geometry->value_heads;
  uint64_t stream = 99;
  for (int64_t i = first * key_width; i < tokens * key_width; ++i) {
    inputs->q[i] = kda_random_normal(&stream);
    inputs->k[i] = 50.0 * kda_random_normal(&stream);
    if (poison == POISON_KEYS && i % 7 == 0) inputs->k[i] = (double)NAN;
  }
  for (int64_t i = first * heads * geometry->value_dim;
       i < tokens * heads * geometry->value_dim; ++i) {
    const bool poisoned = poison == POISON_VALUES && i % 3 == 0;
    inputs->v[i] = poisoned ? (double)INFINITY : 1e30;
  }
  for (int64_t i = first * heads * geometry->key_dim;
       i < tokens * heads * geometry->key_dim; ++i) {
    inputs->raw_g[i] = i % 2 == 0 ? 1000.0 : -1000.0;
  }
  for (int64_t i = first * heads; i < tokens * heads; ++i) {
    inputs->raw_beta[i] = poison == POISON_BETAS ? (double)NAN : 5.0;
  }
}

static void check_later_tokens(const kda_case_t* test, poison_t poison) {
  const int64_t changed[] = {1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 100, 149};
  kda_inputs_t inputs;
  kda_run_t run;
  kda_inputs_initialize(test, &inputs);
  kda_run_initialize(test, &inputs, &run);
  kda_run_step(&run);
  for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); ++i) {
    kda_inputs_t other_inputs;
    kda_run_t other;
    kda_inputs_initialize(test, &other_inputs);
    change_tokens(test, changed[i], poison, &other_inputs);
    kda_run_initialize(test, &other_inputs, &other);
    kda_run_step(&other);
    kda_check_same_outputs(&run, &other, changed[i]);
    kda_run_deinitialize(&other);
    kda_inputs_deinitialize(&other_inputs);
  }
  kda_run_deinitialize(&run);
  kda_inputs_deinitialize(&inputs);
}

static void test_kda_later_tokens_do_not_change_outputs(void** state) {
  (void)state;
  const int32_t lens[] = {150};
  for (int32_t kind = KDA_INPUTS_SOFT; kind <= KDA_INPUTS_HARD; ++kind) {
    for (int32_t poison = 0; poison < POISON_COUNT; ++poison) {
      for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_BF16; ++dtype) {
        kda_case_t test = kda_case_of(1, lens);
        test.inputs = (kda_inputs_kind_t)kind;
        test.geometry.activation_dtype = (sg_dtype_t)dtype;
        check_later_tokens(&test, (poison_t)poison);
      }
    }
  }
}

// A column of v and o has a row of the state to itself.
static void check_row(const kda_run_t* clean, const kda_run_t* run,
                      int64_t first, int64_t head, int64_t column) {
  const sg_kda_geometry_t* geometry = &run->test.geometry;
  for (int64_t t = 0; t < kda_case_tokens(&run->test); ++t) {
    for (int64_t h = 0; h < geometry->value_heads; ++h) {
      for (int64_t v = 0; v < geometry->value_dim; ++v) {
        const double o = kda_run_output(run, t, h, v);
        const bool lost = h == head && v == column && t >= first;
        if (lost) {
          assert_true(isnan(o));
        } else {
          assert_true(o == kda_run_output(clean, t, h, v));
        }
      }
    }
  }
}

static void test_kda_row_that_is_lost_shows_and_stays_alone(void** state) {
  (void)state;
  const int32_t lens[] = {70};
  for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_BF16; ++dtype) {
    for (int64_t first = 0; first < 70; first += 23) {
      kda_case_t test = kda_case_of(1, lens);
      test.geometry.activation_dtype = (sg_dtype_t)dtype;
      const sg_kda_geometry_t* geometry = &test.geometry;
      kda_inputs_t inputs;
      kda_run_t clean, run;
      kda_inputs_initialize(&test, &inputs);
      kda_run_initialize(&test, &inputs, &clean);
      kda_run_step(&clean);
      const int64_t head = geometry->value_heads - 1;
      const int64_t column = 5;
      inputs.v[(first * geometry->value_heads + head) * geometry->value_dim +
               column] = (double)NAN;
      kda_run_initialize(&test, &inputs, &run);
      kda_run_step(&run);
      check_row(&clean, &run, first, head, column);
      assert_true(isnan(kda_run_state(&run, 0, head, column, 0)));
      kda_run_deinitialize(&run);
      kda_run_deinitialize(&clean);
      kda_inputs_deinitialize(&inputs);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kda_error_changes_no_state_and_zeroes_outputs),
      cmocka_unit_test(test_kda_error_leaves_outputs_to_the_op_that_zeroes),
      cmocka_unit_test(test_kda_zero_tail),
      cmocka_unit_test(test_kda_result_does_not_depend_on_capacity),
      cmocka_unit_test(test_kda_result_does_not_depend_on_strides),
      cmocka_unit_test(test_kda_result_does_not_depend_on_chunk_size),
      cmocka_unit_test(test_kda_result_does_not_depend_on_block_order),
      cmocka_unit_test(test_kda_repeats_are_identical),
      cmocka_unit_test(test_kda_later_tokens_do_not_change_outputs),
      cmocka_unit_test(test_kda_row_that_is_lost_shows_and_stays_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
