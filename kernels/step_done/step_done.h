// SPDX-License-Identifier: Apache-2.0
//
// Enqueues step_done; see params.h for what it does.

#ifndef STEPGRAPH_KERNELS_STEP_DONE_STEP_DONE_H_
#define STEPGRAPH_KERNELS_STEP_DONE_STEP_DONE_H_

#include "kernels/step_done/params.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// |params| is copied.
SG_MUST_USE sg_status_t sg_step_done_enqueue(
    const sg_enqueue_t* where, const sg_step_done_params_t* params);

// Handle of the kernel, from the flavour's device code.
const void* step_done_handle(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_STEP_DONE_STEP_DONE_H_
