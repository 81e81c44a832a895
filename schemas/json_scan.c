// SPDX-License-Identifier: Apache-2.0

#include "schemas/json_scan.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(SG_JSON_MAX_DEPTH == 32, "the message below says 32");

typedef struct scan_t {
  bool in_string;
  // The byte before was an unescaped backslash in a string.
  bool is_escaped;
  int32_t depth;
} scan_t;

static void scan_byte(scan_t* scan, char byte) {
  if (scan->in_string) {
    const bool was_escaped = scan->is_escaped;
    scan->is_escaped = byte == '\\' && !was_escaped;
    if (byte == '"' && !was_escaped) scan->in_string = false;
    return;
  }
  if (byte == '"') scan->in_string = true;
  if (byte == '{' || byte == '[') ++scan->depth;
  if (byte == '}' || byte == ']') --scan->depth;
}

sg_json_fault_t sg_json_scan(const char* text, size_t bytes) {
  static const char byte_order_mark[] = "\xEF\xBB\xBF";
  if (bytes >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
    return (sg_json_fault_t){"expected no byte order mark", 1, 1};
  }
  scan_t scan = {0};
  sg_json_fault_t fault = {NULL, 1, 0};
  for (size_t i = 0; i < bytes; ++i) {
    const bool continues_character = ((unsigned char)text[i] & 0xC0) == 0x80;
    if (!continues_character) ++fault.column;
    scan_byte(&scan, text[i]);
    if (text[i] == '\0') fault.what = "expected text, found a NUL byte";
    if (scan.depth > SG_JSON_MAX_DEPTH) {
      fault.what = "expected at most 32 levels of nesting, found more";
    }
    if (fault.what != NULL) return fault;
    if (text[i] == '\n') {
      ++fault.line;
      fault.column = 0;
    }
  }
  return (sg_json_fault_t){0};
}
