// SPDX-License-Identifier: Apache-2.0

#include "schemas/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/base/checked.h"
#include "schemas/number_text.h"

enum { FIRST_BUFFER_BYTES = 256 };

static bool has_failed(const sg_json_writer_t* writer) {
  return !sg_status_is_ok(writer->status);
}

static void misuse(sg_json_writer_t* writer, const char* what) {
  if (has_failed(writer)) return;
  writer->status =
      sg_status_make(SG_STATUS_FAILED_PRECONDITION,
                     "JSON writer: %s at depth %d", what, (int)writer->depth);
}

static sg_status_t reserve(sg_json_writer_t* writer, size_t bytes) {
  size_t needed;
  if (!sg_checked_add(writer->buffer_bytes, bytes, &needed) ||
      !sg_checked_add(needed, /*final NUL*/ 1, &needed)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "JSON text overflows");
  }
  if (needed <= writer->buffer_capacity) return sg_status_ok();
  size_t capacity = FIRST_BUFFER_BYTES;
  while (capacity < needed) {
    if (!sg_checked_mul(capacity, 2, &capacity)) capacity = needed;
  }
  void* memory;
  SG_RETURN_IF_ERROR(
      sg_allocate(writer->allocator, "JSON text", capacity, 1, &memory));
  if (writer->buffer_bytes > 0) {
    memcpy(memory, writer->buffer, writer->buffer_bytes);
  }
  sg_release(writer->allocator, writer->buffer);
  writer->buffer = memory;
  writer->buffer_capacity = capacity;
  return sg_status_ok();
}

static void put_bytes(sg_json_writer_t* writer, const char* text,
                      size_t bytes) {
  if (has_failed(writer) || bytes == 0) return;
  if (writer->file != NULL) {
    if (fwrite(text, 1, bytes, writer->file) != bytes) {
      writer->status = sg_status_make(SG_STATUS_IO, "writing JSON failed: %s",
                                      strerror(errno));
    }
    return;
  }
  writer->status = reserve(writer, bytes);
  if (has_failed(writer)) return;
  memcpy(writer->buffer + writer->buffer_bytes, text, bytes);
  writer->buffer_bytes += bytes;
  writer->buffer[writer->buffer_bytes] = '\0';
}

static void put(sg_json_writer_t* writer, const char* text) {
  put_bytes(writer, text, strlen(text));
}

// Whether what stands at the present depth is broken into lines.
static bool breaks_lines(const sg_json_writer_t* writer) {
  return writer->indent_spaces > 0 &&
         !(writer->depth > 0 && writer->is_inline[writer->depth - 1]);
}

static void put_line_break(sg_json_writer_t* writer) {
  put(writer, "\n");
  for (int32_t i = 0; i < writer->depth * writer->indent_spaces; ++i) {
    put(writer, " ");
  }
}

// Puts what stands before a member: a comma, and a line break or blank.
static void begin_member(sg_json_writer_t* writer) {
  bool* has_members = &writer->has_members[writer->depth - 1];
  if (*has_members) put(writer, ",");
  if (breaks_lines(writer)) {
    put_line_break(writer);
  } else if (*has_members && writer->indent_spaces > 0) {
    put(writer, " ");
  }
  *has_members = true;
}

// Checks that a value may stand here and puts what stands before it.
static bool begin_value(sg_json_writer_t* writer) {
  if (has_failed(writer)) return false;
  if (writer->depth == 0) {
    if (writer->done) misuse(writer, "a second value");
  } else if (writer->after_key) {
    writer->after_key = false;
  } else if (writer->is_object[writer->depth - 1]) {
    misuse(writer, "a value without its key");
  } else {
    begin_member(writer);
  }
  return !has_failed(writer);
}

static void end_value(sg_json_writer_t* writer) {
  if (writer->depth == 0) writer->done = true;
}

static void put_value(sg_json_writer_t* writer, const char* text) {
  if (!begin_value(writer)) return;
  put(writer, text);
  end_value(writer);
}

static void begin_nested(sg_json_writer_t* writer, bool is_object,
                         bool is_inline) {
  if (writer->depth == SG_JSON_WRITER_MAX_DEPTH) {
    misuse(writer, "nesting is too deep");
  }
  if (!begin_value(writer)) return;
  is_inline = is_inline || !breaks_lines(writer);
  writer->is_object[writer->depth] = is_object;
  writer->is_inline[writer->depth] = is_inline;
  writer->has_members[writer->depth] = false;
  ++writer->depth;
  put(writer, is_object ? "{" : "[");
}

static void end_nested(sg_json_writer_t* writer, bool is_object) {
  if (has_failed(writer)) return;
  if (writer->depth == 0 || writer->is_object[writer->depth - 1] != is_object ||
      writer->after_key) {
    misuse(writer, is_object ? "no object to end" : "no array to end");
    return;
  }
  const bool on_own_line =
      breaks_lines(writer) && writer->has_members[writer->depth - 1];
  --writer->depth;
  if (on_own_line) put_line_break(writer);
  put(writer, is_object ? "}" : "]");
  end_value(writer);
}

// Bytes of the UTF-8 sequence at |text|, which a NUL ends; 0 if it is not valid
// (table 3-7 of the Unicode standard).
static size_t utf8_sequence_bytes(const unsigned char* text) {
  if (text[0] < 0x80) return 1;
  if (text[0] < 0xC2 || text[0] > 0xF4) return 0;
  const size_t bytes = text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (text[0] == 0xE0) low = 0xA0;
  if (text[0] == 0xED) high = 0x9F;
  if (text[0] == 0xF0) low = 0x90;
  if (text[0] == 0xF4) high = 0x8F;
  if (text[1] < low || text[1] > high) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if (text[i] < 0x80 || text[i] > 0xBF) return 0;
  }
  return bytes;
}

