// SPDX-License-Identifier: Apache-2.0
//
// A tensor on the host and on the device, for tests that run kernels on a
// stream of whatever flavour.

#ifndef STEPGRAPH_TESTS_KERNELS_DEVICE_TENSOR_H_
#define STEPGRAPH_TESTS_KERNELS_DEVICE_TENSOR_H_

#include <stdlib.h>
#include <string.h>

#include "runtime/hip/hip.h"
#include "runtime/hip/launch.h"
#include "tests/check.h"
#include "tests/device_memory.h"

typedef struct device_tensor_t {
  void* host;
  void* device;
  size_t bytes;
} device_tensor_t;

// All bytes 0xff: a NaN in each dtype, -1 in integers.
static inline device_tensor_t device_tensor_create(size_t bytes) {
  device_tensor_t tensor = {.host = malloc(bytes), .bytes = bytes};
  assert_non_null(tensor.host);
  memset(tensor.host, 0xff, bytes);
  tensor.device = device_allocate(bytes, 0xff);
  return tensor;
}

static inline void device_tensor_destroy(device_tensor_t* tensor) {
  free(tensor->host);
  assert_hip(hipFree(tensor->device));
}

static inline void device_tensor_upload(const device_tensor_t* tensor) {
  device_upload(tensor->device, tensor->host, tensor->bytes);
}

static inline void device_tensor_download(const device_tensor_t* tensor) {
  assert_hip(hipMemcpy(tensor->host, tensor->device, tensor->bytes,
                       hipMemcpyDeviceToHost));
}

// Exits with 77, which means skipped, where there is no device.
static inline void device_require(void) {
  int count = 0;
  if (hipGetDeviceCount(&count) != hipSuccess || count == 0) exit(77);
}

// A stream of device 0.
static inline sg_enqueue_t device_stream_create(void) {
  sg_enqueue_t where = {0};
  assert_ok(sg_target_of_device(/*device=*/0, &where.target));
  assert_hip(hipStreamCreate(&where.stream));
  return where;
}

static inline void device_stream_destroy(const sg_enqueue_t* where) {
  assert_hip(hipStreamDestroy(where->stream));
}

#endif  // STEPGRAPH_TESTS_KERNELS_DEVICE_TENSOR_H_
