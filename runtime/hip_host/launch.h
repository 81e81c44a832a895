// SPDX-License-Identifier: Apache-2.0
//
// Checks of kernel launches, for streams and for graph nodes.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_LAUNCH_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_LAUNCH_H_

#include "runtime/hip_host/operation.h"

// Checks a launch of |function|, which points to a sg_host_kernel_t, and makes
// its operation, which borrows the params at |arguments|[0].
hipError_t sg_host_launch_make(const void* function, dim3 grid, dim3 block,
                               size_t shared_bytes, void* const* arguments,
                               sg_host_operation_t* out_operation);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_LAUNCH_H_
