// SPDX-License-Identifier: Apache-2.0

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/json_writer.h"
#include "tests/schemas/failing_allocator.h"

static void start(sg_json_writer_t* writer, int32_t indent_spaces) {
  sg_json_writer_initialize_buffer(writer, sg_allocator_system(),
                                   indent_spaces);
}

static void assert_finishes_as(sg_json_writer_t* writer, const char* expected) {
  sg_status_t status = sg_json_writer_finish(writer);
  assert_string_equal(status.message, "");
  size_t bytes;
  assert_string_equal(sg_json_writer_text(writer, &bytes), expected);
  assert_int_equal(bytes, strlen(expected));
  sg_json_writer_deinitialize(writer);
}

static void assert_finishes_with(sg_json_writer_t* writer,
                                 sg_status_code_t code) {
  sg_status_t status = sg_json_writer_finish(writer);
  assert_int_equal(status.code, code);
  assert_true(status.message[0] != '\0');
  sg_json_writer_deinitialize(writer);
}

static void write_sample(sg_json_writer_t* writer) {
  sg_json_writer_begin_object(writer);
  sg_json_writer_key(writer, "name");
  sg_json_writer_string(writer, "a");
  sg_json_writer_key(writer, "list");
  sg_json_writer_begin_array(writer);
  sg_json_writer_int64(writer, -1);
  sg_json_writer_begin_inline_object(writer);
  sg_json_writer_key(writer, "grid");
  sg_json_writer_begin_array(writer);
  sg_json_writer_uint64(writer, 1);
  sg_json_writer_uint64(writer, 2);
  sg_json_writer_end_array(writer);
  sg_json_writer_key(writer, "on");
  sg_json_writer_bool(writer, true);
  sg_json_writer_end_object(writer);
  sg_json_writer_end_array(writer);
  sg_json_writer_key(writer, "none");
  sg_json_writer_begin_object(writer);
  sg_json_writer_end_object(writer);
  sg_json_writer_key(writer, "nothing");
  sg_json_writer_begin_array(writer);
  sg_json_writer_end_array(writer);
  sg_json_writer_key(writer, "null");
  sg_json_writer_null(writer);
  sg_json_writer_end_object(writer);
}

static void test_json_writer_compact(void** state) {
  (void)state;
  sg_json_writer_t writer;
  start(&writer, 0);
  write_sample(&writer);
  assert_finishes_as(&writer,
                     "{\"name\":\"a\",\"list\":[-1,{\"grid\":[1,2],"
                     "\"on\":true}],\"none\":{},\"nothing\":[],"
                     "\"null\":null}\n");
}

static const char indented_sample[] =
    "{\n"
    "  \"name\": \"a\",\n"
    "  \"list\": [\n"
    "    -1,\n"
    "    {\"grid\": [1, 2], \"on\": true}\n"
    "  ],\n"
    "  \"none\": {},\n"
    "  \"nothing\": [],\n"
    "  \"null\": null\n"
    "}\n";

static void test_json_writer_indented(void** state) {
  (void)state;
  sg_json_writer_t writer;
  start(&writer, 2);
  write_sample(&writer);
  assert_finishes_as(&writer, indented_sample);
}

static void test_json_writer_inline_outermost(void** state) {
  (void)state;
  sg_json_writer_t writer;
  start(&writer, 1);
  sg_json_writer_begin_inline_array(&writer);
  sg_json_writer_int64(&writer, 1);
  sg_json_writer_begin_object(&writer);
  sg_json_writer_key(&writer, "a");
  sg_json_writer_bool(&writer, false);
  sg_json_writer_key(&writer, "b");
  sg_json_writer_null(&writer);
  sg_json_writer_end_object(&writer);
  sg_json_writer_end_array(&writer);
  assert_finishes_as(&writer, "[1, {\"a\": false, \"b\": null}]\n");
}

static void test_json_writer_file(void** state) {
  (void)state;
  FILE* file = tmpfile();
  assert_non_null(file);
  sg_json_writer_t writer;
  sg_json_writer_initialize_file(&writer, file, 2);
  write_sample(&writer);
  sg_status_t status = sg_json_writer_finish(&writer);
  assert_string_equal(status.message, "");
  sg_json_writer_deinitialize(&writer);
  char text[512] = {0};
  rewind(file);
  assert_int_equal(fread(text, 1, sizeof(text) - 1, file),
                   strlen(indented_sample));
  assert_string_equal(text, indented_sample);
  fclose(file);
}

