// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/requests.h"
#include "tests/schemas/failing_allocator.h"

static const char json_path[] = "schemas/examples/requests.jsonl";
static const char csv_path[] = "schemas/examples/requests.csv";

static sg_requests_t parse(const char* text, size_t max_requests) {
  sg_requests_t requests;
  sg_status_t status =
      sg_requests_parse(sg_allocator_system(), text, strlen(text), "test",
                        max_requests, &requests);
  assert_string_equal(status.message, "");
  return requests;
}

static sg_requests_t load(const char* path) {
  sg_requests_t requests;
  sg_status_t status = sg_requests_load(sg_allocator_system(), path,
                                        /*max_requests=*/0, &requests);
  assert_string_equal(status.message, "");
  return requests;
}

static void assert_request(const sg_requests_t* requests, size_t index,
                           int64_t arrival_ns, int32_t input_tokens,
                           int32_t output_tokens) {
  assert_true(index < requests->request_count);
  const sg_request_t request = requests->requests[index];
  assert_int_equal(request.arrival_ns, arrival_ns);
  assert_int_equal(request.input_tokens, input_tokens);
  assert_int_equal(request.output_tokens, output_tokens);
}

static void test_requests_json(void** state) {
  (void)state;
  sg_requests_t requests = load(json_path);
  assert_int_equal(requests.request_count, 4);
  assert_request(&requests, 0, 0, 6758, 500);
  assert_request(&requests, 1, 0, 7322, 490);
  assert_request(&requests, 2, 250000, 1, 1);
  assert_request(&requests, 3, 3000000000, 16777216, 52);
  sg_requests_deinitialize(&requests);
  assert_null(requests.requests);
}

// Across the end of a leap February; 2024-02-28 23:59:59.9 is the origin.
static void test_requests_csv(void** state) {
  (void)state;
  sg_requests_t requests = load(csv_path);
  assert_int_equal(requests.request_count, 4);
  assert_request(&requests, 0, 0, 374, 44);
  assert_request(&requests, 1, 100000100, 396, 109);
  assert_request(&requests, 2, INT64_C(86400100000000), 1, 2);
  assert_request(&requests, 3, INT64_C(86400600000000), 3, 4);
  sg_requests_deinitialize(&requests);
}

static void test_requests_csv_line_endings(void** state) {
  (void)state;
  sg_requests_t requests = parse(
      "\r\nTIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:15:46.6805900,374,44\r\n\r\n"
      "2023-11-16 18:15:50.9951690,396,109",
      0);
  assert_int_equal(requests.request_count, 2);
  assert_request(&requests, 1, INT64_C(4314579000), 396, 109);
  sg_requests_deinitialize(&requests);
}

// Arrivals from the first to the last legal nanosecond, counted by hand: 292
// years of 365 days, 71 leap days (2000 is one, 2100 and 2200 are none).
static void test_requests_csv_ends_of_time(void** state) {
  (void)state;
  sg_requests_t requests = parse(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "1970-01-01 00:00:00,1,1\n2261-12-31 23:59:59.999999999,1,1\n",
      0);
  const int64_t days = 292 * 365 + 71;
  assert_request(&requests, 1, days * 86400 * INT64_C(1000000000) - 1, 1, 1);
  sg_requests_deinitialize(&requests);
}

static void test_requests_json_timestamp_digits(void** state) {
  (void)state;
  sg_requests_t requests = parse(
      "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n"
      "{\"timestamp\":0.000001,\"input_length\":1,\"output_length\":1}\n"
      "{\"timestamp\":0.9999999,\"input_length\":1,\"output_length\":1}\n"
      "{\"timestamp\":9000000000000,\"input_length\":1,"
      "\"output_length\":1}\n",
      0);
  assert_request(&requests, 1, 1, 1, 1);
  assert_request(&requests, 2, 1000000, 1, 1);
  assert_request(&requests, 3, INT64_C(9000000000000000000), 1, 1);
  sg_requests_deinitialize(&requests);
}

