// SPDX-License-Identifier: Apache-2.0
//
// The launch of short_conv without the act of launching it. Internal; unit
// tests run the blocks of such a launch themselves.

#ifndef STEPGRAPH_KERNELS_SHORT_CONV_CONFIGURE_H_
#define STEPGRAPH_KERNELS_SHORT_CONV_CONFIGURE_H_

#include "kernels/short_conv/params.h"
#include "kernels/short_conv/short_conv.h"

#ifdef __cplusplus
extern "C" {
#endif

// Accessor of the device code.
const void* short_conv_handle(void);

// Holds the params that its launch points to: not to be copied.
typedef struct sg_short_conv_plan_t {
  sg_short_conv_params_t params;
  sg_launch_t launch;
} sg_short_conv_plan_t;

// Checks |args| and fills |out_plan|. The grid is 0 where the capacity is.
SG_MUST_USE sg_status_t sg__short_conv_configure(
    const sg_target_t* target, int32_t layer, const sg_short_conv_args_t* args,
    sg_short_conv_plan_t* out_plan);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_SHORT_CONV_CONFIGURE_H_