static void test_json_writer_file_that_cannot_be_written(void** state) {
  (void)state;
  FILE* file = fopen("schemas/model.schema.json", "rb");
  assert_non_null(file);
  sg_json_writer_t writer;
  sg_json_writer_initialize_file(&writer, file, 2);
  write_sample(&writer);
  assert_finishes_with(&writer, SG_STATUS_IO);
  fclose(file);
}

static void assert_string(const char* text, const char* expected) {
  sg_json_writer_t writer;
  start(&writer, 0);
  sg_json_writer_string(&writer, text);
  assert_finishes_as(&writer, expected);
}

static void test_json_writer_strings(void** state) {
  (void)state;
  assert_string("", "\"\"\n");
  assert_string(NULL, "null\n");
  assert_string("\"\\/\b\f\n\r\t", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"\n");
  assert_string("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"\n");
  // The first and last character of each length, and around the surrogates.
  static const char valid[] =
      "\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"
      "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  char expected[64];
  snprintf(expected, sizeof(expected), "\"%s\"\n", valid);
  assert_string(valid, expected);
}

static void test_json_writer_invalid_utf8(void** state) {
  (void)state;
#define REPLACED "\xEF\xBF\xBD"
  assert_string("a\x80z", "\"a" REPLACED "z\"\n");
  assert_string("\xC0\xAF", "\"" REPLACED REPLACED "\"\n");
  assert_string("\xC3", "\"" REPLACED "\"\n");
  assert_string("\xC3\"", "\"" REPLACED "\\\"\"\n");
  assert_string("\xE0\x9F\xBF", "\"" REPLACED REPLACED REPLACED "\"\n");
  assert_string("\xED\xA0\x80", "\"" REPLACED REPLACED REPLACED "\"\n");
  assert_string("\xE2\x82", "\"" REPLACED REPLACED "\"\n");
  assert_string("\xF0\x8F\xBF\xBF",
                "\"" REPLACED REPLACED REPLACED REPLACED "\"\n");
  assert_string("\xF4\x90\x80\x80",
                "\"" REPLACED REPLACED REPLACED REPLACED "\"\n");
  assert_string("\xF5", "\"" REPLACED "\"\n");
#undef REPLACED
}

static void test_json_writer_integers(void** state) {
  (void)state;
  sg_json_writer_t writer;
  start(&writer, 0);
  sg_json_writer_begin_array(&writer);
  sg_json_writer_int64(&writer, INT64_MIN);
  sg_json_writer_int64(&writer, 0);
  sg_json_writer_uint64(&writer, UINT64_MAX);
  sg_json_writer_end_array(&writer);
  assert_finishes_as(&writer,
                     "[-9223372036854775808,0,18446744073709551615]\n");
}

static void assert_double(double value, const char* expected) {
  char line[64];
  snprintf(line, sizeof(line), "%s\n", expected);
  sg_json_writer_t writer;
  start(&writer, 0);
  sg_json_writer_double(&writer, value);
  assert_finishes_as(&writer, line);
}

static void test_json_writer_doubles(void** state) {
  (void)state;
  assert_double(0, "0");
  assert_double(-0.0, "-0");
  assert_double(1, "1");
  assert_double(0.1, "0.1");
  assert_double(-2.5, "-2.5");
  assert_double(1.0 / 3, "0.3333333333333333");
  assert_double(0.1 + 0.2, "0.30000000000000004");
  assert_double(1e-5, "1e-05");
  assert_double(1e300, "1e+300");
  assert_double(DBL_MAX, "1.7976931348623157e+308");
}

static void test_json_writer_doubles_read_back(void** state) {
  (void)state;
  uint64_t bits = 1;
  for (int32_t i = 0; i < 10000; ++i) {
    bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (!isfinite(value)) continue;
    sg_json_writer_t writer;
    start(&writer, 0);
    sg_json_writer_double(&writer, value);
    sg_status_t status = sg_json_writer_finish(&writer);
    assert_string_equal(status.message, "");
    assert_true(strtod(sg_json_writer_text(&writer, NULL), NULL) == value);
    sg_json_writer_deinitialize(&writer);
  }
}

static void test_json_writer_double_not_finite(void** state) {
  (void)state;
  const double values[] = {INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < 3; ++i) {
    sg_json_writer_t writer;
    start(&writer, 0);
    sg_json_writer_double(&writer, values[i]);
    assert_finishes_with(&writer, SG_STATUS_INVALID_ARGUMENT);
  }
}

// Skipped where no locale with a comma is installed.
static void test_json_writer_locale(void** state) {
  (void)state;
  static const char* const names[] = {"de_DE.UTF-8", "de_DE.utf8",
                                      "fr_FR.UTF-8", "de_DE"};
  const char* chosen = NULL;
  for (size_t i = 0; i < 4 && chosen == NULL; ++i) {
    chosen = setlocale(LC_NUMERIC, names[i]);
  }
  if (chosen == NULL) skip();
  assert_double(0.5, "0.5");
  assert_double(1.5e-7, "1.5e-07");
  setlocale(LC_NUMERIC, "C");
}

static void test_json_writer_misuse(void** state) {
  (void)state;
  sg_json_writer_t writer;
  start(&writer, 0);  // nothing
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // a second value
  sg_json_writer_null(&writer);
  sg_json_writer_null(&writer);
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // an object left open
  sg_json_writer_begin_object(&writer);
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // a value without its key
  sg_json_writer_begin_object(&writer);
  sg_json_writer_int64(&writer, 1);
  sg_json_writer_end_object(&writer);
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // a key without its value
  sg_json_writer_begin_object(&writer);
  sg_json_writer_key(&writer, "a");
  sg_json_writer_end_object(&writer);
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // two keys
  sg_json_writer_begin_object(&writer);
  sg_json_writer_key(&writer, "a");
  sg_json_writer_key(&writer, "b");
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // a key in an array
  sg_json_writer_begin_array(&writer);
  sg_json_writer_key(&writer, "a");
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // the other bracket
  sg_json_writer_begin_array(&writer);
  sg_json_writer_end_object(&writer);
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
  start(&writer, 0);  // nothing to end
  sg_json_writer_end_array(&writer);
  assert_finishes_with(&writer, SG_STATUS_FAILED_PRECONDITION);
}

static void test_json_writer_depth(void** state) {
  (void)state;
  for (int32_t depth = SG_JSON_WRITER_MAX_DEPTH;
       depth <= SG_JSON_WRITER_MAX_DEPTH + 1; ++depth) {
    sg_json_writer_t writer;
    start(&writer, 0);
    for (int32_t i = 0; i < depth; ++i) sg_json_writer_begin_array(&writer);
    for (int32_t i = 0; i < depth; ++i) sg_json_writer_end_array(&writer);
    sg_status_t status = sg_json_writer_finish(&writer);
    assert_int_equal(status.code, depth == SG_JSON_WRITER_MAX_DEPTH
                                      ? SG_STATUS_OK
                                      : SG_STATUS_FAILED_PRECONDITION);
    sg_json_writer_deinitialize(&writer);
  }
}

static sg_status_t write_long(sg_allocator_t allocator, const void* argument) {
  (void)argument;
  sg_json_writer_t writer;
  sg_json_writer_initialize_buffer(&writer, allocator, 2);
  sg_json_writer_begin_array(&writer);
  for (int64_t i = 0; i < 1000; ++i) sg_json_writer_int64(&writer, i);
  sg_json_writer_end_array(&writer);
  sg_status_t status = sg_json_writer_finish(&writer);
  sg_json_writer_deinitialize(&writer);
  return status;
}

static void test_json_writer_failing_allocations(void** state) {
  (void)state;
  assert_survives_failing_allocations(write_long, NULL, 5);
}

static void test_json_writer_deinitialize_accepts_nothing(void** state) {
  (void)state;
  sg_json_writer_t writer = {0};
  assert_string_equal(sg_json_writer_text(&writer, NULL), "");
  sg_json_writer_deinitialize(&writer);
  sg_json_writer_deinitialize(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_json_writer_compact),
      cmocka_unit_test(test_json_writer_indented),
      cmocka_unit_test(test_json_writer_inline_outermost),
      cmocka_unit_test(test_json_writer_file),
      cmocka_unit_test(test_json_writer_file_that_cannot_be_written),
      cmocka_unit_test(test_json_writer_strings),
      cmocka_unit_test(test_json_writer_invalid_utf8),
      cmocka_unit_test(test_json_writer_integers),
      cmocka_unit_test(test_json_writer_doubles),
      cmocka_unit_test(test_json_writer_doubles_read_back),
      cmocka_unit_test(test_json_writer_double_not_finite),
      cmocka_unit_test(test_json_writer_locale),
      cmocka_unit_test(test_json_writer_misuse),
      cmocka_unit_test(test_json_writer_depth),
      cmocka_unit_test(test_json_writer_failing_allocations),
      cmocka_unit_test(test_json_writer_deinitialize_accepts_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
