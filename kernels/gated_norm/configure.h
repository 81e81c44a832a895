// SPDX-License-Identifier: Apache-2.0
//
// The launch of gated_norm without the act of launching it. Internal; unit
// tests run the blocks of such a launch themselves.

#ifndef STEPGRAPH_KERNELS_GATED_NORM_CONFIGURE_H_
#define STEPGRAPH_KERNELS_GATED_NORM_CONFIGURE_H_

#include "kernels/gated_norm/gated_norm.h"
#include "kernels/gated_norm/params.h"

#ifdef __cplusplus
extern "C" {
#endif

// Accessor of the device code.
const void* gated_norm_handle(void);

// Holds the params that its launch points to: not to be copied.
typedef struct sg_gated_norm_plan_t {
  sg_gated_norm_params_t params;
  sg_launch_t launch;
} sg_gated_norm_plan_t;

// Checks |args| and fills |out_plan|. The grid is 0 where the capacity is.
SG_MUST_USE sg_status_t sg__gated_norm_configure(
    const sg_target_t* target, int32_t layer, const sg_gated_norm_args_t* args,
    sg_gated_norm_plan_t* out_plan);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_GATED_NORM_CONFIGURE_H_
