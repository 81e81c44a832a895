// SPDX-License-Identifier: Apache-2.0

#include "tests/hip/conformance_kernels.h"

#if defined(__CUDACC__)
#include <hip/hip_runtime.h>
#define DEVICE_FUNCTION static __device__ __forceinline__
#define DYNAMIC_SHARED(name) extern __shared__ int32_t name[]
DEVICE_FUNCTION int32_t thread_index() { return (int32_t)threadIdx.x; }
DEVICE_FUNCTION int32_t block_index() { return (int32_t)blockIdx.x; }
#else
#include <hip/hip_runtime_api.h>
#define DEVICE_FUNCTION static __attribute__((device, always_inline)) inline
#define DYNAMIC_SHARED(name) extern __attribute__((shared)) int32_t name[]
DEVICE_FUNCTION int32_t thread_index() {
  return (int32_t)__builtin_amdgcn_workitem_id_x();
}
DEVICE_FUNCTION int32_t block_index() {
  return (int32_t)__builtin_amdgcn_workgroup_id_x();
}
#endif

extern "C" __global__ void conformance_add_kernel(
    conformance_add_params_t params) {
  int32_t i = block_index() * CONFORMANCE_ADD_THREADS + thread_index();
  if (i < params.count) params.values[i] += params.addend;
}

extern "C" __global__ void conformance_spin_kernel(
    conformance_spin_params_t params) {
  // A read of the host's memory takes about a microsecond.
  for (int32_t reads = 0; reads < 10000000; ++reads) {
    if (*params.flag != 0) return;
  }
}

extern "C" __global__ void conformance_append_kernel(
    conformance_append_params_t params) {
  params.log[(*params.cursor)++] = params.value;
}

extern "C" __global__ void conformance_shared_kernel(
    conformance_shared_params_t params) {
  DYNAMIC_SHARED(numbers);
  int32_t factor = block_index() + 1;
  for (int32_t i = 0; i < params.count; ++i) numbers[i] = factor * i;
  int32_t sum = 0;
  for (int32_t i = 0; i < params.count; ++i) sum += numbers[i];
  params.sums[block_index()] = sum;
}

extern "C" const void* conformance_add_handle(void) {
  return (const void*)conformance_add_kernel;
}
extern "C" const void* conformance_spin_handle(void) {
  return (const void*)conformance_spin_kernel;
}
extern "C" const void* conformance_append_handle(void) {
  return (const void*)conformance_append_kernel;
}
extern "C" const void* conformance_shared_handle(void) {
  return (const void*)conformance_shared_kernel;
}
