// SPDX-License-Identifier: Apache-2.0
//
// stepgraph validate: says of each file whether it is a valid model, shapes,
// batches or requests file.

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "schemas/batches.h"
#include "schemas/model.h"
#include "schemas/requests.h"
#include "schemas/shapes.h"

typedef enum kind_t {
  KIND_AUTO = 0,
  KIND_MODEL,
  KIND_SHAPES,
  KIND_BATCHES,
  KIND_REQUESTS,
} kind_t;

// A text that stands in every file of a kind, and in no other's.
static const struct {
  const char* mark;
  kind_t kind;
} marks[] = {
    {"\"layers\"", KIND_MODEL},          {"\"limits\"", KIND_SHAPES},
    {"\"query_lens\"", KIND_BATCHES},    {"\"computed_lens\"", KIND_BATCHES},
    {"\"input_length\"", KIND_REQUESTS}, {"\"output_length\"", KIND_REQUESTS},
    {"TIMESTAMP,", KIND_REQUESTS},
};

// Tells the kind by the mark that comes first near the start of the file.
static sg_status_t recognise(const char* path, kind_t* out_kind) {
  *out_kind = KIND_AUTO;
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    return sg_status_make(SG_STATUS_IO, "%.200s: cannot open: %s", path,
                          strerror(errno));
  }
  char text[1 << 16];
  errno = 0;
  size_t bytes = fread(text, 1, sizeof(text) - 1, file);
  bool failed = ferror(file) != 0;
  int error = errno;
  fclose(file);
  if (failed) {
    return sg_status_make(SG_STATUS_IO, "%.200s: cannot read: %s", path,
                          strerror(error));
  }
  for (size_t i = 0; i < bytes; ++i) {
    if (text[i] == '\0') text[i] = ' ';
  }
  text[bytes] = '\0';
  const char* first = NULL;
  for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); ++i) {
    const char* found = strstr(text, marks[i].mark);
    if (found == NULL || (first != NULL && found > first)) continue;
    first = found;
    *out_kind = marks[i].kind;
  }
  if (*out_kind != KIND_AUTO) return sg_status_ok();
  return sg_status_make(SG_STATUS_INVALID_DATA,
                        "%.200s: not a model, shapes, batches or requests file "
                        "(--kind says which it should be)",
                        path);
}

static sg_status_t validate_model(const char* path) {
  sg_model_t model;
  SG_RETURN_IF_ERROR(sg_model_load(sg_allocator_system(), path, &model));
  printf("%s: valid model '%s', %d layers\n", path, model.name, model.layers);
  sg_model_deinitialize(&model);
  return sg_status_ok();
}

static sg_status_t validate_shapes(const char* path) {
  sg_shapes_t shapes;
  SG_RETURN_IF_ERROR(sg_shapes_load(sg_allocator_system(), path, &shapes));
  printf("%s: valid shapes, %zu up to %d tokens and %d sequences\n", path,
         shapes.shape_count, shapes.limits.max_tokens,
         shapes.limits.max_sequences);
  sg_shapes_deinitialize(&shapes);
  return sg_status_ok();
}

static sg_status_t validate_requests(const char* path) {
  sg_requests_t requests;
  SG_RETURN_IF_ERROR(sg_requests_load(sg_allocator_system(), path,
                                      /*max_requests=*/0, &requests));
  printf("%s: valid requests, %zu of them\n", path, requests.request_count);
  sg_requests_deinitialize(&requests);
  return sg_status_ok();
}

static sg_status_t read_batches(sg_batch_reader_t* reader, int64_t* out_batches,
                                int64_t* out_tokens) {
  *out_batches = 0;
  *out_tokens = 0;
  for (;;) {
    sg_batch_line_t line;
    bool end;
    SG_RETURN_IF_ERROR(sg_batch_reader_next(reader, &line, &end));
    if (end) return sg_status_ok();
    ++*out_batches;
    *out_tokens += line.token_count;
  }
}

static sg_status_t validate_batches(const char* path) {
  sg_batch_reader_t* reader;
  SG_RETURN_IF_ERROR(
      sg_batch_reader_open(sg_allocator_system(), path, &reader));
  int64_t batches, tokens;
  sg_status_t status = read_batches(reader, &batches, &tokens);
  sg_batch_reader_destroy(reader);
  SG_RETURN_IF_ERROR(status);
  printf("%s: valid batches, %lld of %lld tokens\n", path, (long long)batches,
         (long long)tokens);
  return sg_status_ok();
}

static sg_status_t validate(const char* path, kind_t kind) {
  if (kind == KIND_AUTO) SG_RETURN_IF_ERROR(recognise(path, &kind));
  switch (kind) {
    case KIND_AUTO:
      break;
    case KIND_MODEL:
      return validate_model(path);
    case KIND_SHAPES:
      return validate_shapes(path);
    case KIND_BATCHES:
      return validate_batches(path);
    case KIND_REQUESTS:
      return validate_requests(path);
  }
  return sg_status_make(SG_STATUS_INTERNAL, "validate: kind %d", (int)kind);
}

int sg_command_validate(int argc, char** argv) {
  int kind = KIND_AUTO;
  const sg_option_t options[] = {
      {.name = "kind",
       .kind = SG_OPTION_CHOICE,
       .value_offset = 0,
       .placeholder = "KIND",
       .help = "auto, model, shapes, batches or requests [auto, by content]",
       .choices = {"auto", "model", "shapes", "batches", "requests"}},
  };
  const sg_option_table_t table = {
      .command = "validate",
      .summary = "Checks files against the rules of their formats.",
      .options = options,
      .option_count = sizeof(options) / sizeof(options[0]),
      .positional = "FILE",
  };
  int file_count;
  int exit_code;
  if (!sg_command_parse(&table, argc, argv, &kind, &file_count, &exit_code)) {
    return exit_code;
  }
  for (int i = 0; i < file_count; ++i) {
    sg_status_t status = validate(argv[i], (kind_t)kind);
    if (sg_status_is_ok(status)) continue;
    sg_command_print_error(status);
    exit_code = SG_EXIT_USAGE;
  }
  return sg_command_finish(exit_code);
}
