// SPDX-License-Identifier: Apache-2.0
//
// Runs the fuzz entry over all files of the tests, each whole, cut short, and
// with bytes changed. Every text stands in a block of exactly its size, so that
// a sanitizer sees a read beyond it.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/schemas/case_files.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

enum { MAX_FILE_BYTES = 1 << 20, VARIANTS = 24 };

static void feed(const char* text, size_t bytes) {
  uint8_t* copy = malloc(bytes == 0 ? 1 : bytes);
  assert_non_null(copy);
  memcpy(copy, text, bytes);
  LLVMFuzzerTestOneInput(copy, bytes);
  free(copy);
}

static uint32_t next_random(uint32_t* seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static void feed_variants(const char* path, void* argument) {
  char* text = argument;
  const size_t bytes = read_bytes(path, text, MAX_FILE_BYTES);
  feed(text, bytes);
  if (bytes == 0) return;
  static const char interesting[] = "{}[]\",:\\-0.eE\n\r\xff\x80";
  uint32_t seed = 1;
  for (int32_t i = 0; i < VARIANTS; ++i) {
    feed(text, next_random(&seed) % bytes);
    const size_t place = next_random(&seed) % bytes;
    const char before = text[place];
    // The final NUL is one of them.
    text[place] = interesting[next_random(&seed) % sizeof(interesting)];
    feed(text, bytes);
    text[place] = before;
  }
}

static void test_fuzz_regression_all_files(void** state) {
  (void)state;
  static const char* const folders[] = {"schemas/examples",
                                        "schemas/models",
                                        "schemas/shapes",
                                        "tests/schemas/invalid/syntax",
                                        "tests/schemas/invalid/schema",
                                        "tests/schemas/invalid/meaning"};
  char* text = malloc(MAX_FILE_BYTES);
  assert_non_null(text);
  for (size_t i = 0; i < 6; ++i) {
    assert_true(visit_case_files(folders[i], feed_variants, text) > 0);
  }
  free(text);
}

static void test_fuzz_regression_no_bytes(void** state) {
  (void)state;
  feed("", 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fuzz_regression_all_files),
      cmocka_unit_test(test_fuzz_regression_no_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
