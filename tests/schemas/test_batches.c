// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/batches.h"
#include "tests/schemas/failing_allocator.h"

static const char example_path[] = "schemas/examples/batches.jsonl";
static const char written_path[] = SG_TEST_FOLDER "/test_batches.jsonl";

static sg_batch_reader_t* open_text(const char* text) {
  sg_batch_reader_t* reader;
  sg_status_t status = sg_batch_reader_open_text(
      sg_allocator_system(), text, strlen(text), "test.jsonl", &reader);
  assert_string_equal(status.message, "");
  return reader;
}

static void assert_next(sg_batch_reader_t* reader, int64_t line,
                        int32_t sequence_count, int32_t token_count,
                        const int32_t* query_lens, const int32_t* computed_lens,
                        const int32_t* slots) {
  sg_batch_line_t batch;
  bool end;
  sg_status_t status = sg_batch_reader_next(reader, &batch, &end);
  assert_string_equal(status.message, "");
  assert_false(end);
  assert_int_equal(sg_batch_reader_line(reader), line);
  assert_int_equal(batch.sequence_count, sequence_count);
  assert_int_equal(batch.token_count, token_count);
  const size_t bytes = (size_t)sequence_count * sizeof(int32_t);
  assert_memory_equal(batch.query_lens, query_lens, bytes);
  assert_memory_equal(batch.computed_lens, computed_lens, bytes);
  assert_memory_equal(batch.slots, slots, bytes);
}

static void assert_end(sg_batch_reader_t* reader) {
  sg_batch_line_t batch;
  bool end = false;
  sg_status_t status = sg_batch_reader_next(reader, &batch, &end);
  assert_string_equal(status.message, "");
  assert_true(end);
  assert_null(batch.query_lens);
}

static void assert_is_example(sg_batch_reader_t* reader, int64_t blank_lines) {
  assert_next(reader, 1, 3, 39, (const int32_t[]){1, 1, 37},
              (const int32_t[]){120, 9, 0}, (const int32_t[]){3, 7, 2});
  assert_next(reader, 2, 0, 0, (const int32_t[]){0}, (const int32_t[]){0},
              (const int32_t[]){0});
  // Slots of empty sequences and -1 may repeat.
  assert_next(
      reader, 3 + blank_lines, 4, 2001, (const int32_t[]){1, 0, 0, 2000},
      (const int32_t[]){64, 5, 0, INT32_MAX}, (const int32_t[]){0, 3, 0, -1});
  assert_next(reader, 4 + blank_lines, 2, 16, (const int32_t[]){8, 8},
              (const int32_t[]){0, 0}, (const int32_t[]){-1, -1});
  assert_end(reader);
  assert_end(reader);
}

static void test_batches_values(void** state) {
  (void)state;
  sg_batch_reader_t* reader;
  sg_status_t status =
      sg_batch_reader_open(sg_allocator_system(), example_path, &reader);
  assert_string_equal(status.message, "");
  assert_int_equal(sg_batch_reader_line(reader), 0);
  assert_is_example(reader, 1);
  sg_batch_reader_destroy(reader);
}

static void test_batches_written_read_back(void** state) {
  (void)state;
  sg_batch_reader_t* reader;
  sg_status_t status =
      sg_batch_reader_open(sg_allocator_system(), example_path, &reader);
  assert_string_equal(status.message, "");
  FILE* file = fopen(written_path, "wb");
  assert_non_null(file);
  sg_batch_line_t batch;
  bool end;
  for (;;) {
    status = sg_batch_reader_next(reader, &batch, &end);
    assert_string_equal(status.message, "");
    if (end) break;
    status = sg_batch_write_line(&batch, file);
    assert_string_equal(status.message, "");
  }
  fclose(file);
  sg_batch_reader_destroy(reader);
  status = sg_batch_reader_open(sg_allocator_system(), written_path, &reader);
  assert_string_equal(status.message, "");
  assert_is_example(reader, 0);
  sg_batch_reader_destroy(reader);
  remove(written_path);
}

static void test_batches_write_refuses_negative_count(void** state) {
  (void)state;
  const sg_batch_line_t batch = {.sequence_count = -1};
  sg_status_t status = sg_batch_write_line(&batch, stderr);
  assert_int_equal(status.code, SG_STATUS_OUT_OF_RANGE);
}

static void test_batches_empty_text(void** state) {
  (void)state;
  static const char* const texts[] = {"", "\n", " \t\r\n\n  "};
  for (size_t i = 0; i < 3; ++i) {
    sg_batch_reader_t* reader = open_text(texts[i]);
    assert_end(reader);
    sg_batch_reader_destroy(reader);
  }
}

static void test_batches_last_line_without_newline(void** state) {
  (void)state;
  sg_batch_reader_t* reader =
      open_text("\r\n{\"query_lens\":[2],\"computed_lens\":[1],\"slots\":[0]}");
  assert_next(reader, 2, 1, 2, (const int32_t[]){2}, (const int32_t[]){1},
              (const int32_t[]){0});
  assert_end(reader);
  sg_batch_reader_destroy(reader);
}

