// SPDX-License-Identifier: Apache-2.0

#include "kernels/gated_norm/configure.h"

sg_status_t sg_gated_norm_enqueue(const sg_enqueue_t* where,
                                  const sg_gated_norm_args_t* args) {
  sg_gated_norm_plan_t plan;
  SG_RETURN_IF_ERROR(
      sg__gated_norm_configure(where->target, where->layer, args, &plan));
  return sg_launch_enqueue(where, &plan.launch);
}
