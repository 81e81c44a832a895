// SPDX-License-Identifier: Apache-2.0
//
// States that are kept in bf16: a step starts from what is in the slot,
// computes in fp32, and rounds what it leaves.

#include <math.h>
#include <stdlib.h>

#include "tests/check.h"
#include "tests/kernels/kda_check.h"

#define COUNT_OF(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))

static kda_case_t bf16_case(int32_t count, const int32_t* lens) {
  kda_case_t test = kda_case_of(count, lens);
  test.geometry.state_dtype = SG_DTYPE_BF16;
  return test;
}

// Resumed sequences start, on both sides, from numbers of bf16: o is as
// accurate as with a state in fp32.
static void test_kda_bf16_state_is_accurate(void** state) {
  (void)state;
  const int32_t lens[] = {1, 1, 130, 15, 1, 64, 17};
  const int32_t dims[][2] = {{64, 64}, {80, 208}, {128, 128}, {256, 48}};
  for (int32_t isa = 0; isa < SG_HOST_ISA_COUNT; ++isa) {
    if (!sg__host_isa_available((sg_host_isa_t)isa)) continue;
    for (int32_t i = 0; i < COUNT_OF(dims); ++i) {
      kda_case_t test = bf16_case(7, lens);
      test.isa = (sg_host_isa_t)isa;
      test.computed[1] = 2;
      test.geometry.key_dim = dims[i][0];
      test.geometry.value_dim = dims[i][1];
      kda_check_step(&test, 0.0);
      // Gaps between rows and slots, and a sequence without a slot.
      test.row_padding = 3;
      test.slot_padding = 12;
      test.slots[2] = -1;
      test.geometry.activation_dtype = SG_DTYPE_BF16;
      kda_check_step(&test, 0.0);
    }
  }
}

static void test_kda_bf16_state_of_fresh_sequences(void** state) {
  (void)state;
  const int32_t lens[] = {1, 1, 1, 16, 65, 200};
  for (int32_t gate = SG_GATE_SOFTPLUS; gate <= SG_GATE_GIVEN; ++gate) {
    kda_case_t test = bf16_case(6, lens);
    test.geometry.gate_kind = (sg_gate_kind_t)gate;
    test.fresh_decodes = true;
    for (int32_t n = 0; n < 6; ++n) test.computed[n] = 0;
    kda_check_step(&test, 0.0);
  }
}

// Of a step that starts from the same numbers in fp32 and in bf16, outputs have
// the same bits, and the state is the fp32 one to nearest even.
static void check_rounded_once(sg_host_isa_t isa, sg_dtype_t dtype) {
  const int32_t lens[] = {1, 1, 65, 30};
  kda_case_t narrow = bf16_case(4, lens);
  narrow.isa = isa;
  narrow.geometry.activation_dtype = dtype;
  narrow.fresh_decodes = true;
  narrow.slot_padding = 4;
  kda_case_t wide = narrow;
  wide.geometry.state_dtype = SG_DTYPE_FP32;
  kda_inputs_t inputs;
  kda_run_t narrow_run, wide_run;
  kda_inputs_initialize(&narrow, &inputs);
  kda_run_initialize(&narrow, &inputs, &narrow_run);
  kda_run_initialize(&wide, &inputs, &wide_run);
  kda_run_step(&narrow_run);
  kda_run_step(&wide_run);
  kda_check_untouched(&narrow_run);
  kda_check_same_outputs(&narrow_run, &wide_run, kda_case_tokens(&narrow));
  for (int32_t i = 0; i < 4 * 2 * 64 * 64; ++i) {
    const int32_t n = i / (2 * 64 * 64), h = i / (64 * 64) % 2;
    const int32_t v = i / 64 % 64, k = i % 64;
    const double exact = kda_run_state(&wide_run, n, h, v, k);
    assert_true(kda_run_state(&narrow_run, n, h, v, k) ==
                kda_round(SG_DTYPE_BF16, exact));
  }
  kda_run_deinitialize(&narrow_run);
  kda_run_deinitialize(&wide_run);
  kda_inputs_deinitialize(&inputs);
}