static void test_batches_go_on_after_a_bad_line(void** state) {
  (void)state;
  sg_batch_reader_t* reader = open_text(
      "{\"query_lens\":[2]}\n"
      "{\"query_lens\":[2],\"computed_lens\":[1],\"slots\":[0]}\n");
  sg_batch_line_t batch;
  bool end;
  sg_status_t status = sg_batch_reader_next(reader, &batch, &end);
  assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
  assert_string_equal(status.message,
                      "test.jsonl:1: the key \"computed_lens\" is missing");
  assert_int_equal(batch.sequence_count, 0);
  assert_next(reader, 2, 1, 2, (const int32_t[]){2}, (const int32_t[]){1},
              (const int32_t[]){0});
  sg_batch_reader_destroy(reader);
}

// A line of 5000 sequences after short ones, so that every array grows.
static void test_batches_many_sequences(void** state) {
  (void)state;
  enum { COUNT = 5000 };
  int32_t* numbers = malloc(COUNT * sizeof(int32_t));
  assert_non_null(numbers);
  for (int32_t i = 0; i < COUNT; ++i) numbers[i] = COUNT - i;
  const sg_batch_line_t batch = {.sequence_count = COUNT,
                                 .query_lens = numbers,
                                 .computed_lens = numbers,
                                 .slots = numbers};
  FILE* file = fopen(written_path, "wb");
  assert_non_null(file);
  fputs("{\"query_lens\":[2],\"computed_lens\":[1],\"slots\":[0]}\n", file);
  sg_status_t status = sg_batch_write_line(&batch, file);
  assert_string_equal(status.message, "");
  fclose(file);
  sg_batch_reader_t* reader;
  status = sg_batch_reader_open(sg_allocator_system(), written_path, &reader);
  assert_string_equal(status.message, "");
  assert_next(reader, 1, 1, 2, (const int32_t[]){2}, (const int32_t[]){1},
              (const int32_t[]){0});
  // 1 + 2 + ... + COUNT
  assert_next(reader, 2, COUNT, COUNT * (COUNT + 1) / 2, numbers, numbers,
              numbers);
  assert_end(reader);
  sg_batch_reader_destroy(reader);
  free(numbers);
  remove(written_path);
}

static void test_batches_line_too_long(void** state) {
  (void)state;
  FILE* file = fopen(written_path, "wb");
  assert_non_null(file);
  for (size_t i = 0; i <= 16 << 20; ++i) fputc('[', file);
  fputs("\n{\"query_lens\":[2],\"computed_lens\":[1],\"slots\":[0]}\n", file);
  fclose(file);
  sg_batch_reader_t* reader;
  sg_status_t status =
      sg_batch_reader_open(sg_allocator_system(), written_path, &reader);
  assert_string_equal(status.message, "");
  sg_batch_line_t batch;
  bool end;
  status = sg_batch_reader_next(reader, &batch, &end);
  assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
  assert_non_null(
      strstr(status.message, ":1: expected a line of at most 16777216 bytes"));
  assert_next(reader, 2, 1, 2, (const int32_t[]){2}, (const int32_t[]){1},
              (const int32_t[]){0});
  sg_batch_reader_destroy(reader);
  remove(written_path);
}

static void test_batches_unreadable_file(void** state) {
  (void)state;
  sg_batch_reader_t* reader;
  sg_status_t status = sg_batch_reader_open(sg_allocator_system(),
                                            "schemas/absent.jsonl", &reader);
  assert_int_equal(status.code, SG_STATUS_IO);
  assert_null(reader);
  status =
      sg_batch_reader_open(sg_allocator_system(), "schemas/examples", &reader);
  assert_string_equal(status.message, "");
  sg_batch_line_t batch;
  bool end;
  status = sg_batch_reader_next(reader, &batch, &end);
  assert_int_equal(status.code, SG_STATUS_IO);
  sg_batch_reader_destroy(reader);
}

static sg_status_t read_example(sg_allocator_t allocator,
                                const void* argument) {
  (void)argument;
  sg_batch_reader_t* reader;
  SG_RETURN_IF_ERROR(sg_batch_reader_open(allocator, example_path, &reader));
  sg_status_t status = sg_status_ok();
  bool end = false;
  while (sg_status_is_ok(status) && !end) {
    sg_batch_line_t batch;
    status = sg_batch_reader_next(reader, &batch, &end);
  }
  sg_batch_reader_destroy(reader);
  return status;
}

static void test_batches_failing_allocations(void** state) {
  (void)state;
  // The reader, its name, its line and its arrays.
  assert_survives_failing_allocations(read_example, NULL, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batches_values),
      cmocka_unit_test(test_batches_written_read_back),
      cmocka_unit_test(test_batches_write_refuses_negative_count),
      cmocka_unit_test(test_batches_empty_text),
      cmocka_unit_test(test_batches_last_line_without_newline),
      cmocka_unit_test(test_batches_go_on_after_a_bad_line),
      cmocka_unit_test(test_batches_many_sequences),
      cmocka_unit_test(test_batches_line_too_long),
      cmocka_unit_test(test_batches_unreadable_file),
      cmocka_unit_test(test_batches_failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
