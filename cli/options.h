// SPDX-License-Identifier: Apache-2.0
//
// A strict parser of long options. Every command describes its options in a
// table, from which both the parser and the help text come.
//
//   --name value   --name=value   --flag   -o value (where there is a letter)
//
// An option may stand once; "--" ends the options. Errors are
// SG_STATUS_INVALID_ARGUMENT and say what was expected.

#ifndef STEPGRAPH_CLI_OPTIONS_H_
#define STEPGRAPH_CLI_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_option_kind_t {
  // bool: set by its presence.
  SG_OPTION_FLAG = 0,
  // const char*: any text but the empty one.
  SG_OPTION_TEXT,
  // int64_t in [minimum, maximum].
  SG_OPTION_INTEGER,
  // int: index of one of the choices.
  SG_OPTION_CHOICE,
} sg_option_kind_t;

enum { SG_OPTION_MAX_CHOICES = 8 };

typedef struct sg_option_t {
  // Without the dashes.
  const char* name;
  // 0 for none.
  char letter;
  sg_option_kind_t kind;
  // Where the value goes in the struct of values, which has a member of the
  // kind's type there. It keeps what it was set to before when the option is
  // absent.
  size_t value_offset;
  // What the value stands for, in the help text; NULL for a flag.
  const char* placeholder;
  const char* help;
  bool required;
  int64_t minimum;
  int64_t maximum;
  // Ended by NULL.
  const char* choices[SG_OPTION_MAX_CHOICES];
} sg_option_t;

typedef struct sg_option_table_t {
  // Name of the command.
  const char* command;
  // One sentence.
  const char* summary;
  // Lines to read behind the options, or NULL.
  const char* details;
  const sg_option_t* options;
  size_t option_count;
  // What further arguments stand for, or NULL where there may be none; at least
  // one must be given then.
  const char* positional;
} sg_option_table_t;

// Parses the |argc| arguments that follow the command's name into |values|, the
// struct that the table's offsets are of; NULL without options. Positional
// arguments are moved to the front of |argv|, |out_positional_count| of them.
// |out_help| is set when --help stands anywhere; nothing else is checked then.
SG_MUST_USE sg_status_t sg_options_parse(const sg_option_table_t* table,
                                         int argc, char** argv, void* values,
                                         int* out_positional_count,
                                         bool* out_help);

void sg_options_print_help(const sg_option_table_t* table, FILE* file);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_OPTIONS_H_
