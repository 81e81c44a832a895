// SPDX-License-Identifier: Apache-2.0
//
// Device memory as tests fill it. hipMemset, and hipMemcpy from memory that is
// not pinned, may return before the device has done their work, and a
// non-blocking stream does not wait for the null stream, which they run in:
// these return when it is done.

#ifndef STEPGRAPH_TESTS_DEVICE_MEMORY_H_
#define STEPGRAPH_TESTS_DEVICE_MEMORY_H_

#include "runtime/hip/hip.h"
#include "tests/check.h"

static inline void device_fill(void* memory, int byte, size_t bytes) {
  assert_hip(hipMemset(memory, byte, bytes));
  assert_hip(hipStreamSynchronize(NULL));
}

// Memory for hipFree, filled.
static inline void* device_allocate(size_t bytes, int byte) {
  void* memory = NULL;
  assert_hip(hipMalloc(&memory, bytes));
  device_fill(memory, byte, bytes);
  return memory;
}

static inline void device_upload(void* memory, const void* data, size_t bytes) {
  if (bytes == 0) return;
  assert_hip(hipMemcpy(memory, data, bytes, hipMemcpyHostToDevice));
  assert_hip(hipStreamSynchronize(NULL));
}

#endif  // STEPGRAPH_TESTS_DEVICE_MEMORY_H_
