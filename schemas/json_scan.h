// SPDX-License-Identifier: Apache-2.0
//
// Internal: what is refused in a JSON text before it is parsed.

#ifndef STEPGRAPH_SCHEMAS_JSON_SCAN_H_
#define STEPGRAPH_SCHEMAS_JSON_SCAN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SG_JSON_MAX_DEPTH = 32 };

typedef struct sg_json_fault_t {
  // NULL when there is none.
  const char* what;
  // From 1; columns count characters.
  int64_t line;
  int64_t column;
} sg_json_fault_t;

// Finds the first byte order mark, NUL byte, or bracket that nests deeper than
// SG_JSON_MAX_DEPTH. Any bytes are legal.
sg_json_fault_t sg_json_scan(const char* text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_JSON_SCAN_H_
