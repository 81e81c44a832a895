// SPDX-License-Identifier: Apache-2.0
//
// The device that a launch is configured for. Launchers take grid, block and
// shared memory from it and from nothing else, so that a step can be recorded
// for a device that this machine does not have.

#ifndef STEPGRAPH_RUNTIME_HIP_TARGET_H_
#define STEPGRAPH_RUNTIME_HIP_TARGET_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_flavour_t {
  SG_FLAVOUR_HOST = 0,
  SG_FLAVOUR_AMD = 1,
  SG_FLAVOUR_NVIDIA = 2,
} sg_flavour_t;

typedef struct sg_target_t {
  // "host", "gfx90a", "gfx942", "gfx950" or "sm_90a".
  const char* name;
  sg_flavour_t flavour;
  // Threads that run in lock step.
  int32_t wave_size;
  int32_t compute_units;
  // Most threads a block and most shared memory (LDS) a block.
  int32_t max_threads_per_block;
  size_t shared_bytes_per_block;
} sg_target_t;

// "host", "amd" or "nvidia".
const char* sg_flavour_name(sg_flavour_t flavour);

// The flavour that this library was built as.
sg_flavour_t sg_flavour_of_build(void);

// The known targets, in a fixed order. They live as long as the program.
const sg_target_t* sg_target_list(size_t* out_count);

// SG_STATUS_NOT_FOUND with the known names when there is no such target.
SG_MUST_USE sg_status_t sg_target_find(const char* name,
                                       const sg_target_t** out_target);

// The target of device |device|: the one of its architecture's name. Fails with
// SG_STATUS_UNSUPPORTED and that name where no kernel is built for it.
SG_MUST_USE sg_status_t sg_target_of_device(int device,
                                            const sg_target_t** out_target);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_HIP_TARGET_H_
