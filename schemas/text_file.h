// SPDX-License-Identifier: Apache-2.0
//
// Internal: a text file read whole.

#ifndef STEPGRAPH_SCHEMAS_TEXT_FILE_H_
#define STEPGRAPH_SCHEMAS_TEXT_FILE_H_

#include <stddef.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Reads the file at |path|, a pipe too, into memory of |allocator|, to be
// released by the caller. More than |max_bytes| are SG_STATUS_INVALID_DATA;
// what cannot be read is SG_STATUS_IO.
SG_MUST_USE sg_status_t sg_text_file_read(sg_allocator_t allocator,
                                          const char* path, size_t max_bytes,
                                          char** out_text, size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_TEXT_FILE_H_
