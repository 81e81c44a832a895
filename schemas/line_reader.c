// SPDX-License-Identifier: Apache-2.0

#include "schemas/line_reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { FIRST_CAPACITY_BYTES = 1024 };

static sg_status_t too_long(const sg_line_reader_t* reader) {
  return sg_status_make(SG_STATUS_INVALID_DATA,
                        "%s:%" PRId64
                        ": expected a line of at most %d bytes, found more",
                        reader->name, reader->line_number, SG_LINE_MAX_BYTES);
}

sg_status_t sg_line_reader_open(sg_allocator_t allocator, const char* path,
                                sg_line_reader_t* out_reader) {
  *out_reader = (sg_line_reader_t){.allocator = allocator};
  SG_RETURN_IF_ERROR(sg_allocate_string(allocator, path, &out_reader->name));
  out_reader->file = fopen(path, "rb");
  if (out_reader->file != NULL) return sg_status_ok();
  sg_status_t status = sg_status_make(SG_STATUS_IO, "%s: opening failed: %s",
                                      path, strerror(errno));
  sg_line_reader_deinitialize(out_reader);
  return status;
}

sg_status_t sg_line_reader_open_text(sg_allocator_t allocator, const char* text,
                                     size_t bytes, const char* name,
                                     sg_line_reader_t* out_reader) {
  *out_reader = (sg_line_reader_t){
      .allocator = allocator, .text = text, .text_bytes = bytes};
  return sg_allocate_string(allocator, name, &out_reader->name);
}

static sg_status_t grow(sg_line_reader_t* reader, size_t bytes) {
  const size_t larger = reader->buffer_capacity == 0
                            ? FIRST_CAPACITY_BYTES
                            : reader->buffer_capacity * 2;
  void* memory;
  SG_RETURN_IF_ERROR(
      sg_allocate(reader->allocator, "line", larger, 1, &memory));
  if (bytes > 0) memcpy(memory, reader->buffer, bytes);
  sg_release(reader->allocator, reader->buffer);
  reader->buffer = memory;
  reader->buffer_capacity = larger;
  return sg_status_ok();
}

// Reads to the next newline or the end of the file, of which |out_end| tells.
static sg_status_t next_from_file(sg_line_reader_t* reader,
                                  const char** out_line, size_t* out_bytes,
                                  bool* out_end) {
  size_t bytes = 0;
  int byte = getc(reader->file);
  *out_end = byte == EOF;
  for (; byte != EOF && byte != '\n'; byte = getc(reader->file)) {
    // One byte beyond the limit is kept: it tells that the line is too long.
    if (bytes > SG_LINE_MAX_BYTES) continue;
    if (bytes == reader->buffer_capacity) {
      SG_RETURN_IF_ERROR(grow(reader, bytes));
    }
    reader->buffer[bytes++] = (char)byte;
  }
  if (ferror(reader->file)) {
    return sg_status_make(SG_STATUS_IO, "%s: reading failed: %s", reader->name,
                          strerror(errno));
  }
  *out_line = reader->buffer;
  *out_bytes = bytes;
  return sg_status_ok();
}

static void next_from_text(sg_line_reader_t* reader, const char** out_line,
                           size_t* out_bytes, bool* out_end) {
  *out_end = reader->text_bytes == 0;
  if (*out_end) return;
  const char* newline = memchr(reader->text, '\n', reader->text_bytes);
  const size_t bytes =
      newline == NULL ? reader->text_bytes : (size_t)(newline - reader->text);
  const size_t consumed = bytes + (newline == NULL ? 0 : 1);
  *out_line = reader->text;
  *out_bytes = bytes;
  reader->text += consumed;
  reader->text_bytes -= consumed;
}

static bool is_blank(const char* line, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
  }
  return true;
}

sg_status_t sg_line_reader_next(sg_line_reader_t* reader, const char** out_line,
                                size_t* out_bytes, bool* out_end) {
  const char* line = NULL;
  size_t bytes = 0;
  *out_line = NULL;
  *out_bytes = 0;
  *out_end = false;
  do {
    if (reader->file != NULL) {
      SG_RETURN_IF_ERROR(next_from_file(reader, &line, &bytes, out_end));
    } else {
      next_from_text(reader, &line, &bytes, out_end);
    }
    if (*out_end) return sg_status_ok();
    ++reader->line_number;
    if (bytes > SG_LINE_MAX_BYTES) return too_long(reader);
  } while (is_blank(line, bytes));
  // A line that is not blank has a byte.
  assert(line != NULL && bytes > 0);
  if (line[bytes - 1] == '\r') --bytes;
  *out_line = line;
  *out_bytes = bytes;
  return sg_status_ok();
}

void sg_line_reader_deinitialize(sg_line_reader_t* reader) {
  if (reader->file != NULL) fclose(reader->file);
  sg_release(reader->allocator, reader->buffer);
  sg_release(reader->allocator, reader->name);
  *reader = (sg_line_reader_t){0};
}
