// SPDX-License-Identifier: Apache-2.0
//
// Statuses: messages, contexts, what is cut off, and that OK passes.

#include "runtime/base/status.h"

#include <string.h>

#include "tests/check.h"

static void test_ok_is_empty(void** state) {
  (void)state;
  sg_status_t status = sg_status_ok();
  assert_true(sg_status_is_ok(status));
  assert_int_equal(status.code, SG_STATUS_OK);
  assert_int_equal(status.line, 0);
  assert_null(status.file);
  assert_string_equal(status.message, "");
}

static void test_code_names_are_words_and_differ(void** state) {
  (void)state;
  assert_string_equal(sg_status_code_name(SG_STATUS_OUT_OF_RANGE),
                      "out of range");
  for (int i = SG_STATUS_OK; i <= SG_STATUS_INTERNAL; ++i) {
    const char* name = sg_status_code_name((sg_status_code_t)i);
    assert_non_null(name);
    assert_true(strlen(name) > 1);
    for (const char* c = name; *c != '\0'; ++c) {
      assert_true((*c >= 'a' && *c <= 'z') || *c == ' ' || *c == '/');
    }
    for (int j = SG_STATUS_OK; j < i; ++j) {
      assert_string_not_equal(name, sg_status_code_name((sg_status_code_t)j));
    }
  }
  assert_non_null(sg_status_code_name((sg_status_code_t)1000));
}

static void test_make_says_where_and_what(void** state) {
  (void)state;
  int line = __LINE__ + 1;
  sg_status_t status = sg_status_make(SG_STATUS_IO, "%s: %d of %d", "x", 3, 7);
  assert_false(sg_status_is_ok(status));
  assert_int_equal(status.code, SG_STATUS_IO);
  assert_int_equal(status.line, line);
  assert_non_null(strstr(status.file, "test_status.c"));
  assert_string_equal(status.message, "x: 3 of 7");
}

// The longest message that fits is whole; one more character is cut.
static void test_messages_are_cut_at_the_end(void** state) {
  (void)state;
  char text[2 * SG_STATUS_MESSAGE_BYTES];
  memset(text, 'a', sizeof(text));
  for (size_t length = SG_STATUS_MESSAGE_BYTES - 2; length < sizeof(text);
       ++length) {
    text[length - 1] = 'z';
    text[length] = '\0';
    sg_status_t status = sg_status_make(SG_STATUS_IO, "%s", text);
    size_t kept = length < SG_STATUS_MESSAGE_BYTES
                      ? length
                      : (size_t)SG_STATUS_MESSAGE_BYTES - 1;
    assert_int_equal(strlen(status.message), kept);
    assert_memory_equal(status.message, text, kept);
    text[length - 1] = text[length] = 'a';
  }
}

static void test_messages_are_one_line(void** state) {
  (void)state;
  sg_status_t status =
      sg_status_make(SG_STATUS_IO, "file \"%s\" is bad", "a\nb\n");
  assert_null(strchr(status.message, '\n'));
  status = sg_status_annotate(status, "in %s", "c\nd");
  assert_null(strchr(status.message, '\n'));
}

static void test_annotate_puts_the_context_before(void** state) {
  (void)state;
  sg_status_t made = sg_status_make(SG_STATUS_NOT_FOUND, "no slot %d", 4);
  sg_status_t status = sg_status_annotate(made, "layer %d", 7);
  assert_string_equal(status.message, "layer 7: no slot 4");
  assert_int_equal(status.code, SG_STATUS_NOT_FOUND);
  assert_int_equal(status.line, made.line);
  assert_ptr_equal(status.file, made.file);
  status = sg_status_annotate(status, "%s", "step");
  assert_string_equal(status.message, "step: layer 7: no slot 4");
}

static void test_annotate_leaves_ok_alone(void** state) {
  (void)state;
  sg_status_t status = sg_status_annotate(sg_status_ok(), "layer %d", 7);
  assert_true(sg_status_is_ok(status));
  assert_string_equal(status.message, "");
  assert_int_equal(status.line, 0);
  assert_null(status.file);
}

// What does not fit is cut from the end of the whole.
static void test_annotate_cuts_at_the_end(void** state) {
  (void)state;
  char context[2 * SG_STATUS_MESSAGE_BYTES];
  char expected[3 * SG_STATUS_MESSAGE_BYTES];
  for (size_t length = 1; length < sizeof(context); ++length) {
    memset(context, 'c', length);
    context[length] = '\0';
    sg_status_t status = sg_status_make(SG_STATUS_IO, "the fault");
    status = sg_status_annotate(status, "%s", context);
    memcpy(expected, context, length);
    memcpy(expected + length, ": the fault", sizeof(": the fault"));
    expected[SG_STATUS_MESSAGE_BYTES - 1] = '\0';
    assert_string_equal(status.message, expected);
  }
}

static int evaluations;

static sg_status_t count_and_return(sg_status_t status) {
  ++evaluations;
  return status;
}

static sg_status_t return_if_error(sg_status_t status, int* out_passed) {
  SG_RETURN_IF_ERROR(count_and_return(status));
  *out_passed = 1;
  return sg_status_make(SG_STATUS_INTERNAL, "after");
}

static void test_return_if_error_passes_ok(void** state) {
  (void)state;
  int passed = 0;
  evaluations = 0;
  assert_code(return_if_error(sg_status_ok(), &passed), SG_STATUS_INTERNAL);
  assert_int_equal(passed, 1);
  assert_int_equal(evaluations, 1);
  passed = 0;
  sg_status_t busy = sg_status_make(SG_STATUS_BUSY, "full");
  sg_status_t status = return_if_error(busy, &passed);
  assert_code(status, SG_STATUS_BUSY);
  assert_string_equal(status.message, "full");
  assert_int_equal(passed, 0);
  assert_int_equal(evaluations, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ok_is_empty),
      cmocka_unit_test(test_code_names_are_words_and_differ),
      cmocka_unit_test(test_make_says_where_and_what),
      cmocka_unit_test(test_messages_are_cut_at_the_end),
      cmocka_unit_test(test_messages_are_one_line),
      cmocka_unit_test(test_annotate_puts_the_context_before),
      cmocka_unit_test(test_annotate_leaves_ok_alone),
      cmocka_unit_test(test_annotate_cuts_at_the_end),
      cmocka_unit_test(test_return_if_error_passes_ok),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
