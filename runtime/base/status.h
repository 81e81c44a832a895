// SPDX-License-Identifier: Apache-2.0
//
// The one result type of the library.
//
// sg_status_t is a plain value: it owns nothing, needs no release and may be
// copied and dropped freely, so that returning an error never allocates.
// A status is made where the fault is seen, with a message that names the
// object, what was expected and what was found.

#ifndef STEPGRAPH_RUNTIME_BASE_STATUS_H_
#define STEPGRAPH_RUNTIME_BASE_STATUS_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_status_code_t {
  SG_STATUS_OK = 0,
  // An argument is outside what the function's comment allows.
  SG_STATUS_INVALID_ARGUMENT,
  // Input data (a file, a batch) breaks the rules of its format.
  SG_STATUS_INVALID_DATA,
  // A size or index is beyond a configured limit.
  SG_STATUS_OUT_OF_RANGE,
  // The call is right but not in the object's present state.
  SG_STATUS_FAILED_PRECONDITION,
  // The combination is valid but not implemented; the message has the numbers.
  SG_STATUS_UNSUPPORTED,
  // A name or a matching graph shape does not exist.
  SG_STATUS_NOT_FOUND,
  // The ring of steps is full: nothing was enqueued, try again later.
  SG_STATUS_BUSY,
  // Host or device memory is exhausted, or a memory budget would be exceeded.
  SG_STATUS_OUT_OF_MEMORY,
  // A file could not be opened, read or written.
  SG_STATUS_IO,
  // The HIP runtime returned an error; the message has its name and the call.
  SG_STATUS_DEVICE,
  // A check of results failed (verify found a difference).
  SG_STATUS_MISMATCH,
  // A broken invariant of the library itself.
  SG_STATUS_INTERNAL,
} sg_status_code_t;

enum { SG_STATUS_MESSAGE_BYTES = 320 };

typedef struct sg_status_t {
  sg_status_code_t code;
  // Source line and file of the fault; 0 and NULL when code is OK.
  int32_t line;
  const char* file;
  // One line, cut at the end if longer; empty when OK. Control bytes in it are
  // replaced by '?'.
  char message[SG_STATUS_MESSAGE_BYTES];
} sg_status_t;

#if defined(__GNUC__) || defined(__clang__)
#define SG_MUST_USE __attribute__((warn_unused_result))
#define SG_PRINTF_LIKE(format_index, first_argument_index) \
  __attribute__((format(printf, format_index, first_argument_index)))
#else
#define SG_MUST_USE
#define SG_PRINTF_LIKE(format_index, first_argument_index)
#endif

static inline sg_status_t sg_status_ok(void) {
  sg_status_t status;
  status.code = SG_STATUS_OK;
  status.line = 0;
  status.file = (const char*)0;
  status.message[0] = '\0';
  return status;
}

static inline bool sg_status_is_ok(sg_status_t status) {
  return status.code == SG_STATUS_OK;
}

// Name of |code| in lower case, e.g. "out of range". Never NULL.
const char* sg_status_code_name(sg_status_code_t code);

// Makes an error. Use sg_status_make, which fills in file and line.
SG_MUST_USE sg_status_t sg_status_make_at(const char* file, int32_t line,
                                          sg_status_code_t code,
                                          const char* format, ...)
    SG_PRINTF_LIKE(4, 5);

#define sg_status_make(code, ...) \
  sg_status_make_at(__FILE__, __LINE__, (code), __VA_ARGS__)

// Returns |status| with "|context|: " put before its message, so that an error
// names the object it travelled through. OK stays OK.
SG_MUST_USE sg_status_t sg_status_annotate(sg_status_t status,
                                           const char* format, ...)
    SG_PRINTF_LIKE(2, 3);

#define SG_RETURN_IF_ERROR(expression)                   \
  do {                                                   \
    sg_status_t sg_status_ = (expression);               \
    if (!sg_status_is_ok(sg_status_)) return sg_status_; \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_BASE_STATUS_H_
