// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/event.h"

#include <stdlib.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/handle.h"
#include "runtime/hip_host/stream.h"

static sg_host_event_t* find_event(hipEvent_t handle) {
  return sg_host_handle_find(SG_HOST_EVENT, handle);
}

void sg_host_event_happen(sg_host_event_t* event,
                          const sg_host_stream_t* stream, uint64_t ticket) {
  // Recorded again meanwhile: the time of the older record is of no interest.
  if (event->stream != stream || event->ticket != ticket) return;
  event->timestamp_ns = sg_host_now_ns();
}

static void set_stream(sg_host_event_t* event, sg_host_stream_t* stream) {
  if (stream != NULL) sg_host_stream_retain(stream);
  if (event->stream != NULL) sg_host_stream_release(event->stream);
  event->stream = stream;
}

void sg_host_event_release(sg_host_event_t* event) {
  if (--event->references > 0) return;
  set_stream(event, NULL);
  sg_host_nodes_clear(&event->nodes);
  free(event);
}

static hipError_t create_event(hipEvent_t* out_event, unsigned flags) {
  if (out_event == NULL) return hipErrorInvalidValue;
  *out_event = NULL;
  const unsigned known = hipEventBlockingSync | hipEventDisableTiming |
                         hipEventReleaseToDevice | hipEventReleaseToSystem;
  if ((flags & ~known) != 0) return hipErrorInvalidValue;
  sg_host_event_t* event = calloc(1, sizeof(*event));
  if (event == NULL) return hipErrorOutOfMemory;
  *out_event = sg_host_handle_create(SG_HOST_EVENT, event);
  if (*out_event == NULL) {
    free(event);
    return hipErrorOutOfMemory;
  }
  event->device = sg_host_thread_device();
  event->has_timing = (flags & hipEventDisableTiming) == 0;
  event->references = 1;
  return hipSuccess;
}

hipError_t hipEventCreate(hipEvent_t* event) {
  SG_HOST_CALL(hipEventCreate);
  sg_host_lock();
  hipError_t error = create_event(event, hipEventDefault);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  SG_HOST_CALL(hipEventCreateWithFlags);
  sg_host_lock();
  hipError_t error = create_event(event, flags);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipEventDestroy(hipEvent_t event) {
  SG_HOST_CALL(hipEventDestroy);
  sg_host_lock();
  sg_host_event_t* found = find_event(event);
  if (found != NULL) {
    sg_host_handle_destroy(event);
    sg_host_event_release(found);
  }
  sg_host_unlock();
  return sg_host_call_end(found != NULL ? hipSuccess : hipErrorInvalidHandle);
}

static hipError_t record_event(sg_host_event_t* event,
                               sg_host_stream_t* stream) {
  if (event == NULL || stream == NULL) return hipErrorInvalidHandle;
  if (event->device != stream->device) return hipErrorInvalidHandle;
  if (stream->capture != NULL) return sg_host_capture_record(stream, event);
  SG_HOST_RETURN_IF_ERROR(sg_host_stream_check_enqueue(stream));
  sg_host_command_t* command = sg_host_stream_prepare(SG_HOST_COMMAND_RECORD);
  if (command == NULL) return hipErrorOutOfMemory;
  event->capture_id = 0;
  event->references++;
  command->record.event = event;
  set_stream(event, stream);
  sg_host_stream_append(stream, command);
  event->ticket = stream->submitted;
  return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  SG_HOST_CALL(hipEventRecord);
  sg_host_lock();
  hipError_t error =
      record_event(find_event(event), sg_host_stream_find(stream));
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t wait_event(sg_host_stream_t* stream, sg_host_event_t* event) {
  if (event == NULL || stream == NULL) return hipErrorInvalidHandle;
  if (stream->capture != NULL || event->capture_id != 0) {
    return sg_host_capture_wait(stream, event);
  }
  SG_HOST_RETURN_IF_ERROR(sg_host_stream_check_enqueue(stream));
  // Nothing to wait for: never recorded, or in the order of the stream anyway.
  if (event->stream == NULL || event->stream == stream) return hipSuccess;
  sg_host_command_t* command = sg_host_stream_prepare(SG_HOST_COMMAND_WAIT);
  if (command == NULL) return hipErrorOutOfMemory;
  sg_host_stream_retain(event->stream);
  command->wait.stream = event->stream;
  command->wait.ticket = event->ticket;
  sg_host_stream_append(stream, command);
  return hipSuccess;
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event,
                              unsigned int flags) {
  SG_HOST_CALL(hipStreamWaitEvent);
  if (flags != 0) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  hipError_t error = wait_event(sg_host_stream_find(stream), find_event(event));
  sg_host_unlock();
  return sg_host_call_end(error);
}

// What waiting for |event| and asking for its state must fulfil.
static hipError_t check_inspect(const sg_host_event_t* event) {
  if (event == NULL) return hipErrorInvalidHandle;
  if (event->capture_id != 0) {
    sg_host_capture_t* capture = sg_host_capture_find(event->capture_id);
    if (capture == NULL) return hipErrorCapturedEvent;
    return sg_host_capture_invalidate(capture, hipErrorCapturedEvent);
  }
  return sg_host_capture_check_unsafe();
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  SG_HOST_CALL(hipEventSynchronize);
  sg_host_lock();
  sg_host_event_t* found = find_event(event);
  hipError_t error = check_inspect(found);
  if (error == hipSuccess && found->stream != NULL) {
    error = sg_host_wait_ticket(found->stream, found->ticket);
  }
  sg_host_unlock();
  return sg_host_call_end(error);
}

static bool has_happened(const sg_host_event_t* event) {
  return event->stream == NULL || event->stream->completed >= event->ticket;
}

hipError_t hipEventQuery(hipEvent_t event) {
  SG_HOST_CALL(hipEventQuery);
  sg_host_lock();
  sg_host_event_t* found = find_event(event);
  hipError_t error = check_inspect(found);
  if (error == hipSuccess) error = found->device->fault;
  if (error == hipSuccess && !has_happened(found)) error = hipErrorNotReady;
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t elapsed_time(const sg_host_event_t* start,
                               const sg_host_event_t* stop, float* out_ms) {
  if (out_ms == NULL) return hipErrorInvalidValue;
  *out_ms = 0.0f;
  if (start == NULL || stop == NULL) return hipErrorInvalidHandle;
  if (start->capture_id != 0 || stop->capture_id != 0) {
    return hipErrorCapturedEvent;
  }
  bool is_recorded = start->stream != NULL && stop->stream != NULL;
  if (!is_recorded || !start->has_timing || !stop->has_timing) {
    return hipErrorInvalidHandle;
  }
  if (!has_happened(start) || !has_happened(stop)) return hipErrorNotReady;
  int64_t elapsed_ns = (int64_t)(stop->timestamp_ns - start->timestamp_ns);
  *out_ms = (float)((double)elapsed_ns * 1e-6);
  return hipSuccess;
}

hipError_t hipEventElapsedTime(float* ms, hipEvent_t start, hipEvent_t stop) {
  SG_HOST_CALL(hipEventElapsedTime);
  sg_host_lock();
  hipError_t error = elapsed_time(find_event(start), find_event(stop), ms);
  sg_host_unlock();
  return sg_host_call_end(error);
}
