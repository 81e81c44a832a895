// SPDX-License-Identifier: Apache-2.0
//
// Internal: reads JSON strictly. All of jansson stays behind this header, and
// its errors become statuses here.
//
// Refused: duplicate and unknown keys, trailing text, byte order marks, NUL
// bytes and \u0000, invalid UTF-8, deep nesting, reals where integers belong
// (1.0 too), numbers out of range. Syntax errors read
//   tiny.json:3:14: '}' expected near end of file
// and errors of meaning
//   tiny.json: /gate/lower_bound: expected a number in [-5, 0), found 3
// In a file of lines the line follows its name: "batches.jsonl:7: /slots: ...".

#ifndef STEPGRAPH_SCHEMAS_JSON_READER_H_
#define STEPGRAPH_SCHEMAS_JSON_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;

// Where a text comes from, for messages.
typedef struct sg_json_source_t {
  const char* name;
  // Line of the text in a file of lines, from 1; 0 when it is the whole file.
  int64_t line;
} sg_json_source_t;

// A value and the way to it from the root. Nodes point to their parents, which
// the caller keeps in place, usually on the stack.
typedef struct sg_json_node_t {
  const sg_json_source_t* source;
  const struct sg_json_node_t* parent;
  // Key in an object; NULL in an array, where |index| counts.
  const char* key;
  size_t index;
  // NULL for an optional member that is absent.
  struct json_t* value;
} sg_json_node_t;

typedef enum sg_json_presence_t {
  SG_JSON_REQUIRED,
  // An absent member leaves the output as it was: set the default before.
  SG_JSON_OPTIONAL,
} sg_json_presence_t;

// An interval of numbers; an open end is not part of it.
typedef struct sg_json_range_t {
  double min;
  double max;
  bool is_min_open;
  bool is_max_open;
} sg_json_range_t;

// Parses one JSON text. |source| must outlive |out_root|.
SG_MUST_USE sg_status_t sg_json_parse(const sg_json_source_t* source,
                                      const char* text, size_t bytes,
                                      sg_json_node_t* out_root);

// Frees a parsed text. Accepts a zeroed node.
void sg_json_release(sg_json_node_t* root);

// An error at |node|, which ends in "found ..." with what stands there.
SG_MUST_USE sg_status_t sg_json_expected(const sg_json_node_t* node,
                                         const char* format, ...)
    SG_PRINTF_LIKE(2, 3);

// An error at |node| in the caller's own words.
SG_MUST_USE sg_status_t sg_json_error(const sg_json_node_t* node,
                                      const char* format, ...)
    SG_PRINTF_LIKE(2, 3);

bool sg_json_is_null(const sg_json_node_t* node);

// Checks that |node| is an object whose keys are all among the |key_count| of
// |keys|. With |keys| NULL any key is legal.
SG_MUST_USE sg_status_t sg_json_check_object(const sg_json_node_t* node,
                                             const char* const* keys,
                                             size_t key_count);

SG_MUST_USE sg_status_t sg_json_get(const sg_json_node_t* object,
                                    const char* key,
                                    sg_json_presence_t presence,
                                    sg_json_node_t* out_member);

// Steps |member| through the members of |object|, which is one, in the order of
// the text: a zeroed |member| becomes the first, any other the one behind it.
// Returns false behind the last.
bool sg_json_next_member(const sg_json_node_t* object, sg_json_node_t* member);

// Checks that |node| is an array of at most |max_count| elements.
SG_MUST_USE sg_status_t sg_json_read_count(const sg_json_node_t* node,
                                           size_t max_count, size_t* out_count);

// |index| is below the count.
sg_json_node_t sg_json_element(const sg_json_node_t* array, size_t index);

SG_MUST_USE sg_status_t sg_json_read_int64(const sg_json_node_t* node,
                                           int64_t min, int64_t max,
                                           int64_t* out_value);

// Reads an integer or a real.
SG_MUST_USE sg_status_t sg_json_read_double(const sg_json_node_t* node,
                                            sg_json_range_t range,
                                            double* out_value);

// The string belongs to the parsed text.
SG_MUST_USE sg_status_t sg_json_read_string(const sg_json_node_t* node,
                                            const char** out_string);

// The rest reads the member |key| of |object|.

SG_MUST_USE sg_status_t sg_json_get_int32(const sg_json_node_t* object,
                                          const char* key,
                                          sg_json_presence_t presence,
                                          int32_t min, int32_t max,
                                          int32_t* value);

// The number lies in |range| before and after it is rounded to a float.
SG_MUST_USE sg_status_t sg_json_get_float(const sg_json_node_t* object,
                                          const char* key,
                                          sg_json_presence_t presence,
                                          sg_json_range_t range, float* value);

SG_MUST_USE sg_status_t sg_json_get_bool(const sg_json_node_t* object,
                                         const char* key,
                                         sg_json_presence_t presence,
                                         bool* value);

// Reads one of |choice_count| strings as its index.
SG_MUST_USE sg_status_t sg_json_get_choice(
    const sg_json_node_t* object, const char* key, sg_json_presence_t presence,
    const char* const* choices, int32_t choice_count, int32_t* index);

// Reads a required name: 1 to 64 of A-Z a-z 0-9 . _ - with a letter or digit
// first. The caller releases it.
SG_MUST_USE sg_status_t sg_json_get_name(const sg_json_node_t* object,
                                         const char* key,
                                         sg_allocator_t allocator,
                                         char** out_name);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_JSON_READER_H_
