// SPDX-License-Identifier: Apache-2.0

#include "tests/hip/conformance.h"

#include <stdio.h>

int conformance_exit_code_without_device(void) {
  int count = 0;
  if (hipGetDeviceCount(&count) == hipSuccess && count > 0) return 0;
  printf("skipped: no device\n");
  return 77;
}

int32_t* conformance_numbers(size_t count) {
  void* numbers = NULL;
  assert_hip_ok(hipMalloc(&numbers, count * sizeof(int32_t)));
  assert_hip_ok(hipMemset(numbers, 0, count * sizeof(int32_t)));
  // Not over when it returns, and streams may be non-blocking.
  assert_hip_ok(hipStreamSynchronize(NULL));
  return numbers;
}

void conformance_read(const int32_t* numbers, int32_t* out_values,
                      size_t count) {
  assert_hip_ok(hipDeviceSynchronize());
  assert_hip_ok(hipMemcpy(out_values, numbers, count * sizeof(int32_t),
                          hipMemcpyDeviceToHost));
}

static hipError_t launch(const void* handle, uint32_t grid, uint32_t block,
                         void* params, hipStream_t stream) {
  dim3 grid_size = {.x = grid, .y = 1, .z = 1};
  dim3 block_size = {.x = block, .y = 1, .z = 1};
  void* arguments[1] = {params};
  return hipLaunchKernel(handle, grid_size, block_size, arguments,
                         /*sharedMemBytes=*/0, stream);
}

hipError_t conformance_add(hipStream_t stream, int32_t* values, int32_t count,
                           int32_t addend) {
  conformance_add_params_t params = {
      .values = values, .count = count, .addend = addend};
  uint32_t threads = CONFORMANCE_ADD_THREADS;
  uint32_t grid = ((uint32_t)count + threads - 1) / threads;
  return launch(conformance_add_handle(), grid, threads, &params, stream);
}

hipError_t conformance_append(hipStream_t stream, int32_t* log, int32_t* cursor,
                              int32_t value) {
  conformance_append_params_t params = {
      .log = log, .cursor = cursor, .value = value};
  return launch(conformance_append_handle(), 1, 1, &params, stream);
}

conformance_gate_t conformance_gate_close(hipStream_t stream) {
  conformance_gate_t gate = {0};
  void* flag = NULL;
  void* device_flag = NULL;
  assert_hip_ok(hipHostMalloc(&flag, sizeof(uint32_t),
                              hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip_ok(hipHostGetDevicePointer(&device_flag, flag, /*flags=*/0));
  gate.flag = flag;
  gate.device_flag = device_flag;
  *gate.flag = 0;
  conformance_spin_params_t params = {.flag = gate.device_flag};
  assert_hip_ok(launch(conformance_spin_handle(), 1, 1, &params, stream));
  return gate;
}

void conformance_gate_open(conformance_gate_t* gate) {
  __atomic_store_n(gate->flag, 1, __ATOMIC_RELEASE);
}

void conformance_gate_destroy(conformance_gate_t* gate) {
  assert_hip_ok(hipHostFree(gate->flag));
}

static hipStream_t idle_stream;
static int32_t* idle_numbers;

void conformance_let_run(void) {
  for (int i = 0; i < 20; ++i) {
    assert_hip_ok(conformance_add(idle_stream, idle_numbers, 1, 1));
    assert_hip_ok(hipStreamSynchronize(idle_stream));
  }
}

int conformance_tear_down(void** state) {
  (void)state;
  assert_hip_ok(hipStreamDestroy(idle_stream));
  assert_hip_ok(hipFree(idle_numbers));
  return 0;
}

int conformance_set_up(void** state) {
  (void)state;
  assert_hip_ok(hipStreamCreateWithFlags(&idle_stream, hipStreamNonBlocking));
  idle_numbers = conformance_numbers(1);
  int32_t* numbers = conformance_numbers(CONFORMANCE_ADD_THREADS);
  assert_hip_ok(conformance_add(NULL, numbers, CONFORMANCE_ADD_THREADS, 1));
  assert_hip_ok(conformance_append(NULL, numbers, numbers + 32, 1));
  conformance_shared_params_t shared = {.sums = numbers, .count = 0};
  assert_hip_ok(launch(conformance_shared_handle(), 1, 1, &shared, NULL));
  conformance_gate_t gate = conformance_gate_close(NULL);
  conformance_gate_open(&gate);
  assert_hip_ok(hipMemsetAsync(numbers, 0, 64, NULL));
  assert_hip_ok(
      hipMemcpyAsync(numbers, numbers + 32, 64, hipMemcpyDeviceToDevice, NULL));
  assert_hip_ok(hipDeviceSynchronize());
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipFree(numbers));
  return 0;
}
