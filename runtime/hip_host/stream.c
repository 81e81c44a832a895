// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/stream.h"

#include <stdlib.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/event.h"
#include "runtime/hip_host/handle.h"
#include "runtime/hip_host/scheduler.h"

sg_host_stream_t* sg_host_stream_find(hipStream_t handle) {
  if (handle == NULL) return &sg_host_thread_device()->null_stream;
  return sg_host_handle_find(SG_HOST_STREAM, handle);
}

void sg_host_stream_retain(sg_host_stream_t* stream) { stream->references++; }

void sg_host_stream_release(sg_host_stream_t* stream) {
  if (--stream->references > 0) return;
  if (stream->next != NULL) stream->next->previous = stream->previous;
  if (stream->previous != NULL) stream->previous->next = stream->next;
  if (sg_host_runtime.streams == stream) sg_host_runtime.streams = stream->next;
  free(stream);
}

hipError_t sg_host_stream_check_enqueue(sg_host_stream_t* stream) {
  if (stream->device != sg_host_thread_device()) return hipErrorInvalidHandle;
  if (stream->is_null) {
    SG_HOST_RETURN_IF_ERROR(sg_host_capture_check_legacy(stream->device));
  }
  return stream->device->fault;
}

sg_host_command_t* sg_host_stream_prepare(sg_host_command_kind_t kind) {
  if (sg_host_scheduler_start() != hipSuccess) return NULL;
  sg_host_command_t* command = sg_host_command_acquire();
  if (command != NULL) command->kind = kind;
  return command;
}

// Puts |stream| last in the ring of streams with commands.
static void activate(sg_host_stream_t* stream) {
  sg_host_stream_t* next = sg_host_runtime.active;
  if (next == NULL) {
    stream->next_active = stream;
    stream->previous_active = stream;
    sg_host_runtime.active = stream;
    return;
  }
  stream->next_active = next;
  stream->previous_active = next->previous_active;
  next->previous_active->next_active = stream;
  next->previous_active = stream;
}

static void deactivate(sg_host_stream_t* stream) {
  if (sg_host_runtime.active == stream) {
    bool is_alone = stream->next_active == stream;
    sg_host_runtime.active = is_alone ? NULL : stream->next_active;
  }
  stream->next_active->previous_active = stream->previous_active;
  stream->previous_active->next_active = stream->next_active;
}

void sg_host_stream_append(sg_host_stream_t* stream,
                           sg_host_command_t* command) {
  command->sequence = ++sg_host_runtime.sequence;
  command->ticket = ++stream->submitted;
  command->next = NULL;
  if (stream->first == NULL) {
    stream->first = command;
    sg_host_stream_retain(stream);
    activate(stream);
  } else {
    stream->last->next = command;
  }
  stream->last = command;
  sg_host_scheduler_notify();
}

hipError_t sg_host_stream_submit(sg_host_stream_t* stream,
                                 const sg_host_operation_t* operation) {
  if (stream->capture != NULL) return sg_host_capture_add(stream, operation);
  SG_HOST_RETURN_IF_ERROR(sg_host_stream_check_enqueue(stream));
  sg_host_command_t* command =
      sg_host_stream_prepare(SG_HOST_COMMAND_OPERATION);
  if (command == NULL) return hipErrorOutOfMemory;
  sg_host_operation_copy(&command->operation, operation, command->params);
  sg_host_stream_append(stream, command);
  return hipSuccess;
}

// Whether a blocking stream of |device|, the null stream apart, still has a
// command older than |sequence|.
static bool has_older_blocking(const sg_host_device_t* device,
                               uint64_t sequence) {
  const sg_host_stream_t* first = sg_host_runtime.active;
  const sg_host_stream_t* stream = first;
  if (stream == NULL) return false;
  do {
    if (stream->device == device && stream->is_blocking && !stream->is_null &&
        stream->first->sequence < sequence) {
      return true;
    }
    stream = stream->next_active;
  } while (stream != first);
  return false;
}

// The null stream and the blocking streams of its device run their commands in
// the order in which they were enqueued.
static bool is_in_legacy_order(const sg_host_stream_t* stream) {
  const sg_host_command_t* command = stream->first;
  if (!stream->is_blocking) return true;
  if (stream->is_null) {
    return !has_older_blocking(stream->device, command->sequence);
  }
  const sg_host_command_t* null_command = stream->device->null_stream.first;
  return null_command == NULL || null_command->sequence > command->sequence;
}

bool sg_host_stream_is_ready(const sg_host_stream_t* stream) {
  const sg_host_command_t* command = stream->first;
  if (stream->is_running || !is_in_legacy_order(stream)) return false;
  switch (command->kind) {
    case SG_HOST_COMMAND_GRAPH:
      return command->graph.exec->completed + 1 == command->graph.launch;
    case SG_HOST_COMMAND_WAIT:
      return command->wait.stream->completed >= command->wait.ticket;
    case SG_HOST_COMMAND_OPERATION:
    case SG_HOST_COMMAND_RECORD:
    case SG_HOST_COMMAND_FAULT:
      break;
  }
  return true;
}

