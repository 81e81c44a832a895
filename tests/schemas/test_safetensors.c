// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/safetensors.h"
#include "tests/schemas/failing_allocator.h"

enum { FILE_CAPACITY = 4096 };

// A file in memory.
typedef struct image_t {
  unsigned char bytes[FILE_CAPACITY];
  size_t count;
} image_t;

// Header and |data_bytes| bytes 0, 1, 2, ... of data.
static image_t image_of(const char* header, size_t data_bytes) {
  image_t image = {0};
  const size_t length = strlen(header);
  assert_true(8 + length + data_bytes <= FILE_CAPACITY);
  for (size_t i = 0; i < 8; ++i) {
    image.bytes[i] = (unsigned char)((uint64_t)length >> 8 * i);
  }
  memcpy(image.bytes + 8, header, length);
  for (size_t i = 0; i < data_bytes; ++i) {
    image.bytes[8 + length + i] = (unsigned char)i;
  }
  image.count = 8 + length + data_bytes;
  return image;
}

static sg_status_t parse(const image_t* image, sg_safetensors_t* out_file) {
  return sg_safetensors_parse(sg_allocator_system(), image->bytes, image->count,
                              "f", out_file);
}

static const char good_header[] =
    "{\"__metadata__\":{\"seed\":\"7\",\"note\":\"\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[6,14]},"
    "\"scalar\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[14,22]},"
    "\"none\":{\"shape\":[3,0],\"data_offsets\":[6,6],\"dtype\":\"BF16\"},"
    "\"a\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}}  ";
enum { GOOD_DATA_BYTES = 22 };

static void test_safetensors_reads_a_file(void** state) {
  (void)state;
  const image_t image = image_of(good_header, GOOD_DATA_BYTES);
  const unsigned char* data = image.bytes + image.count - GOOD_DATA_BYTES;
  sg_safetensors_t file;
  const sg_status_t status = parse(&image, &file);
  assert_string_equal(status.message, "");
  assert_int_equal(file.tensor_count, 4);
  const char* const names[] = {"a", "none", "b", "scalar"};
  for (size_t i = 0; i < 4; ++i) {
    assert_string_equal(file.tensors[i].name, names[i]);
    assert_ptr_equal(sg_safetensors_find(&file, names[i]), &file.tensors[i]);
  }
  const sg_tensor_t* b = sg_safetensors_find(&file, "b");
  assert_int_equal(b->dtype, SG_TENSOR_F32);
  assert_int_equal(b->rank, 2);
  assert_int_equal(b->shape[0], 2);
  assert_int_equal(b->shape[1], 1);
  assert_int_equal(b->bytes, 8);
  assert_memory_equal(b->data, data + 6, 8);
  assert_int_equal(sg_safetensors_find(&file, "none")->bytes, 0);
  assert_int_equal(sg_safetensors_find(&file, "scalar")->rank, 0);
  assert_null(sg_safetensors_find(&file, "__metadata__"));
  assert_int_equal(file.metadata_count, 2);
  assert_string_equal(file.metadata[0].key, "seed");
  assert_string_equal(file.metadata[0].value, "7");
  assert_string_equal(file.metadata[1].value, "");
  sg_safetensors_deinitialize(&file);
  sg_safetensors_deinitialize(&file);
  sg_safetensors_deinitialize(NULL);
}

static void test_safetensors_reads_a_file_without_tensors(void** state) {
  (void)state;
  const image_t image = image_of("{}", 0);
  sg_safetensors_t file;
  assert_true(sg_status_is_ok(parse(&image, &file)));
  assert_int_equal(file.tensor_count, 0);
  sg_safetensors_deinitialize(&file);
}

static void assert_refused(const image_t* image, const char* message) {
  sg_safetensors_t file;
  memset(&file, 0x5a, sizeof(file));
  const sg_status_t status = parse(image, &file);
  assert_string_equal(status.message, message);
  assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
  assert_int_equal(file.tensor_count, 0);
  assert_null(file.tensors);
  sg_safetensors_deinitialize(&file);
}

typedef struct bad_header_t {
  const char* header;
  size_t data_bytes;
  const char* message;
} bad_header_t;

