// SPDX-License-Identifier: Apache-2.0
//
// What every HIP function does first and last: it is counted, an ordered
// failure strikes, and its error becomes the thread's last error.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_CALLS_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_CALLS_H_

#include <stdint.h>

#include "runtime/hip/hip.h"

// What a function is counted as besides a call.
enum {
  SG_HOST_PLAIN = 0,
  SG_HOST_WAIT = 1,
  SG_HOST_QUERY = 2,
  SG_HOST_ALLOCATION = 4,
};

// Every HIP function of this runtime.
#define SG_HOST_CALLS(X)                            \
  X(hipDeviceGetAttribute, SG_HOST_PLAIN)           \
  X(hipDeviceSynchronize, SG_HOST_WAIT)             \
  X(hipDriverGetVersion, SG_HOST_PLAIN)             \
  X(hipEventCreate, SG_HOST_PLAIN)                  \
  X(hipEventCreateWithFlags, SG_HOST_PLAIN)         \
  X(hipEventDestroy, SG_HOST_PLAIN)                 \
  X(hipEventElapsedTime, SG_HOST_PLAIN)             \
  X(hipEventQuery, SG_HOST_QUERY)                   \
  X(hipEventRecord, SG_HOST_PLAIN)                  \
  X(hipEventSynchronize, SG_HOST_WAIT)              \
  X(hipFree, SG_HOST_WAIT | SG_HOST_ALLOCATION)     \
  X(hipFreeAsync, SG_HOST_ALLOCATION)               \
  X(hipFuncGetAttributes, SG_HOST_PLAIN)            \
  X(hipFuncSetAttribute, SG_HOST_PLAIN)             \
  X(hipGetDevice, SG_HOST_PLAIN)                    \
  X(hipGetDeviceCount, SG_HOST_PLAIN)               \
  X(hipGetDeviceProperties, SG_HOST_PLAIN)          \
  X(hipGetLastError, SG_HOST_PLAIN)                 \
  X(hipGraphAddDependencies, SG_HOST_PLAIN)         \
  X(hipGraphAddEmptyNode, SG_HOST_PLAIN)            \
  X(hipGraphAddHostNode, SG_HOST_PLAIN)             \
  X(hipGraphAddKernelNode, SG_HOST_PLAIN)           \
  X(hipGraphAddMemcpyNode1D, SG_HOST_PLAIN)         \
  X(hipGraphAddMemsetNode, SG_HOST_PLAIN)           \
  X(hipGraphClone, SG_HOST_PLAIN)                   \
  X(hipGraphCreate, SG_HOST_PLAIN)                  \
  X(hipGraphDestroy, SG_HOST_PLAIN)                 \
  X(hipGraphExecDestroy, SG_HOST_PLAIN)             \
  X(hipGraphGetEdges, SG_HOST_PLAIN)                \
  X(hipGraphGetNodes, SG_HOST_PLAIN)                \
  X(hipGraphGetRootNodes, SG_HOST_PLAIN)            \
  X(hipGraphInstantiate, SG_HOST_PLAIN)             \
  X(hipGraphInstantiateWithFlags, SG_HOST_PLAIN)    \
  X(hipGraphKernelNodeGetParams, SG_HOST_PLAIN)     \
  X(hipGraphLaunch, SG_HOST_PLAIN)                  \
  X(hipGraphMemcpyNodeGetParams, SG_HOST_PLAIN)     \
  X(hipGraphMemsetNodeGetParams, SG_HOST_PLAIN)     \
  X(hipGraphNodeGetDependencies, SG_HOST_PLAIN)     \
  X(hipGraphNodeGetDependentNodes, SG_HOST_PLAIN)   \
  X(hipGraphNodeGetType, SG_HOST_PLAIN)             \
  X(hipHostFree, SG_HOST_WAIT | SG_HOST_ALLOCATION) \
  X(hipHostGetDevicePointer, SG_HOST_PLAIN)         \
  X(hipHostMalloc, SG_HOST_ALLOCATION)              \
  X(hipLaunchHostFunc, SG_HOST_PLAIN)               \
  X(hipLaunchKernel, SG_HOST_PLAIN)                 \
  X(hipMalloc, SG_HOST_ALLOCATION)                  \
  X(hipMallocAsync, SG_HOST_ALLOCATION)             \
  X(hipMemGetInfo, SG_HOST_PLAIN)                   \
  X(hipMemcpy, SG_HOST_WAIT)                        \
  X(hipMemcpy2DAsync, SG_HOST_PLAIN)                \
  X(hipMemcpyAsync, SG_HOST_PLAIN)                  \
  X(hipMemset, SG_HOST_WAIT)                        \
  X(hipMemsetAsync, SG_HOST_PLAIN)                  \
  X(hipMemsetD32Async, SG_HOST_PLAIN)               \
  X(hipPeekAtLastError, SG_HOST_PLAIN)              \
  X(hipPointerGetAttributes, SG_HOST_PLAIN)         \
  X(hipRuntimeGetVersion, SG_HOST_PLAIN)            \
  X(hipSetDevice, SG_HOST_PLAIN)                    \
  X(hipStreamBeginCapture, SG_HOST_PLAIN)           \
  X(hipStreamCreate, SG_HOST_PLAIN)                 \
  X(hipStreamCreateWithFlags, SG_HOST_PLAIN)        \
  X(hipStreamCreateWithPriority, SG_HOST_PLAIN)     \
  X(hipStreamDestroy, SG_HOST_PLAIN)                \
  X(hipStreamEndCapture, SG_HOST_PLAIN)             \
  X(hipStreamGetCaptureInfo, SG_HOST_PLAIN)         \
  X(hipStreamGetCaptureInfo_v2, SG_HOST_PLAIN)      \
  X(hipStreamIsCapturing, SG_HOST_PLAIN)            \
  X(hipStreamQuery, SG_HOST_QUERY)                  \
  X(hipStreamSynchronize, SG_HOST_WAIT)             \
  X(hipStreamWaitEvent, SG_HOST_PLAIN)              \
  X(hipThreadExchangeStreamCaptureMode, SG_HOST_PLAIN)

typedef enum sg_host_call_t {
#define SG_HOST_CALL_ENUMERATOR(name, kind) SG_HOST_CALL_##name,
  SG_HOST_CALLS(SG_HOST_CALL_ENUMERATOR)
#undef SG_HOST_CALL_ENUMERATOR
      SG_HOST_CALL_COUNT
} sg_host_call_t;

// Counts |call|. Returns the error of an ordered failure, which is then the
// thread's last error, or hipSuccess.
hipError_t sg_host_call_begin(sg_host_call_t call);

// Keeps |error| as the thread's last error unless it is hipSuccess; returns it.
hipError_t sg_host_call_end(hipError_t error);

// First statement of the HIP function |name|.
#define SG_HOST_CALL(name)                                          \
  do {                                                              \
    hipError_t injected_ = sg_host_call_begin(SG_HOST_CALL_##name); \
    if (injected_ != hipSuccess) return injected_;                  \
  } while (0)

#define SG_HOST_RETURN_IF_ERROR(expression)  \
  do {                                       \
    hipError_t error_ = (expression);        \
    if (error_ != hipSuccess) return error_; \
  } while (0)

// Withdraws all orders of sg_hip_host_fail_calls.
void sg_host_calls_reset_failures(void);

// Counters that belong to no single function.
void sg_host_count_pageable_copy(void);
void sg_host_count_pool_growth(void);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_CALLS_H_
