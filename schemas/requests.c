// SPDX-License-Identifier: Apache-2.0

#include "schemas/requests.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "schemas/json_reader.h"
#include "schemas/line_reader.h"
#include "schemas/request_csv.h"

enum { MAX_REQUEST_TOKENS = 1 << 24, FIRST_CAPACITY = 256 };
// The most whose nanoseconds fit in 64 bits, roundly; times since 1970 do.
static const double max_timestamp_ms = 9e12;

typedef enum format_t { FORMAT_JSON, FORMAT_CSV } format_t;

// --- Reading lines ---

static sg_status_t read_json_fields(const sg_json_node_t* root,
                                    sg_request_t* request) {
  const sg_json_range_t timestamps = {.min = 0, .max = max_timestamp_ms};
  SG_RETURN_IF_ERROR(sg_json_check_object(root, /*keys=*/NULL, 0));
  sg_json_node_t timestamp;
  double milliseconds;
  SG_RETURN_IF_ERROR(
      sg_json_get(root, "timestamp", SG_JSON_REQUIRED, &timestamp));
  SG_RETURN_IF_ERROR(
      sg_json_read_double(&timestamp, timestamps, &milliseconds));
  // Milliseconds up to 2^53 are exact; so is this split.
  const int64_t whole = (int64_t)milliseconds;
  const double rest = milliseconds - (double)whole;
  request->arrival_ns = whole * 1000000 + (int64_t)(rest * 1e6 + 0.5);
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "input_length", SG_JSON_REQUIRED,
                                       1, MAX_REQUEST_TOKENS,
                                       &request->input_tokens));
  return sg_json_get_int32(root, "output_length", SG_JSON_REQUIRED, 1,
                           MAX_REQUEST_TOKENS, &request->output_tokens);
}

static sg_status_t read_json(const sg_line_reader_t* lines, const char* line,
                             size_t bytes, sg_request_t* request) {
  const sg_json_source_t source = {.name = lines->name,
                                   .line = lines->line_number};
  sg_json_node_t root;
  SG_RETURN_IF_ERROR(sg_json_parse(&source, line, bytes, &root));
  sg_status_t status = read_json_fields(&root, request);
  sg_json_release(&root);
  return status;
}

static sg_status_t recognise(const sg_line_reader_t* lines, const char* line,
                             size_t bytes, format_t* out_format) {
  const size_t header_bytes = sizeof(SG_REQUEST_CSV_HEADER) - 1;
  *out_format = FORMAT_JSON;
  for (size_t i = 0; i < bytes; ++i) {
    if (line[i] == '{') return sg_status_ok();
    if (line[i] != ' ' && line[i] != '\t') break;
  }
  *out_format = FORMAT_CSV;
  if (bytes == header_bytes &&
      memcmp(line, SG_REQUEST_CSV_HEADER, header_bytes) == 0) {
    return sg_status_ok();
  }
  return sg_status_make(
      SG_STATUS_INVALID_DATA,
      "%s:%" PRId64
      ": expected a JSON object or the CSV header " SG_REQUEST_CSV_HEADER,
      lines->name, lines->line_number);
}

static sg_status_t add(sg_requests_t* requests, size_t* capacity,
                       const sg_request_t* request) {
  if (requests->request_count == *capacity) {
    const size_t larger = *capacity == 0 ? FIRST_CAPACITY : *capacity * 2;
    void* memory;
    SG_RETURN_IF_ERROR(sg_allocate(requests->allocator, "requests", larger,
                                   sizeof(sg_request_t), &memory));
    if (*capacity > 0) {
      memcpy(memory, requests->requests, *capacity * sizeof(sg_request_t));
    }
    sg_release(requests->allocator, requests->requests);
    requests->requests = memory;
    *capacity = larger;
  }
  requests->requests[requests->request_count++] = *request;
  return sg_status_ok();
}

