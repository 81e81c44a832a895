// SPDX-License-Identifier: Apache-2.0

#include "kernels/kda_chunk/configure.h"

sg_status_t sg_kda_chunk_enqueue(const sg_enqueue_t* where,
                                 const sg_kda_args_t* args) {
  sg_kda_chunk_plan_t plan;
  SG_RETURN_IF_ERROR(
      sg__kda_chunk_configure(where->target, where->layer, args, &plan));
  for (int32_t i = 0; i < plan.launch_count; ++i) {
    SG_RETURN_IF_ERROR(sg_launch_enqueue(where, &plan.launches[i]));
  }
  return sg_status_ok();
}
