// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/shapes.h"
#include "tests/schemas/failing_allocator.h"

static const char example_path[] = "schemas/examples/shapes.json";

static sg_shapes_t parse(const char* text) {
  sg_shapes_t shapes;
  sg_status_t status = sg_shapes_parse(sg_allocator_system(), text,
                                       strlen(text), "test.json", &shapes);
  assert_string_equal(status.message, "");
  return shapes;
}

static void assert_shape(const sg_shape_t* shape, const char* name,
                         sg_phase_t phase, int32_t max_tokens,
                         int32_t max_sequences) {
  assert_string_equal(shape->name, name);
  assert_int_equal(shape->phase, phase);
  assert_int_equal(shape->max_tokens, max_tokens);
  assert_int_equal(shape->max_sequences, max_sequences);
}

static void assert_is_example(const sg_shapes_t* shapes) {
  assert_int_equal(shapes->limits.max_tokens, 4096);
  assert_int_equal(shapes->limits.max_sequences, 64);
  assert_int_equal(shapes->shape_count, 4);
  assert_shape(&shapes->shapes[0], "decode-16", SG_PHASE_DECODE, 16, 16);
  assert_shape(&shapes->shapes[1], "decode-16-sparse", SG_PHASE_DECODE, 16, 64);
  assert_shape(&shapes->shapes[2], "mixed-1024", SG_PHASE_MIXED, 1024, 64);
  assert_shape(&shapes->shapes[3], "prefill-1000", SG_PHASE_PREFILL, 1000, 4);
  assert_true(shapes->policy.max_padding_ratio == 1.5);
  assert_int_equal(shapes->policy.capture, SG_CAPTURE_LAZY);
  assert_int_equal(shapes->policy.memory_budget_bytes, 268435456);
  assert_int_equal(shapes->policy.on_no_match, SG_NO_MATCH_ERROR);
}

static void test_shapes_values(void** state) {
  (void)state;
  sg_shapes_t shapes;
  sg_status_t status =
      sg_shapes_load(sg_allocator_system(), example_path, &shapes);
  assert_string_equal(status.message, "");
  assert_is_example(&shapes);
  sg_shapes_deinitialize(&shapes);
  assert_null(shapes.shapes);
}

static void test_shapes_written_read_back(void** state) {
  (void)state;
  sg_shapes_t shapes;
  sg_status_t status =
      sg_shapes_load(sg_allocator_system(), example_path, &shapes);
  assert_string_equal(status.message, "");
  sg_json_writer_t writer;
  sg_json_writer_initialize_buffer(&writer, sg_allocator_system(), 2);
  sg_shapes_write(&shapes, &writer);
  status = sg_json_writer_finish(&writer);
  assert_string_equal(status.message, "");
  sg_shapes_deinitialize(&shapes);
  shapes = parse(sg_json_writer_text(&writer, NULL));
  assert_is_example(&shapes);
  sg_shapes_deinitialize(&shapes);
  sg_json_writer_deinitialize(&writer);
}

static void assert_default_policy(const sg_shapes_t* shapes) {
  assert_true(shapes->policy.max_padding_ratio == 0);
  assert_int_equal(shapes->policy.capture, SG_CAPTURE_STARTUP);
  assert_int_equal(shapes->policy.memory_budget_bytes, 0);
  assert_int_equal(shapes->policy.on_no_match, SG_NO_MATCH_EAGER);
}

static void test_shapes_defaults(void** state) {
  (void)state;
  static const char* const policies[] = {
      "", ",\"policy\":{}",
      ",\"policy\":{\"max_padding_ratio\":null,\"memory_budget_bytes\":null}"};
  for (size_t i = 0; i < 3; ++i) {
    char text[256];
    snprintf(text, sizeof(text),
             "{\"version\":1,\"limits\":{\"max_tokens\":1048576,"
             "\"max_sequences\":65536},\"shapes\":[]%s}",
             policies[i]);
    sg_shapes_t shapes = parse(text);
    assert_int_equal(shapes.shape_count, 0);
    assert_int_equal(shapes.limits.max_tokens, 1048576);
    assert_int_equal(shapes.limits.max_sequences, 65536);
    assert_default_policy(&shapes);
    sg_shapes_deinitialize(&shapes);
  }
}

