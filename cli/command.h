// SPDX-License-Identifier: Apache-2.0
//
// What the commands have in common: exit codes, the options that several of
// them take, and how an error is told.

#ifndef STEPGRAPH_CLI_COMMAND_H_
#define STEPGRAPH_CLI_COMMAND_H_

#include <stddef.h>

#include "cli/options.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SG_EXIT_DONE = 0,
  // A step or a check failed.
  SG_EXIT_FAILED = 1,
  // Bad usage or input.
  SG_EXIT_USAGE = 2,
};

// Options of commands that open a model or shapes; |values_t| is the command's
// struct of values, with a const char* of the option's name.
#define SG_OPTION_MODEL(values_t)                                          \
  {                                                                        \
    .name = "model", .kind = SG_OPTION_TEXT,                               \
    .value_offset = offsetof(values_t, model), .placeholder = "NAME|FILE", \
    .required = true, .help = "a bundled model, or a model file",          \
  }
#define SG_OPTION_SHAPES(values_t)                                          \
  {                                                                         \
    .name = "shapes", .kind = SG_OPTION_TEXT,                               \
    .value_offset = offsetof(values_t, shapes), .placeholder = "NAME|FILE", \
    .help = "bundled shapes, or a shapes file [default]",                   \
  }

// A command is called with the arguments that follow its name and returns the
// exit code.
int sg_command_replay(int argc, char** argv);
int sg_command_dump(int argc, char** argv);
int sg_command_kda(int argc, char** argv);
int sg_command_validate(int argc, char** argv);
int sg_command_info(int argc, char** argv);

// Prints "stepgraph: MESSAGE" as one line on stderr.
void sg_command_print_error(sg_status_t status);

// Prints the error and returns the exit code for it: SG_EXIT_USAGE where the
// caller's arguments or files are to blame, else SG_EXIT_FAILED.
int sg_command_fail(sg_status_t status);

// Parses a command's arguments into |values|. Returns false when the command is
// over, with its exit code: help was shown, or an error told.
bool sg_command_parse(const sg_option_table_t* table, int argc, char** argv,
                      void* values, int* out_positional_count,
                      int* out_exit_code);

// Makes sure that everything written to stdout has arrived there; returns
// |exit_code|, or SG_EXIT_FAILED with a message where it has not.
int sg_command_finish(int exit_code);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_COMMAND_H_
