// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip/launch.h"

#include "runtime/hip/error.h"

static sg_status_t check_limits(const sg_target_t* target,
                                const sg_launch_t* launch) {
  if (launch->grid > INT32_MAX) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "grid of %u blocks, at most %d are allowed",
                          launch->grid, INT32_MAX);
  }
  if (launch->block == 0 ||
      launch->block > (uint32_t)target->max_threads_per_block) {
    return sg_status_make(
        SG_STATUS_UNSUPPORTED, "block of %u threads, %s allows 1 to %d",
        launch->block, target->name, target->max_threads_per_block);
  }
  if (launch->shared_bytes > target->shared_bytes_per_block) {
    return sg_status_make(
        SG_STATUS_UNSUPPORTED, "%u bytes of shared memory, %s has %zu a block",
        launch->shared_bytes, target->name, target->shared_bytes_per_block);
  }
  return sg_status_ok();
}

static sg_status_t enqueue(const sg_enqueue_t* where,
                           const sg_launch_t* launch) {
  SG_RETURN_IF_ERROR(check_limits(where->target, launch));
  dim3 grid = {.x = launch->grid, .y = 1, .z = 1};
  dim3 block = {.x = launch->block, .y = 1, .z = 1};
  // hipLaunchKernel takes pointers to the arguments; ours is the one struct,
  // which it only reads.
  void* arguments[1] = {(void*)(uintptr_t)launch->params};
  SG_RETURN_IF_HIP_ERROR(hipLaunchKernel, launch->kernel->handle(), grid, block,
                         arguments, launch->shared_bytes, where->stream);
  if (where->trace == NULL) return sg_status_ok();
  return where->trace->add(where->trace->self, launch);
}

sg_status_t sg_launch_enqueue(const sg_enqueue_t* where,
                              const sg_launch_t* launch) {
  if (launch->grid == 0) return sg_status_ok();
  const sg_launch_trace_t* trace = where->trace;
  if (trace != NULL && trace->wants != NULL &&
      !trace->wants(trace->self, launch)) {
    return sg_status_ok();
  }
  return sg_status_annotate(enqueue(where, launch), "%s, kernel %s, layer %d",
                            launch->kernel->op, launch->kernel->name,
                            launch->layer);
}
