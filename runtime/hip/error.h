// SPDX-License-Identifier: Apache-2.0
//
// The one place where errors of the HIP runtime become statuses.

#ifndef STEPGRAPH_RUNTIME_HIP_ERROR_H_
#define STEPGRAPH_RUNTIME_HIP_ERROR_H_

#include "runtime/base/status.h"
#include "runtime/hip/hip.h"

#ifdef __cplusplus
extern "C" {
#endif

// OK for hipSuccess. Running out of memory is SG_STATUS_OUT_OF_MEMORY, anything
// else SG_STATUS_DEVICE; the message names |call| and the error. The thread's
// last HIP error is cleared.
SG_MUST_USE sg_status_t sg_status_from_hip_at(const char* file, int32_t line,
                                              hipError_t error,
                                              const char* call);

#define sg_status_from_hip(error, call) \
  sg_status_from_hip_at(__FILE__, __LINE__, (error), (call))

// Calls a HIP function and returns from the caller on error:
//   SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, stream);
#define SG_RETURN_IF_HIP_ERROR(function, ...) \
  SG_RETURN_IF_ERROR(sg_status_from_hip(function(__VA_ARGS__), #function))

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_HIP_ERROR_H_
