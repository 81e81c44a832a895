// SPDX-License-Identifier: Apache-2.0
//
// The step of kda_recurrent and kda_chunk against the recurrence in double
// precision.

#include "tests/check.h"
#include "tests/kernels/kda_check.h"

#define COUNT_OF(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))

static void test_kda_lengths_alone(void** state) {
  (void)state;
  const int32_t lens[] = {1, 15, 16, 17, 63, 64, 65, 130, 200};
  for (int32_t i = 0; i < COUNT_OF(lens); ++i) {
    kda_case_t test = kda_case_of(1, &lens[i]);
    kda_check_step(&test, 0.0);
    test.computed[0] = 0;
    kda_check_step(&test, 0.0);
  }
}

static void test_kda_mixed_lengths(void** state) {
  (void)state;
  const int32_t batches[][9] = {
      {200, 1, 15, 130, 16, 17, 65, 63, 64},
      {1, 1, 1, 64, 63, 1, 200, 17, 2},
      {1, 130, 1, 1, 1, 16, 1, 65, 1},
  };
  for (int32_t i = 0; i < COUNT_OF(batches); ++i) {
    kda_case_t test = kda_case_of(9, batches[i]);
    kda_check_step(&test, 0.0);
    // Decodes have tokens before them.
    for (int32_t n = 0; n < 4; ++n) test.computed[n] = 1 + n;
    kda_check_step(&test, 0.0);
  }
}

static void test_kda_decodes_only(void** state) {
  (void)state;
  const int32_t lens[] = {1, 1, 1, 1, 1};
  kda_case_t test = kda_case_of(5, lens);
  for (int32_t n = 0; n < 5; ++n) test.computed[n] = 1 + n;
  kda_check_step(&test, 0.0);
  test.computed[3] = 0;
  test.fresh_decodes = true;
  kda_check_step(&test, 0.0);
}

static void test_kda_empty_sequences(void** state) {
  (void)state;
  const int32_t batches[][7] = {
      {0, 0, 65, 1, 0, 64, 17}, {65, 0, 0, 16, 0, 1, 0},
      {0, 130, 0, 63, 0, 0, 0}, {1, 0, 1, 0, 64, 0, 1},
      {0, 0, 0, 0, 0, 0, 0},
  };
  for (int32_t i = 0; i < COUNT_OF(batches); ++i) {
    kda_case_t test = kda_case_of(7, batches[i]);
    // All resumed: an empty sequence has a state that must stay.
    for (int32_t n = 0; n < 7; ++n) test.computed[n] = 5;
    kda_check_step(&test, 0.0);
  }
}

static void test_kda_gate_and_beta_kinds(void** state) {
  (void)state;
  const int32_t lens[] = {1, 70, 33, 1};
  for (int32_t gate = SG_GATE_SOFTPLUS; gate <= SG_GATE_GIVEN; ++gate) {
    for (int32_t beta = SG_BETA_SIGMOID; beta <= SG_BETA_GIVEN; ++beta) {
      for (int32_t flags = 0; flags < 4; ++flags) {
        kda_case_t test = kda_case_of(4, lens);
        test.geometry.gate_kind = (sg_gate_kind_t)gate;
        test.geometry.beta_kind = (sg_beta_kind_t)beta;
        test.geometry.qk_l2norm = (flags & 1) != 0;
        test.has_bias = (flags & 2) != 0;
        kda_check_step(&test, 0.0);
      }
    }
  }
}

static void test_kda_dimensions(void** state) {
  (void)state;
  const int32_t dims[][2] = {{32, 32},  {48, 64},  {64, 48},   {128, 128},
                             {256, 32}, {32, 256}, {256, 256}, {80, 144},
                             {128, 64}, {48, 240}};
  const int32_t lens[] = {1, 65, 20};
  for (int32_t i = 0; i < 2 * COUNT_OF(dims); ++i) {
    kda_case_t test = kda_case_of(3, lens);
    test.geometry.activation_dtype = i % 2 == 0 ? SG_DTYPE_FP32 : SG_DTYPE_BF16;
    test.geometry.key_dim = dims[i / 2][0];
    test.geometry.value_dim = dims[i / 2][1];
    test.geometry.scale = 0.1f;
    kda_check_step(&test, 0.0);
  }
}

static void test_kda_grouped_heads_and_strides(void** state) {
  (void)state;
  const int32_t lens[] = {1, 1, 90, 16};
  for (int32_t size = 16; size <= 64; size *= 2) {
    kda_case_t test = kda_case_of(4, lens);
    test.geometry.heads = 3;
    test.geometry.value_heads = 6;
    test.geometry.chunk_size = size;
    test.computed[1] = 3;
    test.row_padding = 8;
    test.slot_padding = 20;
    test.spare_tokens = 9;
    test.spare_sequences = 2;
    kda_check_step(&test, 0.0);
  }
}

static void test_kda_dtypes(void** state) {
  (void)state;
  const int32_t lens[] = {1, 130, 17, 1, 64};
  for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_FP16; ++dtype) {
    for (int32_t gate = SG_GATE_SOFTPLUS; gate <= SG_GATE_GIVEN; ++gate) {
      kda_case_t test = kda_case_of(5, lens);
      test.geometry.activation_dtype = (sg_dtype_t)dtype;
      test.geometry.gate_kind = (sg_gate_kind_t)gate;
      test.row_padding = 3;
      kda_check_step(&test, 0.0);
    }
  }
}

static void test_kda_slots_without_state(void** state) {
  (void)state;
  const int32_t lens[] = {1, 1, 65, 1, 30, 20};
  kda_case_t test = kda_case_of(6, lens);
  test.computed[1] = 4;
  test.slots[0] = -1;
  test.slots[2] = -7;
  test.slots[4] = test.null_slot = 3;
  test.slots[3] = 4;
  kda_check_step(&test, 0.0);
  // Without a null slot, slot 0 is one like any other.
  test.null_slot = -1;
  test.slots[4] = 0;
  kda_check_step(&test, 0.0);
}

static void test_kda_instruction_sets(void** state) {
  (void)state;
  const int32_t lens[] = {1, 1, 130, 15, 64};
  for (int32_t isa = 0; isa < SG_HOST_ISA_COUNT; ++isa) {
    if (!sg__host_isa_available((sg_host_isa_t)isa)) continue;
    for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_FP16; ++dtype) {
      kda_case_t test = kda_case_of(5, lens);
      test.isa = (sg_host_isa_t)isa;
      test.computed[1] = 2;
      test.geometry.activation_dtype = (sg_dtype_t)dtype;
      test.geometry.key_dim = 80;
      test.geometry.value_dim = 208;
      kda_check_step(&test, 0.0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kda_lengths_alone),
      cmocka_unit_test(test_kda_mixed_lengths),
      cmocka_unit_test(test_kda_decodes_only),
      cmocka_unit_test(test_kda_empty_sequences),
      cmocka_unit_test(test_kda_gate_and_beta_kinds),
      cmocka_unit_test(test_kda_dimensions),
      cmocka_unit_test(test_kda_grouped_heads_and_strides),
      cmocka_unit_test(test_kda_dtypes),
      cmocka_unit_test(test_kda_slots_without_state),
      cmocka_unit_test(test_kda_instruction_sets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