#define TENSOR(dtype, shape, offsets) \
  "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const bad_header_t bad_headers[] = {
    {"", 4, "f: expected a header that starts with '{'"},
    {" {}", 0, "f: expected a header that starts with '{'"},
    {"[]", 0, "f: expected a header that starts with '{'"},
    {"{} {}", 0, "f:1:4: end of file expected near '{'"},
    {"{\"a\":1}", 0, "f: /a: expected an object, found 1"},
    {"{\"a\":" TENSOR("U8", "[1]", "[0,1]") ",\"a\":" TENSOR("U8", "[1]",
                                                             "[1,2]") "}",
     2, "f:1:56: duplicate object key near '\"a\"'"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1,
     "f: /a: the key \"data_offsets\" is missing"},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1,
     "f: /a: the key \"shape\" is missing"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "f: /a: the key \"dtype\" is missing"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}",
     1, "f: /a/x: unknown key"},
    {"{\"a\":" TENSOR("F99", "[1]", "[0,1]") "}", 1,
     "f: /a/dtype: expected a dtype such as \"F32\" or \"BF16\", found "
     "\"F99\""},
    {"{\"a\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "f: /a/dtype: expected a string, found 3"},
    {"{\"a\":" TENSOR("U8", "1", "[0,1]") "}", 1,
     "f: /a/shape: expected an array, found 1"},
    {"{\"a\":" TENSOR("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1,
     "f: /a/shape: expected at most 8 elements, found 9"},
    {"{\"a\":" TENSOR("U8", "[-1]", "[0,1]") "}", 1,
     "f: /a/shape/0: expected an integer in [0, 9223372036854775807], found "
     "-1"},
    {"{\"a\":" TENSOR("U8", "[1.0]", "[0,1]") "}", 1,
     "f: /a/shape/0: expected an integer in [0, 9223372036854775807], found "
     "1.0"},
    {"{\"a\":" TENSOR("F32", "[4294967296,4294967296]", "[0,0]") "}", 0,
     "f: /a: the size of F32 [4294967296, 4294967296] overflows"},
    {"{\"a\":" TENSOR("U8", "[9223372036854775807,4,0]", "[0,0]") "}", 0,
     "f: /a: the size of U8 [9223372036854775807, 4, 0] overflows"},
    {"{\"a\":" TENSOR("BF16", "[2,3]", "[0,11]") "}", 11,
     "f: /a/data_offsets: expected 12 bytes for BF16 [2, 3], found 11"},
    {"{\"a\":" TENSOR("U8", "[1]", "[0]") "}", 1,
     "f: /a/data_offsets: expected 2 elements, found 1"},
    {"{\"a\":" TENSOR("U8", "[1]", "[0,1,2]") "}", 1,
     "f: /a/data_offsets: expected at most 2 elements, found 3"},
    {"{\"a\":" TENSOR("U8", "[1]", "[1,0]") "}", 1,
     "f: /a/data_offsets/1: expected the integer 1, found 0"},
    {"{\"a\":" TENSOR("U8", "[1]", "[-1,0]") "}", 1,
     "f: /a/data_offsets/0: expected an integer in [0, 1], found -1"},
    {"{\"a\":" TENSOR("U8", "[2]", "[0,2]") "}", 1,
     "f: /a/data_offsets/1: expected an integer in [0, 1], found 2"},
    {"{\"a\":" TENSOR("U8", "[1]", "[0,1]") "}", 2,
     "f: expected 1 bytes of data, found 2"},
    {"{}", 1, "f: expected 0 bytes of data, found 1"},
    {"{\"a\":" TENSOR("U8", "[1]", "[0,1]") ",\"b\":" TENSOR("U8", "[1]",
                                                             "[2,3]") "}",
     3, "f: /b: expected data from 1 on, where that before ends, found 2"},
    {"{\"a\":" TENSOR("U8", "[2]", "[0,2]") ",\"b\":" TENSOR("U8", "[2]",
                                                             "[1,3]") "}",
     3, "f: /b: expected data from 2 on, where that before ends, found 1"},
    {"{\"a\":" TENSOR("U8", "[1]", "[0,1]") ",\"b\":" TENSOR("U8", "[1]",
                                                             "[0,1]") "}",
     1, "f: /b: expected data from 1 on, where that before ends, found 0"},
    {"{\"a\":" TENSOR("U8", "[2]", "[0,2]") ",\"b\":" TENSOR("U8", "[0]",
                                                             "[1,1]") "}",
     2, "f: /b: expected data from 2 on, where that before ends, found 1"},
    {"{\"__metadata__\":[]}", 0,
     "f: /__metadata__: expected an object, found an array"},
    {"{\"__metadata__\":{\"seed\":7}}", 0,
     "f: /__metadata__/seed: expected a string, found 7"},
};

static void test_safetensors_refuses_bad_headers(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(bad_headers) / sizeof(bad_headers[0]); ++i) {
    const bad_header_t* bad = &bad_headers[i];
    const image_t image = image_of(bad->header, bad->data_bytes);
    assert_refused(&image, bad->message);
  }
}

