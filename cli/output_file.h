// SPDX-License-Identifier: Apache-2.0
//
// A file that appears complete or not at all: it is written beside its place
// and renamed into it. What exists and is no regular file (a pipe, a terminal)
// is written to directly.

#ifndef STEPGRAPH_CLI_OUTPUT_FILE_H_
#define STEPGRAPH_CLI_OUTPUT_FILE_H_

#include <stdio.h>

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_output_file_t {
  FILE* file;
  const char* path;
  // Where it is written until it is complete; NULL when that is |path|.
  char* temporary_path;
} sg_output_file_t;

// Whether a file at |path| can be made, so that a long run does not fail at its
// end. Creates nothing.
SG_MUST_USE sg_status_t sg_output_file_check(const char* path);

// |path| must outlive the file.
SG_MUST_USE sg_status_t sg_output_file_open(const char* path,
                                            sg_output_file_t* out_file);

// Closes the file. When |status| is OK and everything was written, puts it in
// its place; otherwise removes it. Returns the first error.
SG_MUST_USE sg_status_t sg_output_file_finish(sg_output_file_t* file,
                                              sg_status_t status);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_OUTPUT_FILE_H_
