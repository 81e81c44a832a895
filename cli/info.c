// SPDX-License-Identifier: Apache-2.0
//
// stepgraph info: what this build is and what it runs on.

#include <stdio.h>

#include "cli/command.h"
#include "cli/session.h"
#include "runtime/hip/error.h"
#include "schemas/bundled.h"

static void print_label(const char* label) { printf("%-12s", label); }

static sg_status_t print_device(int device) {
  hipDeviceProp_t properties;
  SG_RETURN_IF_HIP_ERROR(hipGetDeviceProperties, &properties, device);
  const sg_target_t* target;
  sg_status_t status = sg_target_of_device(device, &target);
  print_label(device == 0 ? "devices" : "");
  printf("%d: %s, %d compute units, %.1f GiB, ", device, properties.name,
         properties.multiProcessorCount,
         (double)properties.totalGlobalMem / (1 << 30));
  if (sg_status_is_ok(status)) {
    printf("target %s\n", target->name);
  } else {
    printf("no kernels for it\n");
  }
  return sg_status_ok();
}

static void print_targets(void) {
  size_t count;
  const sg_target_t* targets = sg_target_list(&count);
  print_label("targets");
  for (size_t i = 0; i < count; ++i) {
    printf("%s%s", i == 0 ? "" : " ", targets[i].name);
  }
  printf("\n");
}

static void print_bundled(const char* label, sg_bundled_kind_t kind) {
  size_t count;
  const sg_bundled_file_t* files = sg_bundled_list(kind, &count);
  print_label(label);
  for (size_t i = 0; i < count; ++i) {
    printf("%s%s", i == 0 ? "" : " ", files[i].name);
  }
  printf("\n");
}

static sg_status_t print_info(void) {
  int device_count;
  SG_RETURN_IF_ERROR(sg_session_device_count(&device_count));
  print_label("stepgraph");
  printf("%s\n", SG_TOOL_VERSION);
  print_label("flavour");
  printf("%s\n", sg_flavour_name(sg_flavour_of_build()));
  for (int i = 0; i < device_count; ++i) {
    SG_RETURN_IF_ERROR(print_device(i));
  }
  print_targets();
  print_bundled("models", SG_BUNDLED_MODEL);
  print_bundled("shapes", SG_BUNDLED_SHAPES);
  return sg_status_ok();
}

int sg_command_info(int argc, char** argv) {
  const sg_option_table_t table = {
      .command = "info",
      .summary = "Shows the build, the devices, and the bundled files.",
  };
  int positional_count;
  int exit_code;
  if (!sg_command_parse(&table, argc, argv, /*values=*/NULL, &positional_count,
                        &exit_code)) {
    return exit_code;
  }
  sg_status_t status = print_info();
  if (!sg_status_is_ok(status)) return sg_command_fail(status);
  return sg_command_finish(SG_EXIT_DONE);
}
