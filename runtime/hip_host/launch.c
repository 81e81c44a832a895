// SPDX-License-Identifier: Apache-2.0
//
// Kernel launches and host functions.

#include "runtime/hip_host/launch.h"

#include <limits.h>
#include <string.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/stream.h"

static hipError_t check_grid(dim3 grid, dim3 block) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return hipErrorInvalidConfiguration;
  }
  if (grid.x > INT_MAX || grid.y > SG_HOST_MAX_GRID_YZ ||
      grid.z > SG_HOST_MAX_GRID_YZ) {
    return hipErrorInvalidConfiguration;
  }
  // HIP counts the threads along an axis in 32 bits.
  if ((uint64_t)grid.x * block.x > UINT32_MAX) {
    return hipErrorInvalidConfiguration;
  }
  // A host kernel sees its position along x only.
  return grid.y == 1 && grid.z == 1 ? hipSuccess : hipErrorNotSupported;
}

static hipError_t check_block(dim3 block) {
  const uint32_t limit = SG_HOST_MAX_BLOCK_THREADS;
  bool fits = block.x <= limit && block.y <= limit && block.z <= limit;
  uint64_t threads = (uint64_t)block.x * block.y * block.z;
  return fits && threads > 0 && threads <= limit ? hipSuccess
                                                 : hipErrorInvalidConfiguration;
}

hipError_t sg_host_launch_make(const void* function, dim3 grid, dim3 block,
                               size_t shared_bytes, void* const* arguments,
                               sg_host_operation_t* out_operation) {
  const sg_host_kernel_t* kernel = function;
  if (kernel == NULL) return hipErrorInvalidDeviceFunction;
  SG_HOST_RETURN_IF_ERROR(check_block(block));
  SG_HOST_RETURN_IF_ERROR(check_grid(grid, block));
  if (shared_bytes > SG_HOST_SHARED_BYTES) return hipErrorInvalidValue;
  const void* params = NULL;
  if (kernel->params_bytes > 0) {
    if (arguments == NULL || arguments[0] == NULL) return hipErrorInvalidValue;
    if (kernel->params_bytes > SG_HOST_PARAMS_CAPACITY_BYTES) {
      return hipErrorInvalidValue;
    }
    params = arguments[0];
  }
  *out_operation =
      (sg_host_operation_t){.kind = SG_HOST_OPERATION_KERNEL,
                            .launch = {.kernel = kernel,
                                       .grid = grid.x,
                                       .block = {block.x, block.y, block.z},
                                       .shared_bytes = (uint32_t)shared_bytes,
                                       .params = params}};
  return hipSuccess;
}

hipError_t hipLaunchKernel(const void* function_address, dim3 numBlocks,
                           dim3 dimBlocks, void** args, size_t sharedMemBytes,
                           hipStream_t stream) {
  SG_HOST_CALL(hipLaunchKernel);
  sg_host_operation_t operation;
  hipError_t error = sg_host_launch_make(function_address, numBlocks, dimBlocks,
                                         sharedMemBytes, args, &operation);
  if (error != hipSuccess) return sg_host_call_end(error);
  sg_host_lock();
  sg_host_stream_t* found = sg_host_stream_find(stream);
  error = found == NULL ? hipErrorInvalidHandle
                        : sg_host_stream_submit(found, &operation);
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t launch_host_function(sg_host_stream_t* stream,
                                       const sg_host_operation_t* operation) {
  if (stream == NULL) return hipErrorInvalidHandle;
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_refuse(stream));
  return sg_host_stream_submit(stream, operation);
}

// Host functions run in eager streams only; no graph may hold one.
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn,
                             void* userData) {
  SG_HOST_CALL(hipLaunchHostFunc);
  if (fn == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_operation_t operation = {.kind = SG_HOST_OPERATION_CALL,
                                   .call = {.function = fn, .data = userData}};
  sg_host_lock();
  hipError_t error =
      launch_host_function(sg_host_stream_find(stream), &operation);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipFuncGetAttributes(struct hipFuncAttributes* attr,
                                const void* func) {
  SG_HOST_CALL(hipFuncGetAttributes);
  if (attr == NULL) return sg_host_call_end(hipErrorInvalidValue);
  if (func == NULL) return sg_host_call_end(hipErrorInvalidDeviceFunction);
  memset(attr, 0, sizeof(*attr));
  attr->maxThreadsPerBlock = SG_HOST_MAX_BLOCK_THREADS;
  attr->maxDynamicSharedSizeBytes = (int)SG_HOST_SHARED_BYTES;
  return hipSuccess;
}

hipError_t hipFuncSetAttribute(const void* func, hipFuncAttribute attr,
                               int value) {
  SG_HOST_CALL(hipFuncSetAttribute);
  if (func == NULL) return sg_host_call_end(hipErrorInvalidDeviceFunction);
  bool fits = attr != hipFuncAttributeMaxDynamicSharedMemorySize ||
              (value >= 0 && (size_t)value <= SG_HOST_SHARED_BYTES);
  return sg_host_call_end(fits ? hipSuccess : hipErrorInvalidValue);
}
