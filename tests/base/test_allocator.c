// SPDX-License-Identifier: Apache-2.0
//
// Host memory: zeroed, never NULL on success, and clean failures.

#include "runtime/base/allocator.h"

#include <stdalign.h>
#include <string.h>

#include "tests/base/counting_allocator.h"
#include "tests/check.h"

static void test_system_memory_is_zeroed_and_aligned(void** state) {
  (void)state;
  sg_allocator_t system = sg_allocator_system();
  for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
    unsigned char* memory = system.allocate(system.self, bytes);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
    for (size_t i = 0; i < bytes; ++i) assert_int_equal(memory[i], 0);
    memset(memory, 0xff, bytes);
    system.release(system.self, memory);
  }
  system.release(system.self, NULL);
}

static void test_allocate_asks_for_all_elements(void** state) {
  (void)state;
  counting_allocator_t counting = {0};
  sg_allocator_t allocator = counting_allocator(&counting);
  void* memory = NULL;
  assert_ok(sg_allocate(allocator, "slots", 7, 24, &memory));
  assert_non_null(memory);
  assert_int_equal(counting.last_bytes, 7 * 24);
  for (int i = 0; i < 7 * 24; ++i) {
    assert_int_equal(((unsigned char*)memory)[i], 0);
  }
  sg_release(allocator, memory);
  assert_int_equal(counting.live, 0);
}

static void test_zero_elements_are_one_byte(void** state) {
  (void)state;
  counting_allocator_t counting = {0};
  sg_allocator_t allocator = counting_allocator(&counting);
  void* memory = NULL;
  assert_ok(sg_allocate(allocator, "slots", 0, 24, &memory));
  assert_non_null(memory);
  assert_int_equal(counting.last_bytes, 1);
  sg_release(allocator, memory);
  assert_int_equal(counting.live, 0);
}

static void test_overflow_allocates_nothing(void** state) {
  (void)state;
  static const size_t sizes[][2] = {
      {SIZE_MAX, 2},
      {2, SIZE_MAX},
      {SIZE_MAX / 2 + 1, 2},
      {SIZE_MAX / 16 + 2, 16},
      // Wraps to a small number.
      {((size_t)1 << (sizeof(size_t) * 4)) + 1,
       ((size_t)1 << (sizeof(size_t) * 4)) + 1},
  };
  counting_allocator_t counting = {0};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    void* memory = &counting;
    sg_status_t status = sg_allocate(counting_allocator(&counting), "the slots",
                                     sizes[i][0], sizes[i][1], &memory);
    assert_code(status, SG_STATUS_OUT_OF_MEMORY);
    assert_non_null(strstr(status.message, "the slots"));
    assert_null(memory);
  }
  assert_int_equal(counting.allocations, 0);
}

static void test_failure_names_the_object(void** state) {
  (void)state;
  counting_allocator_t counting = {.fail_nth = 1};
  sg_allocator_t allocator = counting_allocator(&counting);
  void* memory = &counting;
  sg_status_t status = sg_allocate(allocator, "the slots", 3, 8, &memory);
  assert_code(status, SG_STATUS_OUT_OF_MEMORY);
  assert_non_null(strstr(status.message, "the slots"));
  assert_null(memory);
  char text[] = "text";
  char* copy = text;
  counting = (counting_allocator_t){.fail_nth = 1};
  assert_code(sg_allocate_string(allocator, text, &copy),
              SG_STATUS_OUT_OF_MEMORY);
  assert_null(copy);
}

static void test_release_accepts_nothing(void** state) {
  (void)state;
  sg_release((sg_allocator_t){0}, NULL);
  sg_release(sg_allocator_system(), NULL);
}

static void test_strings_are_copied_whole(void** state) {
  (void)state;
  enum { LENGTH = 100000 };
  counting_allocator_t counting = {0};
  sg_allocator_t allocator = counting_allocator(&counting);
  char* copy = NULL;
  assert_ok(sg_allocate_string(allocator, "", &copy));
  assert_string_equal(copy, "");
  sg_release(allocator, copy);
  char* text = malloc(LENGTH + 1);
  assert_non_null(text);
  memset(text, 'x', LENGTH);
  text[LENGTH] = '\0';
  assert_ok(sg_allocate_string(allocator, text, &copy));
  assert_ptr_not_equal(copy, text);
  assert_string_equal(copy, text);
  text[0] = 'y';
  assert_int_equal(copy[0], 'x');
  sg_release(allocator, copy);
  free(text);
  assert_int_equal(counting.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_system_memory_is_zeroed_and_aligned),
      cmocka_unit_test(test_allocate_asks_for_all_elements),
      cmocka_unit_test(test_zero_elements_are_one_byte),
      cmocka_unit_test(test_overflow_allocates_nothing),
      cmocka_unit_test(test_failure_names_the_object),
      cmocka_unit_test(test_release_accepts_nothing),
      cmocka_unit_test(test_strings_are_copied_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