static void test_kda_bf16_state_is_rounded_once(void** state) {
  (void)state;
  for (int32_t isa = 0; isa < SG_HOST_ISA_COUNT; ++isa) {
    if (!sg__host_isa_available((sg_host_isa_t)isa)) continue;
    check_rounded_once((sg_host_isa_t)isa, SG_DTYPE_FP32);
    check_rounded_once((sg_host_isa_t)isa, SG_DTYPE_BF16);
  }
}

static void test_kda_bf16_state_survives_errors_and_null_slots(void** state) {
  (void)state;
  const int32_t lens[] = {1, 20, 0, 65};
  kda_case_t test = bf16_case(4, lens);
  test.computed[1] = 3;
  test.slots[3] = test.null_slot = 5;
  kda_check_step(&test, 0.0);
  test.error_code = SG_STEP_ERROR_SLOT_RANGE;
  kda_inputs_t inputs;
  kda_run_t run;
  kda_inputs_initialize(&test, &inputs);
  kda_run_initialize(&test, &inputs, &run);
  kda_run_step(&run);
  kda_check_untouched(&run);
  kda_run_deinitialize(&run);
  kda_inputs_deinitialize(&inputs);
}

enum { DECODES = 64 };

// One sequence of DECODES tokens, a step each, against the recurrence that
// never rounds. Each step's rounding is 2e-3 of the state at most (kda_check.c)
// and independent of the others'; the recurrence contracts, so that they add up
// to at most sqrt(DECODES) of them, in o as in the state.
static void test_kda_bf16_state_over_many_decodes(void** state) {
  (void)state;
  const double limit = 2e-3 * sqrt(DECODES);
  const int32_t length = DECODES, one = 1;
  kda_case_t whole = bf16_case(1, &length);
  whole.inputs = KDA_INPUTS_WEAK_GATES;
  kda_case_t step = bf16_case(1, &one);
  kda_inputs_t inputs;
  kda_expected_t expected;
  kda_inputs_initialize(&whole, &inputs);
  kda_expected_initialize(&whole, &inputs, &expected);
  double squares = 0.0, differences = 0.0;
  kda_inputs_t part = inputs;
  for (int32_t t = 0; t < DECODES; ++t) {
    kda_run_t run;
    kda_run_initialize(&step, &part, &run);
    kda_run_step(&run);
    for (int32_t i = 0; i < 2 * 64; ++i) {
      const double o = expected.o[t * 2 * 64 + i];
      const double difference = kda_run_output(&run, 0, i / 64, i % 64) - o;
      squares += o * o;
      differences += difference * difference;
    }
    for (int32_t i = 0; i < 2 * 64 * 64; ++i) {
      part.states[i] =
          kda_run_state(&run, 0, i / (64 * 64), i / 64 % 64, i % 64);
    }
    if (t == DECODES - 1) {
      const kda_expected_t end = {.o = expected.o + t * 2 * 64,
                                  .states = expected.states};
      assert_true(kda_errors_of(&run, &end).state <= limit);
    }
    kda_run_deinitialize(&run);
    part.q += 2 * 64;
    part.k += 2 * 64;
    part.v += 2 * 64;
    part.raw_g += 2 * 64;
    part.raw_beta += 2;
  }
  assert_true(sqrt(differences / squares) <= limit);
  kda_expected_deinitialize(&expected);
  kda_inputs_deinitialize(&inputs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kda_bf16_state_is_accurate),
      cmocka_unit_test(test_kda_bf16_state_of_fresh_sequences),
      cmocka_unit_test(test_kda_bf16_state_is_rounded_once),
      cmocka_unit_test(test_kda_bf16_state_survives_errors_and_null_slots),
      cmocka_unit_test(test_kda_bf16_state_over_many_decodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
