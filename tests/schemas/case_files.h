// SPDX-License-Identifier: Apache-2.0
//
// The example and invalid files, and which reader reads each.

#ifndef STEPGRAPH_TESTS_SCHEMAS_CASE_FILES_H_
#define STEPGRAPH_TESTS_SCHEMAS_CASE_FILES_H_

#include <stddef.h>

#include "runtime/base/status.h"

// Called for each file of a folder that is not an ".expected".
typedef void (*case_visit_t)(const char* path, void* argument);

// Visits the files of |folder| in no order; returns how many there were.
size_t visit_case_files(const char* folder, case_visit_t visit, void* argument);

// Reads |path| wholly with the reader that its name asks for: ".model.json",
// ".shapes.json", ".batch.jsonl", ".request.jsonl" or ".request.csv".
sg_status_t read_case_file(const char* path);

// Reads at most |capacity| bytes of a file; returns how many. Asserts that it
// is not longer.
size_t read_bytes(const char* path, char* buffer, size_t capacity);

#endif  // STEPGRAPH_TESTS_SCHEMAS_CASE_FILES_H_
