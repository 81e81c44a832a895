// SPDX-License-Identifier: Apache-2.0
//
// Long sequences.

#include "tests/check.h"
#include "tests/kernels/kda_check.h"

// Memory over thousands of tokens: rounding of each step adds up.
static void test_kda_weak_gates_over_8192_tokens(void** state) {
  (void)state;
  const int32_t lens[] = {8192};
  const kda_inputs_kind_t kinds[] = {KDA_INPUTS_WEAK_GATES,
                                     KDA_INPUTS_NEAR_KEYS, KDA_INPUTS_HARD};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    kda_case_t test = kda_case_of(1, lens);
    test.inputs = kinds[i];
    test.geometry.gate_kind = SG_GATE_GIVEN;
    test.geometry.beta_kind = SG_BETA_GIVEN;
    test.geometry.heads = test.geometry.value_heads = 1;
    kda_check_step(&test, 1e-4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kda_weak_gates_over_8192_tokens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
