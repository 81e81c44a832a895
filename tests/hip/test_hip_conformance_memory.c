// SPDX-License-Identifier: Apache-2.0
//
// Devices, memory, copies and kernel launches as HIP and CUDA document them.

#include <string.h>

#include "tests/hip/conformance.h"

static void test_device_describes_itself(void** state) {
  (void)state;
  int count = 0;
  assert_hip_ok(hipGetDeviceCount(&count));
  hipDeviceProp_t properties;
  assert_hip_ok(hipGetDeviceProperties(&properties, 0));
  assert_true(properties.totalGlobalMem > 0);
  assert_true(properties.maxThreadsPerBlock >= 1024);
  int processors = 0;
  assert_hip_ok(hipDeviceGetAttribute(
      &processors, hipDeviceAttributeMultiprocessorCount, 0));
  assert_int_equal(processors, properties.multiProcessorCount);
  assert_hip(hipErrorInvalidDevice, hipSetDevice(count));
  assert_hip(hipErrorInvalidDevice, hipGetLastError());
}

static void test_last_error_is_kept_until_read(void** state) {
  (void)state;
  (void)hipGetLastError();
  assert_hip(hipErrorInvalidDevice, hipSetDevice(-1));
  assert_hip(hipErrorInvalidDevice, hipPeekAtLastError());
  assert_hip(hipErrorInvalidDevice, hipGetLastError());
  assert_hip_ok(hipGetLastError());
}

static void test_allocation_of_nothing_and_of_too_much(void** state) {
  (void)state;
  void* pointer = &pointer;
  assert_hip_ok(hipMalloc(&pointer, 0));
  assert_null(pointer);
  assert_hip_ok(hipFree(NULL));
  assert_hip(hipErrorOutOfMemory, hipMalloc(&pointer, (size_t)1 << 50));
  (void)hipGetLastError();
}

static void test_free_of_an_unknown_pointer_fails(void** state) {
  (void)state;
  int local = 0;
  assert_hip(hipErrorInvalidValue, hipFree(&local));
  (void)hipGetLastError();
}

static void test_memory_in_use_is_told(void** state) {
  (void)state;
  const size_t bytes = (size_t)64 << 20;
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  void* pointer = NULL;
  assert_hip_ok(hipMemGetInfo(&before, &total));
  assert_hip_ok(hipMalloc(&pointer, bytes));
  assert_hip_ok(hipMemGetInfo(&after, &total));
  assert_true(after < before);
  assert_true(before <= total);
  assert_hip_ok(hipFree(pointer));
}

static void test_copies_go_round(void** state) {
  (void)state;
  int32_t values[100];
  int32_t back[100] = {0};
  for (int32_t i = 0; i < 100; ++i) values[i] = i * i;
  int32_t* first = conformance_numbers(100);
  int32_t* second = conformance_numbers(100);
  assert_hip_ok(
      hipMemcpy(first, values, sizeof(values), hipMemcpyHostToDevice));
  assert_hip_ok(
      hipMemcpy(second, first, sizeof(values), hipMemcpyDeviceToDevice));
  assert_hip_ok(hipMemcpy(back, second, sizeof(values), hipMemcpyDefault));
  assert_memory_equal(back, values, sizeof(values));
  assert_hip_ok(hipFree(first));
  assert_hip_ok(hipFree(second));
}

static void test_fill_touches_its_range_only(void** state) {
  (void)state;
  unsigned char bytes[64];
  int32_t* numbers = conformance_numbers(16);
  assert_hip_ok(hipMemsetAsync((char*)numbers + 3, 0x1A5, 50, NULL));
  conformance_read(numbers, (int32_t*)(void*)bytes, 16);
  for (size_t i = 0; i < sizeof(bytes); ++i) {
    assert_int_equal(bytes[i], i >= 3 && i < 53 ? 0xA5 : 0);
  }
  assert_hip_ok(hipFree(numbers));
}

static void test_copy_of_rows(void** state) {
  (void)state;
  int32_t values[12];
  int32_t back[20] = {0};
  for (int32_t i = 0; i < 12; ++i) values[i] = i + 1;
  int32_t* numbers = conformance_numbers(20);
  assert_hip_ok(hipMemcpy2DAsync(numbers, 5 * sizeof(int32_t), values,
                                 3 * sizeof(int32_t), 2 * sizeof(int32_t), 4,
                                 hipMemcpyHostToDevice, NULL));
  conformance_read(numbers, back, 20);
  for (int32_t i = 0; i < 20; ++i) {
    int32_t row = i / 5;
    int32_t column = i % 5;
    assert_int_equal(back[i], column < 2 ? row * 3 + column + 1 : 0);
  }
  assert_hip_ok(hipFree(numbers));
}

