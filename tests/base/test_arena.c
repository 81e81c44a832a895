// SPDX-License-Identifier: Apache-2.0
//
// Layouts of device memory: alignment, order, overflow.

#include "runtime/base/arena.h"

#include <string.h>

#include "tests/check.h"

static void test_regions_follow_each_other_aligned(void** state) {
  (void)state;
  sg_arena_layout_t layout = {0};
  size_t end = 0;
  for (size_t count = 0; count < 700; count += 13) {
    for (size_t element = 1; element <= 8; element *= 2) {
      size_t offset = 1;
      assert_ok(sg_arena_reserve(&layout, "region", count, element, &offset));
      assert_int_equal(offset % SG_ARENA_ALIGNMENT_BYTES, 0);
      assert_true(offset >= end);
      assert_true(offset - end < SG_ARENA_ALIGNMENT_BYTES);
      end = offset + count * element;
      assert_true(layout.total_bytes >= end);
      assert_true(layout.total_bytes - end < SG_ARENA_ALIGNMENT_BYTES);
    }
  }
}

static void test_first_region_starts_at_zero(void** state) {
  (void)state;
  sg_arena_layout_t layout = {0};
  size_t offset = 1;
  assert_ok(sg_arena_reserve(&layout, "one", 1, 1, &offset));
  assert_int_equal(offset, 0);
  assert_ok(sg_arena_reserve(&layout, "two", 1, 1, &offset));
  assert_int_equal(offset, SG_ARENA_ALIGNMENT_BYTES);
}

static void check_overflow(size_t used, size_t count, size_t element) {
  sg_arena_layout_t layout = {.total_bytes = used};
  size_t offset = 1;
  sg_status_t status =
      sg_arena_reserve(&layout, "the scratch", count, element, &offset);
  assert_false(sg_status_is_ok(status));
  assert_non_null(strstr(status.message, "the scratch"));
  assert_int_equal(offset, 0);
  assert_int_equal(layout.total_bytes, used);
}

static void test_overflow_is_refused_by_name(void** state) {
  (void)state;
  check_overflow(0, SIZE_MAX / 2 + 1, 2);
  check_overflow(0, 3, SIZE_MAX / 2);
  check_overflow(1024, SIZE_MAX - 1023, 1);
  check_overflow(1024, SIZE_MAX - 512, 1);
  // The sum overflows only when the start is aligned.
  check_overflow(SIZE_MAX - 10, 1, 1);
  // Wraps to a small number.
  size_t half = (size_t)1 << (sizeof(size_t) * 4);
  check_overflow(256, half, half);
}

static void test_large_layouts_are_not_overflow(void** state) {
  (void)state;
  sg_arena_layout_t layout = {0};
  size_t offset = 1;
  size_t big = (size_t)1 << 40;
  assert_ok(sg_arena_reserve(&layout, "a", big, 4, &offset));
  assert_ok(sg_arena_reserve(&layout, "b", big, 4, &offset));
  assert_int_equal(offset, 4 * big);
  assert_true(layout.total_bytes >= 8 * big);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_regions_follow_each_other_aligned),
      cmocka_unit_test(test_first_region_starts_at_zero),
      cmocka_unit_test(test_overflow_is_refused_by_name),
      cmocka_unit_test(test_large_layouts_are_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