static void test_safetensors_refuses_bad_lengths(void** state) {
  (void)state;
  image_t image = {.count = 7};
  assert_refused(&image,
                 "f: expected the header's length in 8 bytes, found 7 bytes");
  image = image_of("{}", 0);
  image.bytes[0] = 3;
  assert_refused(&image, "f: expected a header of at most 2 bytes, found 3");
  memset(image.bytes, 0xff, 8);
  assert_refused(&image,
                 "f: expected a header of at most 2 bytes, found "
                 "18446744073709551615");
}

static void test_safetensors_refuses_a_huge_header(void** state) {
  (void)state;
  const size_t bytes = 8 + (16 << 20) + 1;
  unsigned char* contents = calloc(1, bytes);
  assert_non_null(contents);
  contents[0] = 1;
  contents[3] = 1;
  sg_safetensors_t file;
  const sg_status_t status =
      sg_safetensors_parse(sg_allocator_system(), contents, bytes, "f", &file);
  assert_string_equal(
      status.message,
      "f: expected a header of at most 16777216 bytes, found 16777217");
  free(contents);
}

// Each prefix lies in memory of its own size, so that a sanitizer sees reads
// beyond it.
static void test_safetensors_refuses_every_truncation(void** state) {
  (void)state;
  const image_t image = image_of(good_header, GOOD_DATA_BYTES);
  for (size_t count = 0; count < image.count; ++count) {
    unsigned char* prefix = malloc(count == 0 ? 1 : count);
    assert_non_null(prefix);
    memcpy(prefix, image.bytes, count);
    sg_safetensors_t file;
    const sg_status_t status =
        sg_safetensors_parse(sg_allocator_system(), prefix, count, "f", &file);
    assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
    assert_null(file.tensors);
    free(prefix);
  }
}

// Any byte of length and header may be anything: it is refused, or read without
// reaching outside the file.
static void test_safetensors_survives_every_changed_byte(void** state) {
  (void)state;
  const image_t image = image_of(good_header, GOOD_DATA_BYTES);
  for (size_t i = 0; i < image.count - GOOD_DATA_BYTES; ++i) {
    static const unsigned char changes[] = {0x01, 0x02, 0x80, 0x20, 0x7f};
    for (size_t c = 0; c < sizeof(changes); ++c) {
      image_t changed = image;
      changed.bytes[i] ^= changes[c];
      sg_safetensors_t file;
      const sg_status_t status = parse(&changed, &file);
      size_t bytes = 0;
      for (size_t t = 0; t < file.tensor_count; ++t) {
        bytes += file.tensors[t].bytes;
      }
      assert_int_equal(bytes, sg_status_is_ok(status) ? GOOD_DATA_BYTES : 0);
      sg_safetensors_deinitialize(&file);
    }
  }
}

static sg_status_t read_good(sg_allocator_t allocator, const void* argument) {
  const image_t* image = argument;
  sg_safetensors_t file;
  const sg_status_t status =
      sg_safetensors_parse(allocator, image->bytes, image->count, "f", &file);
  sg_safetensors_deinitialize(&file);
  return status;
}

static void test_safetensors_survives_failing_allocations(void** state) {
  (void)state;
  const image_t image = image_of(good_header, GOOD_DATA_BYTES);
  // Tensors, metadata, four names, two keys and two values.
  assert_survives_failing_allocations(read_good, &image, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_safetensors_reads_a_file),
      cmocka_unit_test(test_safetensors_reads_a_file_without_tensors),
      cmocka_unit_test(test_safetensors_refuses_bad_headers),
      cmocka_unit_test(test_safetensors_refuses_bad_lengths),
      cmocka_unit_test(test_safetensors_refuses_a_huge_header),
      cmocka_unit_test(test_safetensors_refuses_every_truncation),
      cmocka_unit_test(test_safetensors_survives_every_changed_byte),
      cmocka_unit_test(test_safetensors_survives_failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
