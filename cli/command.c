// SPDX-License-Identifier: Apache-2.0

#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void sg_command_print_error(sg_status_t status) {
  fprintf(stderr, "stepgraph: %s\n", status.message);
}

static int exit_code_of(sg_status_code_t code) {
  switch (code) {
    case SG_STATUS_OK:
      return SG_EXIT_DONE;
    case SG_STATUS_INVALID_ARGUMENT:
    case SG_STATUS_INVALID_DATA:
    case SG_STATUS_OUT_OF_RANGE:
    case SG_STATUS_UNSUPPORTED:
    case SG_STATUS_NOT_FOUND:
    case SG_STATUS_IO:
      return SG_EXIT_USAGE;
    case SG_STATUS_FAILED_PRECONDITION:
    case SG_STATUS_BUSY:
    case SG_STATUS_OUT_OF_MEMORY:
    case SG_STATUS_DEVICE:
    case SG_STATUS_MISMATCH:
    case SG_STATUS_INTERNAL:
      return SG_EXIT_FAILED;
  }
  return SG_EXIT_FAILED;
}

int sg_command_fail(sg_status_t status) {
  sg_command_print_error(status);
  return exit_code_of(status.code);
}

bool sg_command_parse(const sg_option_table_t* table, int argc, char** argv,
                      void* values, int* out_positional_count,
                      int* out_exit_code) {
  bool help;
  sg_status_t status =
      sg_options_parse(table, argc, argv, values, out_positional_count, &help);
  if (!sg_status_is_ok(status)) {
    *out_exit_code = sg_command_fail(status);
    return false;
  }
  *out_exit_code = SG_EXIT_DONE;
  if (help) {
    sg_options_print_help(table, stdout);
    *out_exit_code = sg_command_finish(SG_EXIT_DONE);
  }
  return !help;
}

int sg_command_finish(int exit_code) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return exit_code;
  return sg_command_fail(sg_status_make(
      SG_STATUS_INTERNAL, "stdout: %s",
      errno != 0 ? strerror(errno) : "not everything could be written"));
}
