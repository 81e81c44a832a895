// SPDX-License-Identifier: Apache-2.0

#include "tests/kernels/kda_case.h"

#include <string.h>

kda_case_t kda_case_of(int32_t count, const int32_t* lens) {
  kda_case_t test;
  memset(&test, 0, sizeof(test));
  test.geometry = (sg_kda_geometry_t){
      .heads = 2,
      .value_heads = 2,
      .key_dim = 64,
      .value_dim = 64,
      .conv_width = 4,
      .chunk_size = 64,
      .gate_kind = SG_GATE_SOFTPLUS,
      .gate_lower_bound = -5.0f,
      .beta_kind = SG_BETA_SIGMOID,
      .qk_l2norm = true,
      .scale = 0.125f,
      .activation_dtype = SG_DTYPE_FP32,
      .state_dtype = SG_DTYPE_FP32,
      .norm_epsilon = 1e-5f,
  };
  test.sequence_count = count;
  for (int32_t i = 0; i < count; ++i) {
    test.lens[i] = lens[i];
    test.computed[i] = i % 2 == 0 ? 100 : 0;
    test.slots[i] = i + 1;
  }
  test.slot_count = count + 2;
  test.null_slot = 0;
  test.has_bias = true;
  test.seed = 1;
  test.isa = sg__host_isa_best();
  return test;
}

int32_t kda_case_decodes(const kda_case_t* test) {
  int32_t count = 0;
  while (count < test->sequence_count && test->lens[count] == 1 &&
         (test->computed[count] > 0 || test->fresh_decodes)) {
    ++count;
  }
  return count;
}

int32_t kda_case_tokens(const kda_case_t* test) {
  int32_t count = 0;
  for (int32_t i = 0; i < test->sequence_count; ++i) count += test->lens[i];
  return count;
}

bool kda_case_is_live(const kda_case_t* test, int32_t sequence) {
  return test->lens[sequence] > 0 && test->slots[sequence] >= 0 &&
         test->slots[sequence] != test->null_slot;
}
