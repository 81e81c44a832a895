// SPDX-License-Identifier: Apache-2.0

#include "schemas/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY_BYTES = 4096 };

static sg_status_t grow(sg_allocator_t allocator, char** text, size_t bytes,
                        size_t* capacity) {
  const size_t larger = *capacity == 0 ? FIRST_CAPACITY_BYTES : *capacity * 2;
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "text file", larger, 1, &memory));
  if (bytes > 0) memcpy(memory, *text, bytes);
  sg_release(allocator, *text);
  *text = memory;
  *capacity = larger;
  return sg_status_ok();
}

static sg_status_t read_all(sg_allocator_t allocator, const char* path,
                            FILE* file, size_t max_bytes, char** text,
                            size_t* bytes) {
  size_t capacity = 0;
  while (!feof(file)) {
    if (*bytes == capacity) {
      SG_RETURN_IF_ERROR(grow(allocator, text, *bytes, &capacity));
    }
    *bytes += fread(*text + *bytes, 1, capacity - *bytes, file);
    if (ferror(file)) {
      return sg_status_make(SG_STATUS_IO, "%s: reading failed: %s", path,
                            strerror(errno));
    }
    if (*bytes > max_bytes) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "%s: expected at most %zu bytes, found more", path,
                            max_bytes);
    }
  }
  return sg_status_ok();
}

sg_status_t sg_text_file_read(sg_allocator_t allocator, const char* path,
                              size_t max_bytes, char** out_text,
                              size_t* out_bytes) {
  *out_text = NULL;
  *out_bytes = 0;
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    return sg_status_make(SG_STATUS_IO, "%s: opening failed: %s", path,
                          strerror(errno));
  }
  char* text = NULL;
  size_t bytes = 0;
  sg_status_t status =
      read_all(allocator, path, file, max_bytes, &text, &bytes);
  fclose(file);
  if (!sg_status_is_ok(status)) {
    sg_release(allocator, text);
    return status;
  }
  *out_text = text;
  *out_bytes = bytes;
  return sg_status_ok();
}
