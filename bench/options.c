// SPDX-License-Identifier: Apache-2.0

#include "bench/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sg_status_t parse_count(const bench_count_t* count, const char* text) {
  char* end;
  const long value = text == NULL ? 0 : strtol(text, &end, 10);
  if (value < 1 || value > count->most || *end != '\0') {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: expected a number from 1 to %d, found '%s'",
                          count->name, count->most, text == NULL ? "" : text);
  }
  *count->value = (int32_t)value;
  return sg_status_ok();
}

static const bench_count_t* find_count(const bench_count_t* counts,
                                       size_t count_count, const char* name) {
  for (size_t i = 0; i < count_count; ++i) {
    if (strcmp(counts[i].name, name) == 0) return &counts[i];
  }
  return NULL;
}

sg_status_t bench_options_parse(int word_count, char** words, const char* usage,
                                const bench_count_t* counts, size_t count_count,
                                bench_options_t* out_options) {
  *out_options = (bench_options_t){0};
  for (int i = 1; i < word_count; i += 2) {
    const char* value = i + 1 < word_count ? words[i + 1] : NULL;
    const bench_count_t* count = find_count(counts, count_count, words[i]);
    if (count != NULL) {
      SG_RETURN_IF_ERROR(parse_count(count, value));
    } else if (strcmp(words[i], "--cases") == 0 && value != NULL) {
      out_options->cases = value;
    } else if (strcmp(words[i], "--out") == 0 && value != NULL) {
      out_options->out_path = value;
    } else {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT, "%s: usage: %s",
                            words[i], usage);
    }
  }
  return sg_status_ok();
}

bool bench_options_has_case(const bench_options_t* options, const char* name) {
  const size_t length = strlen(name);
  for (const char* word = options->cases; word != NULL;
       word = strchr(word, ',')) {
    if (*word == ',') ++word;
    const size_t word_length = strcspn(word, ",");
    if (word_length == length && strncmp(word, name, length) == 0) return true;
  }
  return options->cases == NULL;
}

static sg_status_t write_file(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  const bool written = file != NULL && fputs(text, file) >= 0;
  const bool closed = file != NULL && fclose(file) == 0;
  return written && closed
             ? sg_status_ok()
             : sg_status_make(SG_STATUS_IO, "%s: cannot be written", path);
}

int bench_finish(const char* program, const bench_options_t* options,
                 sg_status_t status, sg_json_writer_t* writer) {
  if (sg_status_is_ok(status) && options->out_path != NULL) {
    status = write_file(options->out_path, sg_json_writer_text(writer, NULL));
  }
  if (!sg_status_is_ok(status)) {
    (void)fprintf(stderr, "%s: %s\n", program, status.message);
  }
  sg_json_writer_deinitialize(writer);
  return sg_status_is_ok(status) ? 0 : 1;
}
