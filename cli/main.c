// SPDX-License-Identifier: Apache-2.0
//
// The stepgraph tool: finds the command and hands it its arguments.

#include <stdio.h>
#include <string.h>

#include "cli/command.h"

typedef struct command_t {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
} command_t;

static const command_t commands[] = {
    {"replay", "run a trace and report what happened", sg_command_replay},
    {"dump", "show what is in the graphs of a model", sg_command_dump},
    {"kda", "run one layer on tensors from a file", sg_command_kda},
    {"validate", "check model, shapes, batches and requests files",
     sg_command_validate},
    {"info", "show the build, the devices, and the bundled files",
     sg_command_info},
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static int print_usage(void) {
  printf(
      "usage: stepgraph COMMAND [options]\n\n"
      "Records steps of Kimi Delta Attention layers as HIP graphs.\n\n"
      "commands:\n");
  for (size_t i = 0; i < COMMAND_COUNT; ++i) {
    printf("  %-10s %s\n", commands[i].name, commands[i].summary);
  }
  printf(
      "\n'stepgraph COMMAND --help' shows the options of a command.\n"
      "Exit codes: 0 done, 1 a step or check failed, 2 bad usage or input.\n");
  return sg_command_finish(SG_EXIT_DONE);
}

static int fail_usage(const char* what, const char* argument) {
  return sg_command_fail(
      sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                     "%s%.60s%s: expected replay, dump, kda, validate or info "
                     "(see stepgraph --help)",
                     what, argument, argument[0] == '\0' ? "" : "'"));
}

int main(int argc, char** argv) {
  if (argc < 2) return fail_usage("no command", "");
  if (strcmp(argv[1], "--help") == 0) return print_usage();
  if (strcmp(argv[1], "--version") == 0) {
    printf("stepgraph %s\n", SG_TOOL_VERSION);
    return sg_command_finish(SG_EXIT_DONE);
  }
  for (size_t i = 0; i < COMMAND_COUNT; ++i) {
    if (strcmp(commands[i].name, argv[1]) == 0) {
      return commands[i].run(argc - 2, argv + 2);
    }
  }
  return fail_usage("unknown command '", argv[1]);
}
