// SPDX-License-Identifier: Apache-2.0

#include "schemas/request_csv.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FIELD_COUNT = 3, FRACTION_DIGITS = 9 };

// Text that remains to be read.
typedef struct span_t {
  const char* text;
  size_t bytes;
} span_t;

static bool take_byte(span_t* span, char byte) {
  if (span->bytes == 0 || span->text[0] != byte) return false;
  ++span->text;
  --span->bytes;
  return true;
}

// Takes exactly |digit_count| digits.
static bool take_digits(span_t* span, size_t digit_count, int64_t* out_value) {
  if (span->bytes < digit_count) return false;
  int64_t value = 0;
  for (size_t i = 0; i < digit_count; ++i) {
    const char digit = span->text[i];
    if (digit < '0' || digit > '9') return false;
    value = value * 10 + (digit - '0');
  }
  span->text += digit_count;
  span->bytes -= digit_count;
  *out_value = value;
  return true;
}

// Takes ".d" to ".ddddddddd", if there is a point.
static bool take_fraction(span_t* span, int64_t* out_ns) {
  *out_ns = 0;
  if (!take_byte(span, '.')) return true;
  int32_t digits = 0;
  int64_t digit;
  while (digits < FRACTION_DIGITS && take_digits(span, 1, &digit)) {
    *out_ns = *out_ns * 10 + digit;
    ++digits;
  }
  if (digits == 0) return false;
  for (; digits < FRACTION_DIGITS; ++digits) *out_ns *= 10;
  return true;
}

static bool is_leap(int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_of_month(int64_t year, int64_t month) {
  static const int64_t days[] = {31, 28, 31, 30, 31, 30,
                                 31, 31, 30, 31, 30, 31};
  return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

// Days from 1970-01-01 to a date of 1970 or later in the Gregorian calendar.
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
  int64_t days = day - 1;
  for (int64_t y = 1970; y < year; ++y) days += is_leap(y) ? 366 : 365;
  for (int64_t m = 1; m < month; ++m) days += days_of_month(year, m);
  return days;
}

// Reads "2023-11-16 18:15:46.6805900", in UTC.
static bool read_time(span_t span, int64_t* out_ns) {
  int64_t year, month, day, hour, minute, second, fraction_ns;
  if (!take_digits(&span, 4, &year) || !take_byte(&span, '-') ||
      !take_digits(&span, 2, &month) || !take_byte(&span, '-') ||
      !take_digits(&span, 2, &day) || !take_byte(&span, ' ') ||
      !take_digits(&span, 2, &hour) || !take_byte(&span, ':') ||
      !take_digits(&span, 2, &minute) || !take_byte(&span, ':') ||
      !take_digits(&span, 2, &second) || !take_fraction(&span, &fraction_ns)) {
    return false;
  }
  if (span.bytes != 0 &&
      (span.bytes != 6 || memcmp(span.text, "+00:00", 6) != 0)) {
    return false;
  }
  // Later years would overflow 64 bits of nanoseconds.
  if (year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 ||
      day > days_of_month(year, month) || hour > 23 || minute > 59 ||
      second > 59) {
    return false;
  }
  const int64_t seconds = days_since_1970(year, month, day) * 86400 +
                          hour * 3600 + minute * 60 + second;
  *out_ns = seconds * 1000000000 + fraction_ns;
  return true;
}

static bool read_tokens(span_t span, int32_t max_tokens, int32_t* out_tokens) {
  int64_t value;
  if (span.bytes == 0 || span.bytes > 10) return false;
  if (!take_digits(&span, span.bytes, &value)) return false;
  if (value < 1 || value > max_tokens) return false;
  *out_tokens = (int32_t)value;
  return true;
}

// Splits at commas; returns how many fields there are, which may be more than
// were stored.
static size_t split(span_t line, span_t fields[FIELD_COUNT]) {
  size_t count = 0;
  for (;;) {
    const char* comma = memchr(line.text, ',', line.bytes);
    const size_t bytes =
        comma == NULL ? line.bytes : (size_t)(comma - line.text);
    if (count < FIELD_COUNT) fields[count] = (span_t){line.text, bytes};
    ++count;
    if (comma == NULL) return count;
    line.text += bytes + 1;
    line.bytes -= bytes + 1;
  }
}

static sg_status_t field_error(const char* name, int64_t line_number,
                               const char* field, const char* expected,
                               span_t found) {
  enum { FOUND_BYTES = 40 };
  char text[FOUND_BYTES + 1] = {0};
  const size_t bytes = found.bytes < FOUND_BYTES ? found.bytes : FOUND_BYTES;
  for (size_t i = 0; i < bytes; ++i) {
    const unsigned char byte = (unsigned char)found.text[i];
    text[i] = '?';
    if (byte >= 0x20 && byte < 0x7F) text[i] = (char)byte;
  }
  return sg_status_make(SG_STATUS_INVALID_DATA,
                        "%s:%" PRId64 ": %s: expected %s, found \"%s\"", name,
                        line_number, field, expected, text);
}

sg_status_t sg_request_csv_read(const char* name, int64_t line_number,
                                const char* line, size_t bytes,
                                int32_t max_tokens, sg_request_t* out_request) {
  *out_request = (sg_request_t){0};
  span_t fields[FIELD_COUNT];
  const size_t field_count = split((span_t){line, bytes}, fields);
  if (field_count != FIELD_COUNT) {
    return sg_status_make(SG_STATUS_INVALID_DATA,
                          "%s:%" PRId64 ": expected 3 fields, found %zu", name,
                          line_number, field_count);
  }
  if (!read_time(fields[0], &out_request->arrival_ns)) {
    return field_error(name, line_number, "TIMESTAMP",
                       "a time like 2023-11-16 18:15:46.6805900", fields[0]);
  }
  char range[48];
  snprintf(range, sizeof(range), "an integer in [1, %" PRId32 "]", max_tokens);
  if (!read_tokens(fields[1], max_tokens, &out_request->input_tokens)) {
    return field_error(name, line_number, "ContextTokens", range, fields[1]);
  }
  if (!read_tokens(fields[2], max_tokens, &out_request->output_tokens)) {
    return field_error(name, line_number, "GeneratedTokens", range, fields[2]);
  }
  return sg_status_ok();
}