static void put_escaped(sg_json_writer_t* writer, unsigned char byte) {
  static const char named[] = "\"\\\b\f\n\r\t";
  static const char letters[] = "\"\\bfnrt";
  const char* found = strchr(named, byte);
  char escape[8];
  if (found != NULL) {
    snprintf(escape, sizeof(escape), "\\%c", letters[found - named]);
  } else {
    snprintf(escape, sizeof(escape), "\\u%04x", byte);
  }
  put(writer, escape);
}

static void put_string(sg_json_writer_t* writer, const char* text) {
  put(writer, "\"");
  while (*text != '\0') {
    const unsigned char byte = (unsigned char)*text;
    const size_t bytes = utf8_sequence_bytes((const unsigned char*)text);
    if (bytes == 0) {
      put(writer, "\xEF\xBF\xBD");
    } else if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7F) {
      put_escaped(writer, byte);
    } else {
      put_bytes(writer, text, bytes);
    }
    text += bytes == 0 ? 1 : bytes;
  }
  put(writer, "\"");
}

void sg_json_writer_initialize_file(sg_json_writer_t* writer, FILE* file,
                                    int32_t indent_spaces) {
  *writer = (sg_json_writer_t){
      .status = sg_status_ok(), .file = file, .indent_spaces = indent_spaces};
}

void sg_json_writer_initialize_buffer(sg_json_writer_t* writer,
                                      sg_allocator_t allocator,
                                      int32_t indent_spaces) {
  *writer = (sg_json_writer_t){.status = sg_status_ok(),
                               .allocator = allocator,
                               .indent_spaces = indent_spaces};
}

void sg_json_writer_deinitialize(sg_json_writer_t* writer) {
  if (writer == NULL) return;
  sg_release(writer->allocator, writer->buffer);
  *writer = (sg_json_writer_t){.status = sg_status_ok()};
}

void sg_json_writer_begin_object(sg_json_writer_t* writer) {
  begin_nested(writer, /*is_object=*/true, /*is_inline=*/false);
}

void sg_json_writer_begin_array(sg_json_writer_t* writer) {
  begin_nested(writer, /*is_object=*/false, /*is_inline=*/false);
}

void sg_json_writer_begin_inline_object(sg_json_writer_t* writer) {
  begin_nested(writer, /*is_object=*/true, /*is_inline=*/true);
}

void sg_json_writer_begin_inline_array(sg_json_writer_t* writer) {
  begin_nested(writer, /*is_object=*/false, /*is_inline=*/true);
}

void sg_json_writer_end_object(sg_json_writer_t* writer) {
  end_nested(writer, /*is_object=*/true);
}

void sg_json_writer_end_array(sg_json_writer_t* writer) {
  end_nested(writer, /*is_object=*/false);
}

void sg_json_writer_key(sg_json_writer_t* writer, const char* key) {
  if (has_failed(writer)) return;
  if (writer->depth == 0 || !writer->is_object[writer->depth - 1] ||
      writer->after_key) {
    misuse(writer, "a key where none may stand");
    return;
  }
  begin_member(writer);
  put_string(writer, key);
  put(writer, writer->indent_spaces > 0 ? ": " : ":");
  writer->after_key = true;
}

void sg_json_writer_string(sg_json_writer_t* writer, const char* text) {
  if (text == NULL) {
    sg_json_writer_null(writer);
    return;
  }
  if (!begin_value(writer)) return;
  put_string(writer, text);
  end_value(writer);
}

void sg_json_writer_int64(sg_json_writer_t* writer, int64_t value) {
  char text[SG_NUMBER_TEXT_BYTES];
  snprintf(text, sizeof(text), "%" PRId64, value);
  put_value(writer, text);
}

void sg_json_writer_uint64(sg_json_writer_t* writer, uint64_t value) {
  char text[SG_NUMBER_TEXT_BYTES];
  snprintf(text, sizeof(text), "%" PRIu64, value);
  put_value(writer, text);
}

void sg_json_writer_double(sg_json_writer_t* writer, double value) {
  if (!isfinite(value)) {
    if (!has_failed(writer)) {
      writer->status = sg_status_make(
          SG_STATUS_INVALID_ARGUMENT,
          "JSON writer: expected a finite number, found %f", value);
    }
    return;
  }
  char text[SG_NUMBER_TEXT_BYTES];
  sg_number_text_from_double(value, text);
  put_value(writer, text);
}

void sg_json_writer_bool(sg_json_writer_t* writer, bool value) {
  put_value(writer, value ? "true" : "false");
}

void sg_json_writer_null(sg_json_writer_t* writer) {
  put_value(writer, "null");
}

sg_status_t sg_json_writer_finish(sg_json_writer_t* writer) {
  if (!writer->done) misuse(writer, "the value is not complete");
  put(writer, "\n");
  if (!has_failed(writer) && writer->file != NULL &&
      fflush(writer->file) != 0) {
    writer->status = sg_status_make(SG_STATUS_IO, "writing JSON failed: %s",
                                    strerror(errno));
  }
  return writer->status;
}

const char* sg_json_writer_text(const sg_json_writer_t* writer,
                                size_t* out_bytes) {
  if (out_bytes != NULL) *out_bytes = writer->buffer_bytes;
  return writer->buffer == NULL ? "" : writer->buffer;
}