static void test_requests_limit(void** state) {
  (void)state;
  static const char text[] =
      "{\"timestamp\":7,\"input_length\":1,\"output_length\":1}\n"
      "{\"timestamp\":9,\"input_length\":2,\"output_length\":1}\nnonsense\n";
  for (size_t limit = 1; limit <= 2; ++limit) {
    sg_requests_t requests = parse(text, limit);
    assert_int_equal(requests.request_count, limit);
    sg_requests_deinitialize(&requests);
  }
  sg_requests_t requests;
  sg_status_t status = sg_requests_parse(
      sg_allocator_system(), text, sizeof(text) - 1, "test", 3, &requests);
  assert_int_equal(status.code, SG_STATUS_INVALID_DATA);
  assert_int_equal(requests.request_count, 0);
}

// Every count of up to 70 requests in an order that is far from sorted, with
// many that arrive together; input_tokens remembers the place in the file.
static void test_requests_sorted_stably(void** state) {
  (void)state;
  enum { MAX_COUNT = 70, LINE_BYTES = 80 };
  char* text = malloc(MAX_COUNT * LINE_BYTES);
  assert_non_null(text);
  for (int32_t count = 0; count <= MAX_COUNT; ++count) {
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < count; ++i) {
      used += (size_t)snprintf(
          text + used, LINE_BYTES,
          "{\"timestamp\":%d,\"input_length\":%d,\"output_length\":1}\n",
          (i * 37 + 11) % 13, i + 1);
    }
    sg_requests_t requests = parse(text, 0);
    assert_int_equal(requests.request_count, count);
    for (int32_t i = 1; i < count; ++i) {
      const sg_request_t before = requests.requests[i - 1];
      const sg_request_t after = requests.requests[i];
      assert_true(before.arrival_ns < after.arrival_ns ||
                  (before.arrival_ns == after.arrival_ns &&
                   before.input_tokens < after.input_tokens));
    }
    if (count > 0) assert_int_equal(requests.requests[0].arrival_ns, 0);
    sg_requests_deinitialize(&requests);
  }
  free(text);
}

static void test_requests_empty(void** state) {
  (void)state;
  static const char* const texts[] = {
      "", "\n \n", "TIMESTAMP,ContextTokens,GeneratedTokens",
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"};
  for (size_t i = 0; i < 4; ++i) {
    sg_requests_t requests = parse(texts[i], 0);
    assert_int_equal(requests.request_count, 0);
    sg_requests_deinitialize(&requests);
  }
}

static void test_requests_unreadable_file(void** state) {
  (void)state;
  sg_requests_t requests;
  sg_status_t status = sg_requests_load(sg_allocator_system(),
                                        "schemas/absent.csv", 0, &requests);
  assert_int_equal(status.code, SG_STATUS_IO);
  sg_requests_deinitialize(&requests);
  sg_requests_deinitialize(NULL);
}

static sg_status_t read_file(sg_allocator_t allocator, const void* path) {
  sg_requests_t requests;
  sg_status_t status = sg_requests_load(allocator, path, 0, &requests);
  sg_requests_deinitialize(&requests);
  return status;
}

static sg_status_t read_unsorted(sg_allocator_t allocator,
                                 const void* argument) {
  (void)argument;
  static const char text[] =
      "{\"timestamp\":7,\"input_length\":1,\"output_length\":1}\n"
      "{\"timestamp\":5,\"input_length\":2,\"output_length\":1}\n";
  sg_requests_t requests;
  sg_status_t status = sg_requests_parse(allocator, text, sizeof(text) - 1,
                                         "test", 0, &requests);
  sg_requests_deinitialize(&requests);
  return status;
}

static void test_requests_failing_allocations(void** state) {
  (void)state;
  // The name, the line and the requests; or the name and two arrays.
  assert_survives_failing_allocations(read_file, json_path, 3);
  assert_survives_failing_allocations(read_file, csv_path, 3);
  assert_survives_failing_allocations(read_unsorted, NULL, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_requests_json),
      cmocka_unit_test(test_requests_csv),
      cmocka_unit_test(test_requests_csv_line_endings),
      cmocka_unit_test(test_requests_csv_ends_of_time),
      cmocka_unit_test(test_requests_json_timestamp_digits),
      cmocka_unit_test(test_requests_limit),
      cmocka_unit_test(test_requests_sorted_stably),
      cmocka_unit_test(test_requests_empty),
      cmocka_unit_test(test_requests_unreadable_file),
      cmocka_unit_test(test_requests_failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
