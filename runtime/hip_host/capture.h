// SPDX-License-Identifier: Apache-2.0
//
// Captures: which streams take part, what the next operation depends on, and
// what is refused meanwhile. All functions need the runtime's lock.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_CAPTURE_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_CAPTURE_H_

#include "runtime/hip_host/graph.h"
#include "runtime/hip_host/runtime.h"

struct sg_host_capture_t {
  uint64_t id;
  hipStreamCaptureMode mode;
  uint64_t owner_thread;
  sg_host_stream_t* origin;
  // Owned until the capture ends.
  sg_host_graph_t* graph;
  bool is_invalidated;
  sg_host_capture_t* next;
};

// The ongoing capture with |id|, or NULL.
sg_host_capture_t* sg_host_capture_find(uint64_t id);

// Whether the calling thread may make a call that waits, queries or allocates.
// If not, the captures that forbid it are invalidated.
hipError_t sg_host_capture_check_unsafe(void);

// Whether work on the null stream of |device| would order itself with a
// capture. If so, those captures are invalidated.
hipError_t sg_host_capture_check_legacy(const sg_host_device_t* device);

// Whether a stream that is ordered with the null stream of |device| captures.
bool sg_host_capture_is_in_legacy(const sg_host_device_t* device);

// Whether |device| as a whole may be waited for: it may not while one of its
// streams is capturing. If so, those captures are invalidated.
hipError_t sg_host_capture_check_device(const sg_host_device_t* device);

// Refuses what strict mode forbids the calling thread during its captures.
hipError_t sg_host_capture_check_own_thread(void);

// Refuses an operation on |stream| that no capture allows: invalidates the
// stream's capture and returns hipErrorStreamCaptureUnsupported; hipSuccess if
// the stream is not capturing.
hipError_t sg_host_capture_refuse(sg_host_stream_t* stream);

// Invalidates |capture| and returns |error|.
hipError_t sg_host_capture_invalidate(sg_host_capture_t* capture,
                                      hipError_t error);

// Records |operation| on |stream|, which is capturing.
hipError_t sg_host_capture_add(sg_host_stream_t* stream,
                               const sg_host_operation_t* operation);

// hipEventRecord and hipStreamWaitEvent where the stream is capturing or the
// event was recorded in a capture.
hipError_t sg_host_capture_record(sg_host_stream_t* stream,
                                  sg_host_event_t* event);
hipError_t sg_host_capture_wait(sg_host_stream_t* stream,
                                sg_host_event_t* event);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_CAPTURE_H_