static void release_held(const sg_host_stream_t* stream,
                         const sg_host_command_t* command) {
  switch (command->kind) {
    case SG_HOST_COMMAND_GRAPH:
      command->graph.exec->completed = command->graph.launch;
      sg_host_exec_release(command->graph.exec);
      break;
    case SG_HOST_COMMAND_RECORD:
      sg_host_event_happen(command->record.event, stream, command->ticket);
      sg_host_event_release(command->record.event);
      break;
    case SG_HOST_COMMAND_WAIT:
      sg_host_stream_release(command->wait.stream);
      break;
    case SG_HOST_COMMAND_FAULT:
      // The first fault is the one that is told.
      if (stream->device->fault == hipSuccess) {
        stream->device->fault = command->fault.error;
      }
      break;
    case SG_HOST_COMMAND_OPERATION:
      break;
  }
}

void sg_host_stream_finish(sg_host_stream_t* stream) {
  sg_host_command_t* command = stream->first;
  release_held(stream, command);
  stream->completed = command->ticket;
  stream->is_running = false;
  stream->first = command->next;
  sg_host_command_release(command);
  if (sg_host_runtime.waiters > 0) {
    pthread_cond_broadcast(&sg_host_runtime.progress);
  }
  if (stream->first != NULL) return;
  stream->last = NULL;
  deactivate(stream);
  sg_host_stream_release(stream);
}

static hipError_t create_stream(hipStream_t* out_stream, unsigned flags) {
  if (out_stream == NULL) return hipErrorInvalidValue;
  *out_stream = NULL;
  if ((flags & ~(unsigned)hipStreamNonBlocking) != 0) {
    return hipErrorInvalidValue;
  }
  sg_host_stream_t* stream = calloc(1, sizeof(*stream));
  if (stream == NULL) return hipErrorOutOfMemory;
  stream->handle = sg_host_handle_create(SG_HOST_STREAM, stream);
  if (stream->handle == NULL) {
    free(stream);
    return hipErrorOutOfMemory;
  }
  stream->device = sg_host_thread_device();
  stream->is_blocking = (flags & hipStreamNonBlocking) == 0;
  stream->references = 1;
  stream->next = sg_host_runtime.streams;
  if (stream->next != NULL) stream->next->previous = stream;
  sg_host_runtime.streams = stream;
  *out_stream = stream->handle;
  return hipSuccess;
}

hipError_t hipStreamCreate(hipStream_t* stream) {
  SG_HOST_CALL(hipStreamCreate);
  sg_host_lock();
  hipError_t error = create_stream(stream, hipStreamDefault);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags) {
  SG_HOST_CALL(hipStreamCreateWithFlags);
  sg_host_lock();
  hipError_t error = create_stream(stream, flags);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// All streams have the same priority.
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned int flags,
                                       int priority) {
  (void)priority;
  SG_HOST_CALL(hipStreamCreateWithPriority);
  sg_host_lock();
  hipError_t error = create_stream(stream, flags);
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t destroy_stream(hipStream_t handle) {
  sg_host_stream_t* stream = sg_host_stream_find(handle);
  if (stream == NULL || stream->is_null) return hipErrorInvalidHandle;
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_refuse(stream));
  sg_host_handle_destroy(handle);
  sg_host_stream_release(stream);
  return hipSuccess;
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  SG_HOST_CALL(hipStreamDestroy);
  sg_host_lock();
  hipError_t error = destroy_stream(stream);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// What waiting for |stream| and asking for its state must fulfil.
static hipError_t check_inspect(sg_host_stream_t* stream) {
  if (stream == NULL) return hipErrorInvalidHandle;
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_refuse(stream));
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_check_unsafe());
  if (stream->is_null) return sg_host_capture_check_legacy(stream->device);
  return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  SG_HOST_CALL(hipStreamSynchronize);
  sg_host_lock();
  sg_host_stream_t* found = sg_host_stream_find(stream);
  hipError_t error = check_inspect(found);
  if (error == hipSuccess) error = sg_host_wait_stream(found);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipStreamQuery(hipStream_t stream) {
  SG_HOST_CALL(hipStreamQuery);
  sg_host_lock();
  sg_host_stream_t* found = sg_host_stream_find(stream);
  hipError_t error = check_inspect(found);
  if (error == hipSuccess) error = found->device->fault;
  if (error == hipSuccess && !sg_host_stream_is_idle(found)) {
    error = hipErrorNotReady;
  }
  sg_host_unlock();
  return sg_host_call_end(error);
}
