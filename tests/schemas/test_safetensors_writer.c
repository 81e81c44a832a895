// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/safetensors.h"
#include "tests/schemas/failing_allocator.h"

enum { FILE_CAPACITY = 4096, TENSOR_COUNT = 5 };

static const char path[] = SG_TEST_FOLDER "/written.safetensors";
static const char partial_path[] =
    SG_TEST_FOLDER "/written.safetensors.partial";

static const unsigned char data[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static const sg_tensor_t tensors[TENSOR_COUNT] = {
    {"q", SG_TENSOR_BF16, 2, {2, 3}, data, 12},
    {"flags", SG_TENSOR_U8, 1, {3}, data + 1, 3},
    {"A_log", SG_TENSOR_F32, 1, {1}, data + 2, 4},
    {"empty", SG_TENSOR_F16, 3, {1, 0, 2}, NULL, 0},
    {"offsets", SG_TENSOR_I64, 0, {0}, data + 3, 8},
};
static const sg_tensor_metadata_t metadata[] = {{"seed", "7"},
                                                {"case", "a \"b\""}};

// Reads a file of less than |capacity| bytes.
static size_t read_file(const char* name, unsigned char* bytes,
                        size_t capacity) {
  FILE* file = fopen(name, "rb");
  assert_non_null(file);
  const size_t count = fread(bytes, 1, capacity, file);
  assert_true(count < capacity);
  assert_int_equal(fclose(file), 0);
  return count;
}

static bool exists(const char* name) {
  FILE* file = fopen(name, "rb");
  if (file == NULL) return false;
  fclose(file);
  return true;
}

static sg_status_t write_all(const sg_tensor_t* list) {
  return sg_safetensors_write(sg_allocator_system(), path, list, TENSOR_COUNT,
                              metadata, 2);
}

// By hand: elements of 8 bytes first, then 4, 2 and 1, each by name; the header
// of 341 bytes is filled up to 344.
static void test_safetensors_writer_bytes(void** state) {
  (void)state;
  static const char header[] =
      "{\"__metadata__\":{\"seed\":\"7\",\"case\":\"a \\\"b\\\"\"},"
      "\"offsets\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
      "\"A_log\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
      "\"empty\":{\"dtype\":\"F16\",\"shape\":[1,0,2],"
      "\"data_offsets\":[12,12]},"
      "\"q\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[12,24]},"
      "\"flags\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[24,27]}}";
  assert_true(sg_status_is_ok(write_all(tensors)));
  unsigned char bytes[FILE_CAPACITY];
  const size_t count = read_file(path, bytes, FILE_CAPACITY);
  const size_t header_bytes = (sizeof(header) - 1 + 7) / 8 * 8;
  assert_int_equal(count, 8 + header_bytes + 27);
  assert_int_equal(bytes[0] | bytes[1] << 8, header_bytes);
  assert_memory_equal(bytes + 2, "\0\0\0\0\0\0", 6);
  assert_memory_equal(bytes + 8, header, sizeof(header) - 1);
  for (size_t i = sizeof(header) - 1; i < header_bytes; ++i) {
    assert_int_equal(bytes[8 + i], ' ');
  }
  const unsigned char* written = bytes + 8 + header_bytes;
  assert_memory_equal(written, data + 3, 8);
  assert_memory_equal(written + 8, data + 2, 4);
  assert_memory_equal(written + 12, data, 12);
  assert_memory_equal(written + 24, data + 1, 3);
  assert_false(exists(partial_path));
}

static void test_safetensors_writer_reads_back_equal(void** state) {
  (void)state;
  assert_true(sg_status_is_ok(write_all(tensors)));
  sg_safetensors_t file;
  const sg_status_t status =
      sg_safetensors_load(sg_allocator_system(), path, &file);
  assert_string_equal(status.message, "");
  assert_int_equal(file.tensor_count, TENSOR_COUNT);
  for (size_t i = 0; i < TENSOR_COUNT; ++i) {
    const sg_tensor_t* found = sg_safetensors_find(&file, tensors[i].name);
    assert_non_null(found);
    assert_int_equal(found->dtype, tensors[i].dtype);
    assert_int_equal(found->rank, tensors[i].rank);
    assert_memory_equal(found->shape, tensors[i].shape, sizeof(found->shape));
    assert_int_equal(found->bytes, tensors[i].bytes);
    if (found->bytes > 0) {
      assert_memory_equal(found->data, tensors[i].data, found->bytes);
    }
    assert_int_equal(
        (uintptr_t)found->data % sg_tensor_dtype_bytes(found->dtype), 0);
  }
  assert_int_equal(file.metadata_count, 2);
  assert_string_equal(file.metadata[1].key, "case");
  assert_string_equal(file.metadata[1].value, "a \"b\"");
  sg_safetensors_deinitialize(&file);
}

static void test_safetensors_writer_order_does_not_matter(void** state) {
  (void)state;
  sg_tensor_t reversed[TENSOR_COUNT];
  for (size_t i = 0; i < TENSOR_COUNT; ++i) {
    reversed[i] = tensors[TENSOR_COUNT - 1 - i];
  }
  unsigned char first[FILE_CAPACITY];
  unsigned char second[FILE_CAPACITY];
  assert_true(sg_status_is_ok(write_all(tensors)));
  const size_t count = read_file(path, first, FILE_CAPACITY);
  assert_true(sg_status_is_ok(write_all(reversed)));
  assert_int_equal(read_file(path, second, FILE_CAPACITY), count);
  assert_memory_equal(first, second, count);
}

static void test_safetensors_writer_without_anything(void** state) {
  (void)state;
  assert_true(sg_status_is_ok(
      sg_safetensors_write(sg_allocator_system(), path, NULL, 0, NULL, 0)));
  unsigned char bytes[FILE_CAPACITY];
  assert_int_equal(read_file(path, bytes, FILE_CAPACITY), 16);
  assert_memory_equal(bytes, "\x08\0\0\0\0\0\0\0{}      ", 16);
}

static void assert_refused(const sg_tensor_t* changed, const char* message) {
  sg_tensor_t list[TENSOR_COUNT];
  memcpy(list, tensors, sizeof(list));
  list[1] = *changed;
  char expected[SG_STATUS_MESSAGE_BYTES];
  snprintf(expected, sizeof(expected), "%s: %s", path, message);
  const sg_status_t status = write_all(list);
  assert_string_equal(status.message, expected);
  assert_int_equal(status.code, SG_STATUS_INVALID_ARGUMENT);
  assert_false(exists(path));
  assert_false(exists(partial_path));
}

static void test_safetensors_writer_refuses_bad_tensors(void** state) {
  (void)state;
  remove(path);
  assert_refused(&(sg_tensor_t){"x", SG_TENSOR_F32, 1, {2}, data, 7},
                 "x: expected 8 bytes for F32 [2], found 7");
  assert_refused(&(sg_tensor_t){"x", SG_TENSOR_F32, 1, {-2}, data, 8},
                 "x: the size of F32 [-2] is negative or overflows");
  assert_refused(
      &(sg_tensor_t){"x", SG_TENSOR_F32, 2, {INT64_MAX, 4}, data, 8},
      "x: the size of F32 [9223372036854775807, 4] is negative or overflows");
  assert_refused(&(sg_tensor_t){"x", SG_TENSOR_F32, 9, {1}, data, 4},
                 "x: expected 0 to 8 dimensions, found 9");
  assert_refused(&(sg_tensor_t){"q", SG_TENSOR_F32, 1, {1}, data, 4},
                 "expected different names, found \"q\" twice");
  assert_refused(&(sg_tensor_t){"__metadata__", SG_TENSOR_U8, 1, {1}, data, 1},
                 "no tensor may be called \"__metadata__\"");
  const sg_tensor_metadata_t twice[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
  const sg_status_t status =
      sg_safetensors_write(sg_allocator_system(), path, tensors, 1, twice, 3);
  assert_int_equal(status.code, SG_STATUS_INVALID_ARGUMENT);
}

// A file that is there stays as it is when writing another one fails.
static void test_safetensors_writer_leaves_files_alone(void** state) {
  (void)state;
  assert_true(sg_status_is_ok(write_all(tensors)));
  unsigned char before[FILE_CAPACITY];
  unsigned char after[FILE_CAPACITY];
  const size_t count = read_file(path, before, FILE_CAPACITY);
  sg_tensor_t list[TENSOR_COUNT];
  memcpy(list, tensors, sizeof(list));
  list[0].bytes = 1;
  assert_int_equal(write_all(list).code, SG_STATUS_INVALID_ARGUMENT);
  assert_int_equal(read_file(path, after, FILE_CAPACITY), count);
  assert_memory_equal(before, after, count);
}

static void test_safetensors_files_that_are_not_there(void** state) {
  (void)state;
  const sg_status_t written = sg_safetensors_write(
      sg_allocator_system(), "/nowhere/f.safetensors", tensors, 1, NULL, 0);
  assert_int_equal(written.code, SG_STATUS_IO);
  assert_string_equal(written.message,
                      "/nowhere/f.safetensors.partial: opening failed: No such "
                      "file or directory");
  sg_safetensors_t file;
  const sg_status_t read = sg_safetensors_load(sg_allocator_system(),
                                               "/nowhere/f.safetensors", &file);
  assert_int_equal(read.code, SG_STATUS_IO);
  assert_int_equal(
      sg_safetensors_load(sg_allocator_system(), SG_TEST_FOLDER, &file).code,
      SG_STATUS_IO);
  // Renaming to the name of a folder fails; nothing is left behind.
  const sg_status_t renamed = sg_safetensors_write(
      sg_allocator_system(), SG_TEST_FOLDER, tensors, 1, NULL, 0);
  assert_int_equal(renamed.code, SG_STATUS_IO);
  assert_false(exists(SG_TEST_FOLDER ".partial"));
}

// Files that another writer made, in the same order of tensors.
static void test_safetensors_writer_repeats_golden_files(void** state) {
  (void)state;
  const char* const names[] = {
      "tests/data/golden/mixed.safetensors",
      "tests/data/golden/mixed.expected.safetensors",
      "tests/data/golden/decode-fp16.safetensors",
  };
  enum { GOLDEN_CAPACITY = 1 << 20 };
  unsigned char* before = malloc(GOLDEN_CAPACITY);
  unsigned char* after = malloc(GOLDEN_CAPACITY);
  assert_true(before != NULL && after != NULL);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    sg_safetensors_t file;
    assert_true(sg_status_is_ok(
        sg_safetensors_load(sg_allocator_system(), names[i], &file)));
    assert_true(sg_status_is_ok(sg_safetensors_write(
        sg_allocator_system(), path, file.tensors, file.tensor_count,
        file.metadata, file.metadata_count)));
    sg_safetensors_deinitialize(&file);
    const size_t count = read_file(names[i], before, GOLDEN_CAPACITY);
    assert_int_equal(read_file(path, after, GOLDEN_CAPACITY), count);
    assert_memory_equal(before, after, count);
  }
  free(before);
  free(after);
}

// A file of the caller's gets the same bytes, and is not closed.
static void test_safetensors_writer_to_an_open_file(void** state) {
  (void)state;
  assert_true(sg_status_is_ok(write_all(tensors)));
  unsigned char before[FILE_CAPACITY];
  unsigned char after[FILE_CAPACITY];
  const size_t count = read_file(path, before, FILE_CAPACITY);
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  assert_true(sg_status_is_ok(
      sg_safetensors_write_file(sg_allocator_system(), file, "a name", tensors,
                                TENSOR_COUNT, metadata, 2)));
  assert_int_equal(fclose(file), 0);
  assert_int_equal(read_file(path, after, FILE_CAPACITY), count);
  assert_memory_equal(before, after, count);

  FILE* full = fopen("/dev/full", "wb");
  if (full == NULL) return;
  const sg_status_t status =
      sg_safetensors_write_file(sg_allocator_system(), full, "a name", tensors,
                                TENSOR_COUNT, metadata, 2);
  assert_int_equal(status.code, SG_STATUS_IO);
  assert_string_equal(status.message,
                      "a name: writing failed: No space left on device");
  fclose(full);
}

static sg_status_t write_and_load(sg_allocator_t allocator,
                                  const void* argument) {
  (void)argument;
  SG_RETURN_IF_ERROR(sg_safetensors_write(allocator, path, tensors,
                                          TENSOR_COUNT, metadata, 2));
  sg_safetensors_t file;
  const sg_status_t status = sg_safetensors_load(allocator, path, &file);
  sg_safetensors_deinitialize(&file);
  return status;
}

static void test_safetensors_writer_survives_failing_allocations(void** state) {
  (void)state;
  // Order, header twice, file name; contents, tensors, metadata, nine strings.
  assert_survives_failing_allocations(write_and_load, NULL, 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_safetensors_writer_bytes),
      cmocka_unit_test(test_safetensors_writer_reads_back_equal),
      cmocka_unit_test(test_safetensors_writer_order_does_not_matter),
      cmocka_unit_test(test_safetensors_writer_without_anything),
      cmocka_unit_test(test_safetensors_writer_refuses_bad_tensors),
      cmocka_unit_test(test_safetensors_writer_leaves_files_alone),
      cmocka_unit_test(test_safetensors_files_that_are_not_there),
      cmocka_unit_test(test_safetensors_writer_repeats_golden_files),
      cmocka_unit_test(test_safetensors_writer_to_an_open_file),
      cmocka_unit_test(test_safetensors_writer_survives_failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