static sg_status_t read_lines(sg_line_reader_t* lines, size_t max_requests,
                              sg_requests_t* requests) {
  const char* line;
  size_t bytes;
  bool end;
  size_t capacity = 0;
  SG_RETURN_IF_ERROR(sg_line_reader_next(lines, &line, &bytes, &end));
  if (end) return sg_status_ok();
  format_t format;
  SG_RETURN_IF_ERROR(recognise(lines, line, bytes, &format));
  if (format == FORMAT_CSV) {
    SG_RETURN_IF_ERROR(sg_line_reader_next(lines, &line, &bytes, &end));
  }
  while (!end &&
         (max_requests == 0 || requests->request_count < max_requests)) {
    sg_request_t request = {0};
    if (format == FORMAT_JSON) {
      SG_RETURN_IF_ERROR(read_json(lines, line, bytes, &request));
    } else {
      SG_RETURN_IF_ERROR(sg_request_csv_read(lines->name, lines->line_number,
                                             line, bytes, MAX_REQUEST_TOKENS,
                                             &request));
    }
    SG_RETURN_IF_ERROR(add(requests, &capacity, &request));
    SG_RETURN_IF_ERROR(sg_line_reader_next(lines, &line, &bytes, &end));
  }
  return sg_status_ok();
}

// --- Order ---

static bool is_sorted(const sg_requests_t* requests) {
  for (size_t i = 1; i < requests->request_count; ++i) {
    if (requests->requests[i].arrival_ns <
        requests->requests[i - 1].arrival_ns) {
      return false;
    }
  }
  return true;
}

// Merges two sorted neighbours; equals of the left go first.
static void merge(const sg_request_t* left, size_t left_count,
                  const sg_request_t* right, size_t right_count,
                  sg_request_t* out) {
  size_t i = 0;
  size_t j = 0;
  while (i < left_count || j < right_count) {
    const bool take_left =
        j == right_count ||
        (i < left_count && left[i].arrival_ns <= right[j].arrival_ns);
    *out++ = take_left ? left[i++] : right[j++];
  }
}

// A merge sort from the bottom up, since qsort is not stable.
static sg_status_t sort(sg_requests_t* requests) {
  if (is_sorted(requests)) return sg_status_ok();
  const size_t count = requests->request_count;
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(requests->allocator, "sorted requests", count,
                                 sizeof(sg_request_t), &memory));
  sg_request_t* from = requests->requests;
  sg_request_t* to = memory;
  for (size_t run = 1; run < count; run *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * run) {
      const size_t rest = count - begin;
      const size_t left = rest < run ? rest : run;
      const size_t right = rest - left < run ? rest - left : run;
      merge(from + begin, left, from + begin + left, right, to + begin);
    }
    sg_request_t* swap = from;
    from = to;
    to = swap;
  }
  requests->requests = from;
  sg_release(requests->allocator, to);
  return sg_status_ok();
}

static void make_relative(sg_requests_t* requests) {
  if (requests->request_count == 0) return;
  const int64_t first_ns = requests->requests[0].arrival_ns;
  for (size_t i = 0; i < requests->request_count; ++i) {
    requests->requests[i].arrival_ns -= first_ns;
  }
}

static sg_status_t read_and_close(sg_line_reader_t* lines, size_t max_requests,
                                  sg_requests_t* out_requests) {
  sg_status_t status = read_lines(lines, max_requests, out_requests);
  sg_line_reader_deinitialize(lines);
  if (sg_status_is_ok(status)) status = sort(out_requests);
  if (sg_status_is_ok(status)) {
    make_relative(out_requests);
  } else {
    sg_requests_deinitialize(out_requests);
  }
  return status;
}

sg_status_t sg_requests_parse(sg_allocator_t allocator, const char* text,
                              size_t bytes, const char* source_name,
                              size_t max_requests,
                              sg_requests_t* out_requests) {
  *out_requests = (sg_requests_t){.allocator = allocator};
  sg_line_reader_t lines;
  SG_RETURN_IF_ERROR(
      sg_line_reader_open_text(allocator, text, bytes, source_name, &lines));
  return read_and_close(&lines, max_requests, out_requests);
}

sg_status_t sg_requests_load(sg_allocator_t allocator, const char* path,
                             size_t max_requests, sg_requests_t* out_requests) {
  *out_requests = (sg_requests_t){.allocator = allocator};
  sg_line_reader_t lines;
  SG_RETURN_IF_ERROR(sg_line_reader_open(allocator, path, &lines));
  return read_and_close(&lines, max_requests, out_requests);
}

void sg_requests_deinitialize(sg_requests_t* requests) {
  if (requests == NULL) return;
  sg_release(requests->allocator, requests->requests);
  *requests = (sg_requests_t){0};
}
