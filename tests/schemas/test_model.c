// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/model.h"
#include "tests/schemas/failing_allocator.h"

static const char example_path[] = "schemas/examples/model.json";

static sg_model_t parse(const char* text) {
  sg_model_t model;
  sg_status_t status = sg_model_parse(sg_allocator_system(), text, strlen(text),
                                      "test.json", &model);
  assert_string_equal(status.message, "");
  return model;
}

static void test_model_values(void** state) {
  (void)state;
  sg_model_t model;
  sg_status_t status =
      sg_model_load(sg_allocator_system(), example_path, &model);
  assert_string_equal(status.message, "");
  assert_string_equal(model.name, "example-tp2");
  assert_int_equal(model.layers, 12);
  const sg_kda_geometry_t geometry = model.geometry;
  assert_int_equal(geometry.heads, 8);
  assert_int_equal(geometry.value_heads, 16);
  assert_int_equal(geometry.key_dim, 128);
  assert_int_equal(geometry.value_dim, 64);
  assert_int_equal(geometry.conv_width, 3);
  assert_int_equal(geometry.chunk_size, 32);
  assert_int_equal(geometry.gate_kind, SG_GATE_LOWER_BOUND);
  assert_true(geometry.gate_lower_bound == -2.5f);
  assert_int_equal(geometry.beta_kind, SG_BETA_DOUBLE_SIGMOID);
  assert_false(geometry.qk_l2norm);
  assert_true(geometry.scale == 0.125f);
  assert_int_equal(geometry.activation_dtype, SG_DTYPE_FP16);
  assert_int_equal(geometry.state_dtype, SG_DTYPE_BF16);
  assert_true(geometry.norm_epsilon == 1e-6f);
  sg_model_deinitialize(&model);
  assert_null(model.name);
}

static void test_model_defaults(void** state) {
  (void)state;
  sg_model_t model = parse(
      "{\"version\":1,\"name\":\"m\",\"layers\":1,\"heads\":3,\"key_dim\":64,"
      "\"value_dim\":32,\"gate\":{\"kind\":\"softplus\"}}");
  const sg_kda_geometry_t geometry = model.geometry;
  assert_int_equal(geometry.value_heads, 3);
  assert_int_equal(geometry.conv_width, 4);
  assert_int_equal(geometry.chunk_size, 64);
  assert_int_equal(geometry.gate_kind, SG_GATE_SOFTPLUS);
  assert_int_equal(geometry.beta_kind, SG_BETA_SIGMOID);
  assert_true(geometry.qk_l2norm);
  assert_true(geometry.scale == 0.125f);  // 64^-1/2
  assert_int_equal(geometry.activation_dtype, SG_DTYPE_BF16);
  assert_int_equal(geometry.state_dtype, SG_DTYPE_FP32);
  assert_true(geometry.norm_epsilon == 1e-5f);
  sg_model_deinitialize(&model);
}

static void test_model_other_choices(void** state) {
  (void)state;
  sg_model_t model = parse(
      "{\"version\":1,\"name\":\"m\",\"layers\":1024,\"heads\":1,"
      "\"key_dim\":16,\"value_dim\":1024,\"gate\":{\"kind\":\"given\"},"
      "\"beta\":\"given\",\"scale\":null,\"activation_dtype\":\"fp32\","
      "\"norm_epsilon\":1}");
  assert_int_equal(model.layers, 1024);
  assert_int_equal(model.geometry.gate_kind, SG_GATE_GIVEN);
  assert_int_equal(model.geometry.beta_kind, SG_BETA_GIVEN);
  assert_true(model.geometry.scale == 0.25f);  // 16^-1/2
  assert_int_equal(model.geometry.activation_dtype, SG_DTYPE_FP32);
  assert_true(model.geometry.norm_epsilon == 1.0f);
  sg_model_deinitialize(&model);
}

