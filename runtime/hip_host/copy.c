// SPDX-License-Identifier: Apache-2.0
//
// Copies and fills.

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/memory.h"
#include "runtime/hip_host/stream.h"

static sg_host_operation_t make_copy(void* target, const void* source,
                                     size_t bytes, hipMemcpyKind kind) {
  return (sg_host_operation_t){.kind = SG_HOST_OPERATION_COPY,
                               .copy = {.target = target,
                                        .target_pitch_bytes = bytes,
                                        .source = source,
                                        .source_pitch_bytes = bytes,
                                        .width_bytes = bytes,
                                        .height = 1,
                                        .kind = kind}};
}

static sg_host_operation_t make_fill(void* target, uint32_t value,
                                     uint32_t element_bytes, size_t count) {
  return (sg_host_operation_t){.kind = SG_HOST_OPERATION_FILL,
                               .fill = {.target = target,
                                        .value = value,
                                        .element_bytes = element_bytes,
                                        .width = count,
                                        .height = 1}};
}

// Pageable memory is read and written before the call returns, so that the
// caller may do as it likes with it.
static hipError_t copy_async(const sg_host_operation_t* operation,
                             hipStream_t handle) {
  sg_host_stream_t* stream = sg_host_stream_find(handle);
  if (stream == NULL) return hipErrorInvalidHandle;
  bool is_pageable = false;
  SG_HOST_RETURN_IF_ERROR(
      sg_host_memory_check_copy(&operation->copy, &is_pageable));
  if (!is_pageable) return sg_host_stream_submit(stream, operation);
  sg_host_count_pageable_copy();
  if (sg_host_runtime.strict) {
    SG_HOST_RETURN_IF_ERROR(sg_host_capture_refuse(stream));
    SG_HOST_RETURN_IF_ERROR(sg_host_capture_check_own_thread());
  }
  bool is_capturing = stream->capture != NULL;
  SG_HOST_RETURN_IF_ERROR(sg_host_stream_submit(stream, operation));
  if (is_capturing) return hipSuccess;
  return sg_host_wait_ticket(stream, stream->submitted);
}

// The null stream's, and over when the call returns.
static hipError_t copy_now(const sg_host_operation_t* operation) {
  sg_host_stream_t* stream = sg_host_stream_find(NULL);
  bool is_pageable = false;
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_check_unsafe());
  SG_HOST_RETURN_IF_ERROR(
      sg_host_memory_check_copy(&operation->copy, &is_pageable));
  SG_HOST_RETURN_IF_ERROR(sg_host_stream_submit(stream, operation));
  return sg_host_wait_ticket(stream, stream->submitted);
}

hipError_t hipMemcpy(void* dst, const void* src, size_t sizeBytes,
                     hipMemcpyKind kind) {
  SG_HOST_CALL(hipMemcpy);
  sg_host_operation_t operation = make_copy(dst, src, sizeBytes, kind);
  sg_host_lock();
  hipError_t error = copy_now(&operation);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipMemcpyAsync(void* dst, const void* src, size_t sizeBytes,
                          hipMemcpyKind kind, hipStream_t stream) {
  SG_HOST_CALL(hipMemcpyAsync);
  sg_host_operation_t operation = make_copy(dst, src, sizeBytes, kind);
  sg_host_lock();
  hipError_t error = copy_async(&operation, stream);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipMemcpy2DAsync(void* dst, size_t dpitch, const void* src,
                            size_t spitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream) {
  SG_HOST_CALL(hipMemcpy2DAsync);
  sg_host_operation_t operation = make_copy(dst, src, width, kind);
  operation.copy.target_pitch_bytes = dpitch;
  operation.copy.source_pitch_bytes = spitch;
  operation.copy.height = height;
  sg_host_lock();
  hipError_t error = copy_async(&operation, stream);
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t fill_async(const sg_host_operation_t* operation,
                             hipStream_t handle) {
  sg_host_stream_t* stream = sg_host_stream_find(handle);
  if (stream == NULL) return hipErrorInvalidHandle;
  SG_HOST_RETURN_IF_ERROR(sg_host_memory_check_fill(&operation->fill));
  return sg_host_stream_submit(stream, operation);
}

// The null stream's. As on GPUs only memory of the host is filled when the call
// returns: who does not wait for the rest must not get away with it here.
static hipError_t fill_null_stream(const sg_host_operation_t* operation) {
  sg_host_stream_t* stream = sg_host_stream_find(NULL);
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_check_unsafe());
  SG_HOST_RETURN_IF_ERROR(fill_async(operation, NULL));
  if (!sg_host_memory_is_pinned(operation->fill.target)) return hipSuccess;
  return sg_host_wait_ticket(stream, stream->submitted);
}

hipError_t hipMemset(void* dst, int value, size_t sizeBytes) {
  SG_HOST_CALL(hipMemset);
  sg_host_operation_t operation =
      make_fill(dst, (uint32_t)value, /*element_bytes=*/1, sizeBytes);
  sg_host_lock();
  hipError_t error = fill_null_stream(&operation);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipMemsetAsync(void* dst, int value, size_t sizeBytes,
                          hipStream_t stream) {
  SG_HOST_CALL(hipMemsetAsync);
  sg_host_operation_t operation =
      make_fill(dst, (uint32_t)value, /*element_bytes=*/1, sizeBytes);
  sg_host_lock();
  hipError_t error = fill_async(&operation, stream);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count,
                             hipStream_t stream) {
  SG_HOST_CALL(hipMemsetD32Async);
  if ((uintptr_t)dst % sizeof(uint32_t) != 0) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  sg_host_operation_t operation =
      make_fill(dst, (uint32_t)value, /*element_bytes=*/4, count);
  sg_host_lock();
  hipError_t error = fill_async(&operation, stream);
  sg_host_unlock();
  return sg_host_call_end(error);
}
