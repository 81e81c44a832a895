// SPDX-License-Identifier: Apache-2.0
//
// Size arithmetic at its edges.

#include "runtime/base/checked.h"

#include "tests/check.h"

static void test_add(void** state) {
  (void)state;
  size_t out = 5;
  assert_true(sg_checked_add(2, 3, &out));
  assert_int_equal(out, 5);
  assert_true(sg_checked_add(SIZE_MAX, 0, &out));
  assert_int_equal(out, SIZE_MAX);
  assert_true(sg_checked_add(1, SIZE_MAX - 1, &out));
  assert_int_equal(out, SIZE_MAX);
  out = 77;
  assert_false(sg_checked_add(1, SIZE_MAX, &out));
  assert_false(sg_checked_add(SIZE_MAX, 1, &out));
  assert_false(sg_checked_add(SIZE_MAX, SIZE_MAX, &out));
  assert_int_equal(out, 77);
}

static void test_mul(void** state) {
  (void)state;
  size_t out = 0;
  assert_true(sg_checked_mul(6, 7, &out));
  assert_int_equal(out, 42);
  assert_true(sg_checked_mul(0, SIZE_MAX, &out));
  assert_int_equal(out, 0);
  out = 1;
  assert_true(sg_checked_mul(SIZE_MAX, 0, &out));
  assert_int_equal(out, 0);
  assert_true(sg_checked_mul(SIZE_MAX / 3, 3, &out));
  assert_int_equal(out, SIZE_MAX / 3 * 3);
  assert_true(sg_checked_mul(SIZE_MAX, 1, &out));
  assert_int_equal(out, SIZE_MAX);
  out = 77;
  assert_false(sg_checked_mul(SIZE_MAX / 3 + 1, 3, &out));
  assert_false(sg_checked_mul(3, SIZE_MAX / 3 + 1, &out));
  size_t half = (size_t)1 << (sizeof(size_t) * 4);
  assert_false(sg_checked_mul(half, half, &out));
  assert_int_equal(out, 77);
  assert_true(sg_checked_mul(half, half - 1, &out));
  assert_int_equal(out, SIZE_MAX - half + 1);
}

static void test_align(void** state) {
  (void)state;
  size_t out = 1;
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (size_t value = 0; value < 300; ++value) {
      assert_true(sg_checked_align(value, alignment, &out));
      assert_int_equal(out, (value + alignment - 1) / alignment * alignment);
    }
  }
  assert_true(sg_checked_align(SIZE_MAX - 255, 256, &out));
  assert_int_equal(out, SIZE_MAX - 255);
  assert_true(sg_checked_align(SIZE_MAX, 1, &out));
  assert_int_equal(out, SIZE_MAX);
  out = 77;
  assert_false(sg_checked_align(SIZE_MAX - 254, 256, &out));
  assert_false(sg_checked_align(SIZE_MAX, 2, &out));
  assert_int_equal(out, 77);
}

static void test_ceil_div(void** state) {
  (void)state;
  assert_int_equal(sg_ceil_div(0, 64), 0);
  assert_int_equal(sg_ceil_div(1, 64), 1);
  assert_int_equal(sg_ceil_div(63, 64), 1);
  assert_int_equal(sg_ceil_div(64, 64), 1);
  assert_int_equal(sg_ceil_div(65, 64), 2);
  assert_int_equal(sg_ceil_div(7, 1), 7);
  int64_t large = (int64_t)1 << 40;
  assert_int_equal(sg_ceil_div(large + 1, 2), large / 2 + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_add),
      cmocka_unit_test(test_mul),
      cmocka_unit_test(test_align),
      cmocka_unit_test(test_ceil_div),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
