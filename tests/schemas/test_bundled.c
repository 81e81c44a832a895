// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/bundled.h"
#include "schemas/model.h"
#include "schemas/shapes.h"

// What is embedded is the file, byte for byte, and a NUL.
static void assert_is_file(const char* folder,
                           const sg_bundled_file_t* bundled) {
  char path[128];
  snprintf(path, sizeof(path), "schemas/%s/%s.json", folder, bundled->name);
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  char text[16384];
  const size_t bytes = fread(text, 1, sizeof(text), file);
  fclose(file);
  assert_true(bytes < sizeof(text));
  assert_int_equal(bundled->bytes, bytes);
  assert_memory_equal(bundled->text, text, bytes);
  assert_int_equal(bundled->text[bytes], '\0');
}

static void test_bundled_models(void** state) {
  (void)state;
  size_t count;
  const sg_bundled_file_t* files = sg_bundled_list(SG_BUNDLED_MODEL, &count);
  assert_int_equal(count, 3);
  for (size_t i = 0; i < count; ++i) {
    assert_is_file("models", &files[i]);
    assert_ptr_equal(sg_bundled_find(SG_BUNDLED_MODEL, files[i].name),
                     &files[i]);
    sg_model_t model;
    sg_status_t status =
        sg_model_open(sg_allocator_system(), files[i].name, &model);
    assert_string_equal(status.message, "");
    assert_string_equal(model.name, files[i].name);
    sg_model_deinitialize(&model);
  }
}

static void test_bundled_shapes(void** state) {
  (void)state;
  size_t count;
  const sg_bundled_file_t* files = sg_bundled_list(SG_BUNDLED_SHAPES, &count);
  assert_int_equal(count, 2);
  for (size_t i = 0; i < count; ++i) {
    assert_is_file("shapes", &files[i]);
    sg_shapes_t shapes;
    sg_status_t status =
        sg_shapes_open(sg_allocator_system(), files[i].name, &shapes);
    assert_string_equal(status.message, "");
    assert_true(shapes.shape_count > 0);
    sg_shapes_deinitialize(&shapes);
  }
}

// The geometries that the models' public configurations give.
static void test_bundled_geometries(void** state) {
  (void)state;
  sg_model_t model;
  sg_status_t status =
      sg_model_open(sg_allocator_system(), "kimi-linear-48b", &model);
  assert_string_equal(status.message, "");
  assert_int_equal(model.layers, 20);
  assert_int_equal(model.geometry.heads, 32);
  assert_int_equal(model.geometry.key_dim, 128);
  assert_int_equal(model.geometry.gate_kind, SG_GATE_SOFTPLUS);
  sg_model_deinitialize(&model);
  status = sg_model_open(sg_allocator_system(), "kimi-k3-tp8", &model);
  assert_string_equal(status.message, "");
  assert_int_equal(model.layers, 69);
  assert_int_equal(model.geometry.heads, 12);
  assert_int_equal(model.geometry.value_heads, 12);
  assert_int_equal(model.geometry.gate_kind, SG_GATE_LOWER_BOUND);
  assert_true(model.geometry.gate_lower_bound == -5.0f);
  sg_model_deinitialize(&model);
}

static void test_bundled_kinds_are_apart(void** state) {
  (void)state;
  assert_non_null(sg_bundled_find(SG_BUNDLED_MODEL, "tiny"));
  assert_null(sg_bundled_find(SG_BUNDLED_SHAPES, "tiny"));
  assert_null(sg_bundled_find(SG_BUNDLED_MODEL, "tiny.json"));
  assert_null(sg_bundled_find(SG_BUNDLED_MODEL, ""));
}

static void test_bundled_open_reads_paths(void** state) {
  (void)state;
  sg_model_t model;
  sg_status_t status = sg_model_open(sg_allocator_system(),
                                     "schemas/examples/model.json", &model);
  assert_string_equal(status.message, "");
  assert_string_equal(model.name, "example-tp2");
  sg_model_deinitialize(&model);
  status = sg_model_open(sg_allocator_system(), "tiny.json", &model);
  assert_int_equal(status.code, SG_STATUS_IO);
  status = sg_model_open(sg_allocator_system(), "./tiny", &model);
  assert_int_equal(status.code, SG_STATUS_IO);
  // A file that looks like a name is read, and its fault told as such.
  status = sg_model_open(sg_allocator_system(), "LICENSE", &model);
  assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
}

static void test_bundled_open_lists_names(void** state) {
  (void)state;
  sg_model_t model;
  sg_status_t status = sg_model_open(sg_allocator_system(), "tinny", &model);
  assert_int_equal(status.code, SG_STATUS_NOT_FOUND);
  assert_string_equal(status.message,
                      "\"tinny\" is neither a file nor one of the bundled "
                      "models: kimi-k3-tp8, kimi-linear-48b, tiny");
  sg_shapes_t shapes;
  status = sg_shapes_open(sg_allocator_system(), "tiny", &shapes);
  assert_int_equal(status.code, SG_STATUS_NOT_FOUND);
  assert_string_equal(status.message,
                      "\"tiny\" is neither a file nor one of the bundled "
                      "shapes: default, demo");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bundled_models),
      cmocka_unit_test(test_bundled_shapes),
      cmocka_unit_test(test_bundled_geometries),
      cmocka_unit_test(test_bundled_kinds_are_apart),
      cmocka_unit_test(test_bundled_open_reads_paths),
      cmocka_unit_test(test_bundled_open_lists_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