static void test_shapes_no_policy_written_as_null(void** state) {
  (void)state;
  sg_shapes_t shapes = parse(
      "{\"version\":1,\"limits\":{\"max_tokens\":8,\"max_sequences\":8},"
      "\"shapes\":[]}");
  sg_json_writer_t writer;
  sg_json_writer_initialize_buffer(&writer, sg_allocator_system(), 0);
  sg_shapes_write(&shapes, &writer);
  sg_status_t status = sg_json_writer_finish(&writer);
  assert_string_equal(status.message, "");
  assert_string_equal(
      sg_json_writer_text(&writer, NULL),
      "{\"version\":1,\"limits\":{\"max_tokens\":8,\"max_sequences\":8},"
      "\"shapes\":[],\"policy\":{\"max_padding_ratio\":null,"
      "\"capture\":\"startup\",\"memory_budget_bytes\":null,"
      "\"on_no_match\":\"eager\"}}\n");
  sg_json_writer_deinitialize(&writer);
  sg_shapes_deinitialize(&shapes);
}

static void test_shapes_policy_ends(void** state) {
  (void)state;
  sg_shapes_t shapes = parse(
      "{\"version\":1,\"limits\":{\"max_tokens\":8,\"max_sequences\":8},"
      "\"shapes\":[],\"policy\":{\"max_padding_ratio\":1,"
      "\"capture\":\"background\",\"memory_budget_bytes\":1125899906842624}}");
  assert_true(shapes.policy.max_padding_ratio == 1);
  assert_int_equal(shapes.policy.capture, SG_CAPTURE_BACKGROUND);
  assert_int_equal(shapes.policy.memory_budget_bytes, UINT64_C(1) << 50);
  sg_shapes_deinitialize(&shapes);
}

// The same numbers are two shapes when the phases differ.
static void test_shapes_same_size_in_two_phases(void** state) {
  (void)state;
  sg_shapes_t shapes = parse(
      "{\"version\":1,\"limits\":{\"max_tokens\":8,\"max_sequences\":8},"
      "\"shapes\":[{\"name\":\"a\",\"phase\":\"mixed\",\"max_tokens\":8,"
      "\"max_sequences\":8},{\"name\":\"A\",\"phase\":\"prefill\","
      "\"max_tokens\":8,\"max_sequences\":8}]}");
  assert_int_equal(shapes.shape_count, 2);
  sg_shapes_deinitialize(&shapes);
}

static void test_shapes_names(void** state) {
  (void)state;
  assert_string_equal(sg_phase_name(SG_PHASE_DECODE), "decode");
  assert_string_equal(sg_phase_name(SG_PHASE_PREFILL), "prefill");
  assert_string_equal(sg_phase_name(SG_PHASE_MIXED), "mixed");
  assert_string_equal(sg_capture_time_name(SG_CAPTURE_STARTUP), "startup");
  assert_string_equal(sg_capture_time_name(SG_CAPTURE_LAZY), "lazy");
  assert_string_equal(sg_capture_time_name(SG_CAPTURE_BACKGROUND),
                      "background");
  assert_string_equal(sg_no_match_name(SG_NO_MATCH_EAGER), "eager");
  assert_string_equal(sg_no_match_name(SG_NO_MATCH_ERROR), "error");
}

static sg_status_t read_example(sg_allocator_t allocator,
                                const void* argument) {
  (void)argument;
  sg_shapes_t shapes;
  sg_status_t status = sg_shapes_load(allocator, example_path, &shapes);
  sg_shapes_deinitialize(&shapes);
  return status;
}

static void test_shapes_failing_allocations(void** state) {
  (void)state;
  // The text of the file, the array and four names.
  assert_survives_failing_allocations(read_example, NULL, 6);
}

static void test_shapes_deinitialize_accepts_nothing(void** state) {
  (void)state;
  sg_shapes_t shapes = {0};
  sg_shapes_deinitialize(&shapes);
  sg_shapes_deinitialize(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes_values),
      cmocka_unit_test(test_shapes_written_read_back),
      cmocka_unit_test(test_shapes_defaults),
      cmocka_unit_test(test_shapes_no_policy_written_as_null),
      cmocka_unit_test(test_shapes_policy_ends),
      cmocka_unit_test(test_shapes_same_size_in_two_phases),
      cmocka_unit_test(test_shapes_names),
      cmocka_unit_test(test_shapes_failing_allocations),
      cmocka_unit_test(test_shapes_deinitialize_accepts_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
