// SPDX-License-Identifier: Apache-2.0
//
// What the programs here have in common: pairs of an option and its value, and
// a result in JSON.

#ifndef STEPGRAPH_BENCH_OPTIONS_H_
#define STEPGRAPH_BENCH_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "schemas/json_writer.h"

enum { BENCH_REPEATS_MAX = 1000 };

// An option whose value is a number from 1 to |most|. |value| stays as it is
// where the option is not given.
typedef struct bench_count_t {
  const char* name;
  int32_t most;
  int32_t* value;
} bench_count_t;

typedef struct bench_options_t {
  // Of --cases, names between commas; NULL for all.
  const char* cases;
  // Of --out; NULL for none.
  const char* out_path;
} bench_options_t;

// Takes |counts|, --cases and --out from the words after the first. |usage| is
// what a refusal shows.
SG_MUST_USE sg_status_t bench_options_parse(int word_count, char** words,
                                            const char* usage,
                                            const bench_count_t* counts,
                                            size_t count_count,
                                            bench_options_t* out_options);

// Whether |name| is among the cases asked for.
bool bench_options_has_case(const bench_options_t* options, const char* name);

// The end of a program: writes what |writer| has to --out unless |status| is a
// failure, says what failed, deinitializes |writer| and returns the exit code.
int bench_finish(const char* program, const bench_options_t* options,
                 sg_status_t status, sg_json_writer_t* writer);

#endif  // STEPGRAPH_BENCH_OPTIONS_H_
