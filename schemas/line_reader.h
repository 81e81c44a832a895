// SPDX-License-Identifier: Apache-2.0
//
// Internal: the lines of a file or of a text in memory, one at a time.

#ifndef STEPGRAPH_SCHEMAS_LINE_READER_H_
#define STEPGRAPH_SCHEMAS_LINE_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SG_LINE_MAX_BYTES = 16 << 20 };

// Used by one thread at a time.
typedef struct sg_line_reader_t {
  sg_allocator_t allocator;
  // Path or name for messages.
  char* name;
  // Of the line read last, from 1.
  int64_t line_number;
  // One of the two: the file and the line read from it, or what is left of the
  // caller's text.
  FILE* file;
  char* buffer;
  size_t buffer_capacity;
  const char* text;
  size_t text_bytes;
} sg_line_reader_t;

SG_MUST_USE sg_status_t sg_line_reader_open(sg_allocator_t allocator,
                                            const char* path,
                                            sg_line_reader_t* out_reader);

// Does not copy |text|, which must outlive the reader; copies |name|.
SG_MUST_USE sg_status_t sg_line_reader_open_text(sg_allocator_t allocator,
                                                 const char* text, size_t bytes,
                                                 const char* name,
                                                 sg_line_reader_t* out_reader);

// Returns the next line that is not blank, without its "\n" or "\r\n", or sets
// |out_end|. It lasts until the next call and has no final NUL. A line longer
// than SG_LINE_MAX_BYTES is SG_STATUS_INVALID_DATA and is skipped.
SG_MUST_USE sg_status_t sg_line_reader_next(sg_line_reader_t* reader,
                                            const char** out_line,
                                            size_t* out_bytes, bool* out_end);

// Closes the file. Accepts a zeroed reader.
void sg_line_reader_deinitialize(sg_line_reader_t* reader);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_LINE_READER_H_
