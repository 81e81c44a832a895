// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous faults of a device, made to order.

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/hip_host.h"
#include "runtime/hip_host/stream.h"

static hipError_t enqueue_fault(sg_host_stream_t* stream, hipError_t error) {
  if (stream == NULL) return hipErrorInvalidHandle;
  if (stream->capture != NULL) return hipErrorStreamCaptureUnsupported;
  sg_host_command_t* command = sg_host_stream_prepare(SG_HOST_COMMAND_FAULT);
  if (command == NULL) return hipErrorOutOfMemory;
  command->fault.error = error;
  sg_host_stream_append(stream, command);
  return hipSuccess;
}

hipError_t sg_hip_host_enqueue_fault(hipStream_t stream, hipError_t error) {
  sg_host_lock();
  hipError_t result = enqueue_fault(sg_host_stream_find(stream), error);
  sg_host_unlock();
  return result;
}

void sg_hip_host_reset_faults(void) {
  sg_host_calls_reset_failures();
  sg_host_lock();
  for (int i = 0; i < SG_HOST_MAX_DEVICES; ++i) {
    sg_host_device_t* device = &sg_host_runtime.devices[i];
    // What the fault was to stop must not run after all.
    (void)sg_host_wait_device(device);
    device->fault = hipSuccess;
  }
  sg_host_unlock();
}