static void test_pageable_source_is_free_after_return(void** state) {
  (void)state;
  enum { COUNT = 1 << 18 };
  static int32_t values[COUNT];
  hipStream_t stream;
  assert_hip_ok(hipStreamCreate(&stream));
  int32_t* numbers = conformance_numbers(COUNT);
  for (int32_t i = 0; i < COUNT; ++i) values[i] = i;
  assert_hip_ok(hipMemcpyAsync(numbers, values, sizeof(values),
                               hipMemcpyHostToDevice, stream));
  memset(values, 0xFF, sizeof(values));
  assert_hip_ok(hipStreamSynchronize(stream));
  conformance_read(numbers, values, COUNT);
  for (int32_t i = 0; i < COUNT; ++i) assert_int_equal(values[i], i);
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipFree(numbers));
}

static void test_kernels_reach_mapped_host_memory(void** state) {
  (void)state;
  void* host = NULL;
  void* device = NULL;
  assert_hip_ok(hipHostMalloc(&host, 100 * sizeof(int32_t),
                              hipHostMallocMapped | hipHostMallocPortable));
  assert_hip_ok(hipHostGetDevicePointer(&device, host, /*flags=*/0));
  int32_t* values = host;
  for (int32_t i = 0; i < 100; ++i) values[i] = i;
  assert_hip_ok(conformance_add(NULL, device, 100, 5));
  assert_hip_ok(hipDeviceSynchronize());
  for (int32_t i = 0; i < 100; ++i) assert_int_equal(values[i], i + 5);
  assert_hip_ok(hipHostFree(host));
}

static void test_every_block_runs_once(void** state) {
  (void)state;
  enum { COUNT = 100 * CONFORMANCE_ADD_THREADS - 7 };
  static int32_t values[COUNT];
  int32_t* numbers = conformance_numbers(COUNT);
  for (int32_t i = 1; i <= 20; ++i) {
    assert_hip_ok(conformance_add(NULL, numbers, COUNT, i));
  }
  conformance_read(numbers, values, COUNT);
  for (size_t i = 0; i < COUNT; ++i) assert_int_equal(values[i], 210);
  assert_hip_ok(hipFree(numbers));
}

static void test_blocks_have_shared_memory_of_their_own(void** state) {
  (void)state;
  enum { BLOCKS = 512, COUNT = 2048 };
  int32_t sums[BLOCKS];
  int32_t* numbers = conformance_numbers(BLOCKS);
  conformance_shared_params_t params = {.sums = numbers, .count = COUNT};
  void* arguments[1] = {&params};
  dim3 grid = {.x = BLOCKS, .y = 1, .z = 1};
  dim3 block = {.x = 1, .y = 1, .z = 1};
  assert_hip_ok(hipLaunchKernel(conformance_shared_handle(), grid, block,
                                arguments, COUNT * sizeof(int32_t), NULL));
  conformance_read(numbers, sums, BLOCKS);
  for (int32_t i = 0; i < BLOCKS; ++i) {
    assert_int_equal(sums[i], (i + 1) * (COUNT * (COUNT - 1) / 2));
  }
  assert_hip_ok(hipFree(numbers));
}

// HIP has an error for configurations; CUDA has it too, but for some limits it
// returns hipErrorInvalidValue.
static void assert_refused(dim3 grid, dim3 block) {
  conformance_append_params_t params = {0};
  void* arguments[1] = {&params};
  hipError_t error = hipLaunchKernel(conformance_append_handle(), grid, block,
                                     arguments, /*sharedMemBytes=*/0, NULL);
  assert_true(error == hipErrorInvalidConfiguration ||
              error == hipErrorInvalidValue);
  assert_hip(error, hipGetLastError());
}

static void test_launches_beyond_the_limits_are_refused(void** state) {
  (void)state;
  dim3 one = {.x = 1, .y = 1, .z = 1};
  assert_refused((dim3){.x = 0, .y = 1, .z = 1}, one);
  assert_refused((dim3){.x = 1, .y = 65536, .z = 1}, one);
  assert_refused((dim3){.x = 1, .y = 1, .z = 65536}, one);
  assert_refused(one, (dim3){.x = 0, .y = 1, .z = 1});
  assert_refused(one, (dim3){.x = 1025, .y = 1, .z = 1});
  assert_refused(one, (dim3){.x = 512, .y = 4, .z = 1});
  assert_hip_ok(hipDeviceSynchronize());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_device_describes_itself),
      cmocka_unit_test(test_last_error_is_kept_until_read),
      cmocka_unit_test(test_allocation_of_nothing_and_of_too_much),
      cmocka_unit_test(test_free_of_an_unknown_pointer_fails),
      cmocka_unit_test(test_memory_in_use_is_told),
      cmocka_unit_test(test_copies_go_round),
      cmocka_unit_test(test_fill_touches_its_range_only),
      cmocka_unit_test(test_copy_of_rows),
      cmocka_unit_test(test_pageable_source_is_free_after_return),
      cmocka_unit_test(test_kernels_reach_mapped_host_memory),
      cmocka_unit_test(test_every_block_runs_once),
      cmocka_unit_test(test_blocks_have_shared_memory_of_their_own),
      cmocka_unit_test(test_launches_beyond_the_limits_are_refused),
  };
  int skip = conformance_exit_code_without_device();
  if (skip != 0) return skip;
  return cmocka_run_group_tests(tests, conformance_set_up,
                                conformance_tear_down);
}
