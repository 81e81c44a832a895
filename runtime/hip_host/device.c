// SPDX-License-Identifier: Apache-2.0
//
// Devices: which there are, what they are like, which one is current.

// For sysconf's number of CPUs.
#define _DEFAULT_SOURCE

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/hip_host.h"
#include "runtime/hip_host/runtime.h"
#include "runtime/hip_host/stream.h"

static _Thread_local int current_device;

sg_host_device_t* sg_host_thread_device(void) {
  return &sg_host_runtime.devices[current_device];
}

static bool is_device(int device) {
  return device >= 0 && device < sg_host_runtime.device_count;
}

hipError_t hipGetDeviceCount(int* count) {
  SG_HOST_CALL(hipGetDeviceCount);
  if (count == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  *count = sg_host_runtime.device_count;
  sg_host_unlock();
  return sg_host_call_end(*count > 0 ? hipSuccess : hipErrorNoDevice);
}

hipError_t hipGetDevice(int* deviceId) {
  SG_HOST_CALL(hipGetDevice);
  if (deviceId == NULL) return sg_host_call_end(hipErrorInvalidValue);
  *deviceId = current_device;
  return hipSuccess;
}

hipError_t hipSetDevice(int deviceId) {
  SG_HOST_CALL(hipSetDevice);
  sg_host_lock();
  bool exists = is_device(deviceId);
  sg_host_unlock();
  if (!exists) return sg_host_call_end(hipErrorInvalidDevice);
  current_device = deviceId;
  return hipSuccess;
}

static int cpu_count(void) { return (int)sysconf(_SC_NPROCESSORS_ONLN); }

// Copied field by field: HIP's releases order the struct differently.
static void fill_properties(const sg_host_device_t* device,
                            hipDeviceProp_t* out_properties) {
  memset(out_properties, 0, sizeof(*out_properties));
  snprintf(out_properties->name, sizeof(out_properties->name),
           "stepgraph host");
  snprintf(out_properties->gcnArchName, sizeof(out_properties->gcnArchName),
           "host");
  out_properties->totalGlobalMem = device->memory_limit_bytes;
  out_properties->sharedMemPerBlock = SG_HOST_SHARED_BYTES;
  out_properties->warpSize = 1;
  out_properties->maxThreadsPerBlock = SG_HOST_MAX_BLOCK_THREADS;
  out_properties->maxGridSize[0] = INT_MAX;
  for (int i = 0; i < 3; ++i) {
    out_properties->maxThreadsDim[i] = SG_HOST_MAX_BLOCK_THREADS;
    if (i > 0) out_properties->maxGridSize[i] = SG_HOST_MAX_GRID_YZ;
  }
  out_properties->multiProcessorCount = cpu_count();
  out_properties->concurrentKernels = 1;
  out_properties->canMapHostMemory = 1;
  out_properties->integrated = 1;
  out_properties->pciBusID = device->index;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t* prop, int deviceId) {
  SG_HOST_CALL(hipGetDeviceProperties);
  if (prop == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  bool exists = is_device(deviceId);
  if (exists) fill_properties(&sg_host_runtime.devices[deviceId], prop);
  sg_host_unlock();
  return sg_host_call_end(exists ? hipSuccess : hipErrorInvalidDevice);
}

static hipError_t get_attribute(hipDeviceAttribute_t attribute,
                                int* out_value) {
  switch (attribute) {
    case hipDeviceAttributeMultiprocessorCount:
      *out_value = cpu_count();
      return hipSuccess;
    case hipDeviceAttributeWarpSize:
    case hipDeviceAttributeConcurrentKernels:
    case hipDeviceAttributeCanMapHostMemory:
    case hipDeviceAttributeIntegrated:
      *out_value = 1;
      return hipSuccess;
    case hipDeviceAttributeMaxThreadsPerBlock:
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ:
      *out_value = SG_HOST_MAX_BLOCK_THREADS;
      return hipSuccess;
    case hipDeviceAttributeMaxGridDimX:
      *out_value = INT_MAX;
      return hipSuccess;
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ:
      *out_value = SG_HOST_MAX_GRID_YZ;
      return hipSuccess;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      *out_value = (int)SG_HOST_SHARED_BYTES;
      return hipSuccess;
    default:
      return hipErrorInvalidValue;
  }
}

hipError_t hipDeviceGetAttribute(int* pi, hipDeviceAttribute_t attr,
                                 int deviceId) {
  SG_HOST_CALL(hipDeviceGetAttribute);
  if (pi == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  bool exists = is_device(deviceId);
  sg_host_unlock();
  if (!exists) return sg_host_call_end(hipErrorInvalidDevice);
  return sg_host_call_end(get_attribute(attr, pi));
}

hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  SG_HOST_CALL(hipMemGetInfo);
  if (free == NULL || total == NULL) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  sg_host_lock();
  const sg_host_device_t* device = sg_host_thread_device();
  *total = device->memory_limit_bytes;
  // The limit may have been lowered below what is in use.
  *free = *total > device->memory_in_use_bytes
              ? *total - device->memory_in_use_bytes
              : 0;
  sg_host_unlock();
  return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int* runtimeVersion) {
  SG_HOST_CALL(hipRuntimeGetVersion);
  if (runtimeVersion == NULL) return sg_host_call_end(hipErrorInvalidValue);
  *runtimeVersion = HIP_VERSION;
  return hipSuccess;
}

hipError_t hipDriverGetVersion(int* driverVersion) {
  SG_HOST_CALL(hipDriverGetVersion);
  if (driverVersion == NULL) return sg_host_call_end(hipErrorInvalidValue);
  *driverVersion = HIP_VERSION;
  return hipSuccess;
}

hipError_t hipDeviceSynchronize(void) {
  SG_HOST_CALL(hipDeviceSynchronize);
  sg_host_lock();
  sg_host_device_t* device = sg_host_thread_device();
  hipError_t error = sg_host_capture_check_unsafe();
  if (error == hipSuccess) error = sg_host_capture_check_device(device);
  if (error == hipSuccess) error = sg_host_wait_device(device);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t sg_hip_host_set_device_count(int count) {
  if (count < 0 || count > SG_HOST_MAX_DEVICES) return hipErrorInvalidValue;
  sg_host_lock();
  sg_host_runtime.device_count = count;
  sg_host_unlock();
  return hipSuccess;
}

hipError_t sg_hip_host_set_memory_limit(int device, size_t limit_bytes) {
  sg_host_lock();
  bool exists = is_device(device);
  if (exists) sg_host_runtime.devices[device].memory_limit_bytes = limit_bytes;
  sg_host_unlock();
  return exists ? hipSuccess : hipErrorInvalidDevice;
}

size_t sg_hip_host_memory_in_use(int device) {
  size_t bytes = 0;
  sg_host_lock();
  if (is_device(device)) {
    bytes = sg_host_runtime.devices[device].memory_in_use_bytes;
  }
  sg_host_unlock();
  return bytes;
}
