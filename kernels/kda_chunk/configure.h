// SPDX-License-Identifier: Apache-2.0
//
// The launch of kda_chunk without the act of launching it. Internal; unit tests
// run the blocks of such a launch themselves.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_CONFIGURE_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_CONFIGURE_H_

#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_chunk/params.h"

#ifdef __cplusplus
extern "C" {
#endif

// Accessor of the device code.
const void* kda_chunk_scan_handle(void);

// Holds the params that its launch points to: not to be copied.
typedef struct sg_kda_chunk_plan_t {
  sg_kda_chunk_params_t params;
  sg_launch_t launch;
} sg_kda_chunk_plan_t;

// Checks |args| and fills |out_plan|. The grid is 0 where the capacity is.
SG_MUST_USE sg_status_t sg__kda_chunk_configure(const sg_target_t* target,
                                                int32_t layer,
                                                const sg_kda_args_t* args,
                                                sg_kda_chunk_plan_t* out_plan);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_CONFIGURE_H_
