// SPDX-License-Identifier: Apache-2.0

#include "tests/runtime/toy_kernel.h"

#if defined(__CUDACC__)
#include <hip/hip_runtime.h>
#define DEVICE_FUNCTION static __device__ __forceinline__
DEVICE_FUNCTION int32_t thread_index() { return (int32_t)threadIdx.x; }
DEVICE_FUNCTION int32_t block_index() { return (int32_t)blockIdx.x; }
#else
#include <hip/hip_runtime_api.h>
#define DEVICE_FUNCTION static __attribute__((device, always_inline)) inline
DEVICE_FUNCTION int32_t thread_index() {
  return (int32_t)__builtin_amdgcn_workitem_id_x();
}
DEVICE_FUNCTION int32_t block_index() {
  return (int32_t)__builtin_amdgcn_workgroup_id_x();
}
#endif

DEVICE_FUNCTION void run_sequence(const toy_params_t& p, int32_t n) {
  int32_t slot = p.slots[n];
  int32_t begin = p.query_start_loc[n];
  int32_t end = p.query_start_loc[n + 1];
  if (begin == end) return;
  if (slot < 0 || slot == p.null_slot) {
    for (int32_t t = begin; t < end; ++t) p.o[t] = 0;
    return;
  }
  uint64_t value = p.computed_lens[n] > 0 ? p.state[slot] : 0;
  for (int32_t t = begin; t < end; ++t) {
    value = value * TOY_MULTIPLIER + p.x[t];
    p.o[t] = value;
  }
  p.state[slot] = value;
}

extern "C" __global__ void toy_layer_kernel(toy_params_t p) {
  if (thread_index() != 0) return;
  int32_t n = block_index();
  if (p.counts->error_code != SG_STEP_ERROR_NONE) {
    if (n > 0) return;
    for (int32_t t = 0; t < p.token_capacity; ++t) p.o[t] = 0;
    return;
  }
  if (n < p.counts->sequence_count) run_sequence(p, n);
}

extern "C" __global__ void gate_kernel(gate_params_t p) {
  volatile const uint64_t* flag = p.flag;
  while (*flag == 0) {
  }
}

extern "C" __global__ void add_one_kernel(add_one_params_t p) { ++*p.counter; }

extern "C" const void* add_one_handle(void) {
  return (const void*)add_one_kernel;
}

extern "C" const void* toy_layer_handle(void) {
  return (const void*)toy_layer_kernel;
}

extern "C" const void* gate_handle(void) { return (const void*)gate_kernel; }
