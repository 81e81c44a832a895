// SPDX-License-Identifier: Apache-2.0
//
// Which instruction set the host kernels take.

#include "kernels/common/host_isa.h"
#include "tests/check.h"

static void test_the_best_is_the_last_available(void** state) {
  (void)state;
  const sg_host_isa_t best = sg__host_isa_best();
  assert_true(sg__host_isa_available(best));
  for (int isa = best + 1; isa < SG_HOST_ISA_COUNT; ++isa) {
    assert_false(sg__host_isa_available((sg_host_isa_t)isa));
  }
}

// None comes without those that it is said to have.
static void test_available_ones_have_no_gap(void** state) {
  (void)state;
  for (int isa = 0; isa <= (int)sg__host_isa_best(); ++isa) {
    assert_true(sg__host_isa_available((sg_host_isa_t)isa));
  }
}

static void test_amx_in_c_is_taken(void** state) {
  (void)state;
#if defined(SG_TEST_AMX_IN_C)
  if (!sg__host_isa_available(SG_HOST_ISA_AVX512)) skip();
  assert_string_equal(sg__host_isa_name(sg__host_isa_best()), "amx");
#else
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_best_is_the_last_available),
      cmocka_unit_test(test_available_ones_have_no_gap),
      cmocka_unit_test(test_amx_in_c_is_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
