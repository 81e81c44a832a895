// SPDX-License-Identifier: Apache-2.0

// For opendir and its like.
#define _POSIX_C_SOURCE 200809L

#include "tests/schemas/case_files.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/batches.h"
#include "schemas/model.h"
#include "schemas/requests.h"
#include "schemas/shapes.h"

static bool ends_in(const char* text, const char* suffix) {
  const size_t bytes = strlen(text);
  const size_t suffix_bytes = strlen(suffix);
  return bytes >= suffix_bytes &&
         strcmp(text + bytes - suffix_bytes, suffix) == 0;
}

size_t visit_case_files(const char* folder, case_visit_t visit,
                        void* argument) {
  DIR* directory = opendir(folder);
  assert_non_null(directory);
  size_t count = 0;
  for (struct dirent* entry = readdir(directory); entry != NULL;
       entry = readdir(directory)) {
    if (entry->d_name[0] == '.' || ends_in(entry->d_name, ".expected")) {
      continue;
    }
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    visit(path, argument);
    ++count;
  }
  closedir(directory);
  return count;
}

static sg_status_t read_batches(const char* path) {
  sg_batch_reader_t* reader;
  SG_RETURN_IF_ERROR(
      sg_batch_reader_open(sg_allocator_system(), path, &reader));
  sg_status_t status = sg_status_ok();
  bool end = false;
  while (sg_status_is_ok(status) && !end) {
    sg_batch_line_t batch;
    status = sg_batch_reader_next(reader, &batch, &end);
  }
  sg_batch_reader_destroy(reader);
  return status;
}

sg_status_t read_case_file(const char* path) {
  sg_status_t status = sg_status_ok();
  if (ends_in(path, ".model.json")) {
    sg_model_t model;
    status = sg_model_load(sg_allocator_system(), path, &model);
    sg_model_deinitialize(&model);
  } else if (ends_in(path, ".shapes.json")) {
    sg_shapes_t shapes;
    status = sg_shapes_load(sg_allocator_system(), path, &shapes);
    sg_shapes_deinitialize(&shapes);
  } else if (ends_in(path, ".batch.jsonl")) {
    status = read_batches(path);
  } else if (ends_in(path, ".request.jsonl") || ends_in(path, ".request.csv")) {
    sg_requests_t requests;
    status = sg_requests_load(sg_allocator_system(), path, 0, &requests);
    sg_requests_deinitialize(&requests);
  } else {
    fail_msg("%s: no reader for this name", path);
  }
  return status;
}

size_t read_bytes(const char* path, char* buffer, size_t capacity) {
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  const size_t bytes = fread(buffer, 1, capacity, file);
  assert_int_equal(fgetc(file), EOF);
  fclose(file);
  return bytes;
}
