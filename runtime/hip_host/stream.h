// SPDX-License-Identifier: Apache-2.0
//
// Streams: queues of commands, and waiting for them. All functions need the
// runtime's lock; those that wait give it up meanwhile.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_STREAM_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_STREAM_H_

#include "runtime/hip_host/command.h"
#include "runtime/hip_host/runtime.h"

// The stream of |handle|; the current device's null stream for NULL; NULL if
// there is none.
sg_host_stream_t* sg_host_stream_find(hipStream_t handle);

void sg_host_stream_retain(sg_host_stream_t* stream);
void sg_host_stream_release(sg_host_stream_t* stream);

// Whether work may be put on |stream| now, outside of its own capture: the
// device is whole, it is the current one, and the null stream's ordering does
// not reach into a capture, which would be invalidated.
hipError_t sg_host_stream_check_enqueue(sg_host_stream_t* stream);

// Takes a command of |kind| to be filled in and given to
// sg_host_stream_append, which cannot fail. NULL if memory is exhausted.
sg_host_command_t* sg_host_stream_prepare(sg_host_command_kind_t kind);
void sg_host_stream_append(sg_host_stream_t* stream,
                           sg_host_command_t* command);

// Enqueues |operation| on |stream|, or records it if the stream is capturing.
hipError_t sg_host_stream_submit(sg_host_stream_t* stream,
                                 const sg_host_operation_t* operation);

// Whether the head of |stream| may start.
bool sg_host_stream_is_ready(const sg_host_stream_t* stream);

// Ends the head of |stream|, which a worker has executed.
void sg_host_stream_finish(sg_host_stream_t* stream);

// Whether all that was enqueued up to now has finished: on |stream|, and for a
// null stream on every blocking stream of its device.
bool sg_host_stream_is_idle(const sg_host_stream_t* stream);

// Wait until |stream| has finished |ticket|, all that was enqueued on it, all
// that was enqueued on |device|. Return the device's fault.
hipError_t sg_host_wait_ticket(sg_host_stream_t* stream, uint64_t ticket);
hipError_t sg_host_wait_stream(sg_host_stream_t* stream);
hipError_t sg_host_wait_device(sg_host_device_t* device);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_STREAM_H_
