// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets of the host give the same bits, though some of them
// contract multiplications and additions.

#include <stdlib.h>
#include <string.h>

#include "kernels/random_fill/random_fill.h"
#include "kernels/random_fill/random_fill_host.h"
#include "tests/check.h"

enum { ELEMENTS = 5003 };

static void run(sg_host_isa_t isa, sg_dtype_t dtype, float* out_data) {
  const sg_random_fill_params_t params = {.data = out_data,
                                          .seed = 11,
                                          .rows = 1,
                                          .row_stride = ELEMENTS,
                                          .row_elements = ELEMENTS,
                                          .dtype = dtype,
                                          .rows_per_block = 1,
                                          .columns_per_block = ELEMENTS,
                                          // 14 significant bits, all set.
                                          .step = 16383.0f / 65536,
                                          .offset = -4.6f};
  const sg_host_block_t block = {.grid = 1, .threads = 256};
  sg__random_fill_variant(isa)->run_block(&params, &block);
}

static void test_variants_agree(void** state) {
  (void)state;
  static float portable[ELEMENTS];
  static float other[ELEMENTS];
  for (int dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_FP16; ++dtype) {
    memset(portable, 0, sizeof(portable));
    run(SG_HOST_ISA_PORTABLE, (sg_dtype_t)dtype, portable);
    for (int isa = SG_HOST_ISA_AVX2; isa < SG_HOST_ISA_COUNT; ++isa) {
      if (!sg__host_isa_available((sg_host_isa_t)isa)) continue;
      memset(other, 0, sizeof(other));
      run((sg_host_isa_t)isa, (sg_dtype_t)dtype, other);
      assert_memory_equal(other, portable, sizeof(portable));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_variants_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
