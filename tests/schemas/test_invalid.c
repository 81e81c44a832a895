// SPDX-License-Identifier: Apache-2.0
//
// Each file under tests/schemas/invalid is refused, with the message fragment
// that stands in the ".expected" beside it.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/schemas/case_files.h"

static void read_expected(const char* path, char* text, size_t capacity) {
  char expected_path[512];
  const char* name = strrchr(path, '/') + 1;
  // Case names have points in them ("layers-2.0"); the last two are the kind
  // and the format.
  const char* format = strrchr(name, '.');
  const char* kind = format;
  do {
    --kind;
  } while (*kind != '.');
  snprintf(expected_path, sizeof(expected_path), "%.*s.expected",
           (int)(kind - path), path);
  const size_t bytes = read_bytes(expected_path, text, capacity - 1);
  assert_true(bytes > 1);
  assert_int_equal(text[bytes - 1], '\n');
  text[bytes - 1] = '\0';
}

static void check_case(const char* path, void* failures) {
  char expected[512];
  read_expected(path, expected, sizeof(expected));
  sg_status_t status = read_case_file(path);
  const char* name = strrchr(path, '/') + 1;
  int is_one_line = 1;
  for (const char* byte = status.message; *byte != '\0'; ++byte) {
    if ((unsigned char)*byte < 0x20) is_one_line = 0;
  }
  if (status.code == SG_STATUS_INVALID_DATA && is_one_line &&
      strstr(status.message, expected) != NULL &&
      strstr(status.message, name) != NULL) {
    return;
  }
  print_error("%s\n  expected: %s\n  found: %s: %s\n", path, expected,
              sg_status_code_name(status.code), status.message);
  ++*(int*)failures;
}

static void check_folder(const char* folder, size_t min_count) {
  int failures = 0;
  const size_t count = visit_case_files(folder, check_case, &failures);
  assert_int_equal(failures, 0);
  assert_true(count >= min_count);
}

static void test_invalid_syntax(void** state) {
  (void)state;
  check_folder("tests/schemas/invalid/syntax", 80);
}

static void test_invalid_schema(void** state) {
  (void)state;
  check_folder("tests/schemas/invalid/schema", 120);
}

static void test_invalid_meaning(void** state) {
  (void)state;
  check_folder("tests/schemas/invalid/meaning", 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_invalid_syntax),
      cmocka_unit_test(test_invalid_schema),
      cmocka_unit_test(test_invalid_meaning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
