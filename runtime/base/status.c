// SPDX-License-Identifier: Apache-2.0

#include "runtime/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char* sg_status_code_name(sg_status_code_t code) {
  switch (code) {
    case SG_STATUS_OK:
      return "ok";
    case SG_STATUS_INVALID_ARGUMENT:
      return "invalid argument";
    case SG_STATUS_INVALID_DATA:
      return "invalid data";
    case SG_STATUS_OUT_OF_RANGE:
      return "out of range";
    case SG_STATUS_FAILED_PRECONDITION:
      return "failed precondition";
    case SG_STATUS_UNSUPPORTED:
      return "unsupported";
    case SG_STATUS_NOT_FOUND:
      return "not found";
    case SG_STATUS_BUSY:
      return "busy";
    case SG_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case SG_STATUS_IO:
      return "input/output";
    case SG_STATUS_DEVICE:
      return "device";
    case SG_STATUS_MISMATCH:
      return "mismatch";
    case SG_STATUS_INTERNAL:
      return "internal";
  }
  return "unknown";
}

// Text from outside may hold newlines, or bytes that steer a terminal; a
// message has none.
static void blank_control_bytes(char* text) {
  for (; *text != '\0'; ++text) {
    if ((unsigned char)*text < 0x20 || *text == 0x7F) *text = '?';
  }
}

sg_status_t sg_status_make_at(const char* file, int32_t line,
                              sg_status_code_t code, const char* format, ...) {
  sg_status_t status = {.code = code, .line = line, .file = file};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(status.message, sizeof(status.message), format, arguments);
  va_end(arguments);
  blank_control_bytes(status.message);
  return status;
}

sg_status_t sg_status_annotate(sg_status_t status, const char* format, ...) {
  if (sg_status_is_ok(status)) return status;
  char inner[SG_STATUS_MESSAGE_BYTES];
  memcpy(inner, status.message, sizeof(inner));
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(status.message, sizeof(status.message), format, arguments);
  va_end(arguments);
  size_t used = strlen(status.message);
  snprintf(status.message + used, sizeof(status.message) - used, ": %s", inner);
  blank_control_bytes(status.message);
  return status;
}