static void test_model_lower_bound_ends(void** state) {
  (void)state;
  static const char* const texts[] = {"-5", "-5.0", "-1e-30"};
  static const float values[] = {-5.0f, -5.0f, -1e-30f};
  for (size_t i = 0; i < 3; ++i) {
    char text[256];
    snprintf(text, sizeof(text),
             "{\"version\":1,\"name\":\"m\",\"layers\":1,\"heads\":1,"
             "\"key_dim\":16,\"value_dim\":16,\"gate\":{\"kind\":"
             "\"lower_bound\",\"lower_bound\":%s}}",
             texts[i]);
    sg_model_t model = parse(text);
    assert_true(model.geometry.gate_lower_bound == values[i]);
    sg_model_deinitialize(&model);
  }
}

// Only the given bytes are read: no final NUL is needed or looked for.
static void test_model_text_without_nul(void** state) {
  (void)state;
  static const char text[] =
      "{\"version\":1,\"name\":\"m\",\"layers\":1,\"heads\":1,\"key_dim\":16,"
      "\"value_dim\":16,\"gate\":{\"kind\":\"given\"}}trailing";
  sg_model_t model;
  sg_status_t status =
      sg_model_parse(sg_allocator_system(), text,
                     sizeof(text) - sizeof("trailing"), "test.json", &model);
  assert_string_equal(status.message, "");
  sg_model_deinitialize(&model);
}

static void test_model_unreadable_file(void** state) {
  (void)state;
  static const char* const paths[] = {"schemas/examples/absent.json",
                                      "schemas/examples"};
  for (size_t i = 0; i < 2; ++i) {
    sg_model_t model = {.layers = 7};
    sg_status_t status = sg_model_load(sg_allocator_system(), paths[i], &model);
    assert_int_equal(status.code, SG_STATUS_IO);
    assert_non_null(strstr(status.message, paths[i]));
    assert_int_equal(model.layers, 0);
    sg_model_deinitialize(&model);
  }
}

static void test_model_file_too_large(void** state) {
  (void)state;
  static const char path[] = SG_TEST_FOLDER "/test_model_large.json";
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  for (size_t i = 0; i <= 1 << 20; ++i) fputc(' ', file);
  fclose(file);
  sg_model_t model;
  sg_status_t status = sg_model_load(sg_allocator_system(), path, &model);
  remove(path);
  assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
  assert_non_null(
      strstr(status.message, "expected at most 1048576 bytes, found more"));
}

// A long path must not push the fault out of the message.
static void test_model_long_source_name(void** state) {
  (void)state;
  char name[600];
  memset(name, 'd', sizeof(name));
  memcpy(name + sizeof(name) - 12, "/model.json", 12);
  sg_model_t model;
  sg_status_t status =
      sg_model_parse(sg_allocator_system(), "[]", 2, name, &model);
  assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
  assert_non_null(strstr(status.message,
                         "dd/model.json: expected an object, found an array"));
}

static sg_status_t read_example(sg_allocator_t allocator,
                                const void* argument) {
  (void)argument;
  sg_model_t model;
  sg_status_t status = sg_model_load(allocator, example_path, &model);
  sg_model_deinitialize(&model);
  return status;
}

static void test_model_failing_allocations(void** state) {
  (void)state;
  // The text of the file and the name.
  assert_survives_failing_allocations(read_example, NULL, 2);
}

static void test_model_deinitialize_accepts_nothing(void** state) {
  (void)state;
  sg_model_t model = {0};
  sg_model_deinitialize(&model);
  sg_model_deinitialize(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model_values),
      cmocka_unit_test(test_model_defaults),
      cmocka_unit_test(test_model_other_choices),
      cmocka_unit_test(test_model_lower_bound_ends),
      cmocka_unit_test(test_model_text_without_nul),
      cmocka_unit_test(test_model_unreadable_file),
      cmocka_unit_test(test_model_file_too_large),
      cmocka_unit_test(test_model_long_source_name),
      cmocka_unit_test(test_model_failing_allocations),
      cmocka_unit_test(test_model_deinitialize_accepts_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
