// SPDX-License-Identifier: Apache-2.0

#include "kernels/short_conv/configure.h"

sg_status_t sg_short_conv_enqueue(const sg_enqueue_t* where,
                                  const sg_short_conv_args_t* args) {
  sg_short_conv_plan_t plan;
  SG_RETURN_IF_ERROR(
      sg__short_conv_configure(where->target, where->layer, args, &plan));
  return sg_launch_enqueue(where, &plan.launch);
}
