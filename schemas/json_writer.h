// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON to a file or into memory, value by value. The output depends on
// the calls alone: no locale, no hash order, the shortest digits that read back
// as the same double.
//
// Calls return nothing. The first error stays in the writer, later calls do
// nothing, and sg_json_writer_finish returns it:
//
//   sg_json_writer_t writer;
//   sg_json_writer_initialize_file(&writer, file, /*indent_spaces=*/2);
//   sg_json_writer_begin_object(&writer);
//   sg_json_writer_key(&writer, "layers");
//   sg_json_writer_int64(&writer, 20);
//   sg_json_writer_end_object(&writer);
//   sg_status_t status = sg_json_writer_finish(&writer);
//   sg_json_writer_deinitialize(&writer);
//
// Errors: SG_STATUS_IO, SG_STATUS_OUT_OF_MEMORY, SG_STATUS_INVALID_ARGUMENT (a
// double that is not finite, which JSON cannot hold) and
// SG_STATUS_FAILED_PRECONDITION (calls that do not add up to one JSON value).

#ifndef STEPGRAPH_SCHEMAS_JSON_WRITER_H_
#define STEPGRAPH_SCHEMAS_JSON_WRITER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SG_JSON_WRITER_MAX_DEPTH = 64 };

// Its fields are for json_writer.c only. Used by one thread at a time.
typedef struct sg_json_writer_t {
  sg_status_t status;
  // One of the two: the file, or the buffer and its allocator.
  FILE* file;
  sg_allocator_t allocator;
  char* buffer;
  size_t buffer_bytes;
  size_t buffer_capacity;
  int32_t indent_spaces;
  // Open objects and arrays; what each is stands in the arrays below.
  int32_t depth;
  bool is_object[SG_JSON_WRITER_MAX_DEPTH];
  bool is_inline[SG_JSON_WRITER_MAX_DEPTH];
  bool has_members[SG_JSON_WRITER_MAX_DEPTH];
  // A key was written and waits for its value.
  bool after_key;
  // The outermost value is complete.
  bool done;
} sg_json_writer_t;

// Writes to |file|, which stays the caller's and is not closed. With
// |indent_spaces| 0 everything stands on one line without blanks, else members
// stand on lines of their own, indented by that many a level.
void sg_json_writer_initialize_file(sg_json_writer_t* writer, FILE* file,
                                    int32_t indent_spaces);

// Writes into memory that grows; see sg_json_writer_text.
void sg_json_writer_initialize_buffer(sg_json_writer_t* writer,
                                      sg_allocator_t allocator,
                                      int32_t indent_spaces);

// Frees the buffer. Does not flush. Accepts NULL and a zeroed writer.
void sg_json_writer_deinitialize(sg_json_writer_t* writer);

void sg_json_writer_begin_object(sg_json_writer_t* writer);
void sg_json_writer_begin_array(sg_json_writer_t* writer);
// As above, but everything inside stands on the same line.
void sg_json_writer_begin_inline_object(sg_json_writer_t* writer);
void sg_json_writer_begin_inline_array(sg_json_writer_t* writer);
void sg_json_writer_end_object(sg_json_writer_t* writer);
void sg_json_writer_end_array(sg_json_writer_t* writer);

// The key of the member whose value is written next.
void sg_json_writer_key(sg_json_writer_t* writer, const char* key);

// Bytes that are not UTF-8 become U+FFFD. NULL writes null.
void sg_json_writer_string(sg_json_writer_t* writer, const char* text);
void sg_json_writer_int64(sg_json_writer_t* writer, int64_t value);
void sg_json_writer_uint64(sg_json_writer_t* writer, uint64_t value);
void sg_json_writer_double(sg_json_writer_t* writer, double value);
void sg_json_writer_bool(sg_json_writer_t* writer, bool value);
void sg_json_writer_null(sg_json_writer_t* writer);

// Ends the text with a newline, flushes the file, and returns the first error.
SG_MUST_USE sg_status_t sg_json_writer_finish(sg_json_writer_t* writer);

// The text of a buffer writer, ended by a NUL that |out_bytes| (may be NULL)
// does not count. Belongs to |writer| and lasts until its next call. Empty
// before anything is written.
const char* sg_json_writer_text(const sg_json_writer_t* writer,
                                size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_JSON_WRITER_H_
