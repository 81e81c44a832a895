// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/capture.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/event.h"
#include "runtime/hip_host/handle.h"
#include "runtime/hip_host/stream.h"

sg_host_capture_t* sg_host_capture_find(uint64_t id) {
  sg_host_capture_t* capture = sg_host_runtime.captures;
  while (capture != NULL && capture->id != id) capture = capture->next;
  return capture;
}

hipError_t sg_host_capture_invalidate(sg_host_capture_t* capture,
                                      hipError_t error) {
  assert(capture != NULL);
  capture->is_invalidated = true;
  return error;
}

hipError_t sg_host_capture_refuse(sg_host_stream_t* stream) {
  if (stream->capture == NULL) return hipSuccess;
  return sg_host_capture_invalidate(stream->capture,
                                    hipErrorStreamCaptureUnsupported);
}

// As documented at hipThreadExchangeStreamCaptureMode, and in strict mode the
// thread's own captures forbid everything, whatever their modes.
static bool forbids_unsafe(const sg_host_capture_t* capture) {
  hipStreamCaptureMode thread_mode = *sg_host_thread_capture_mode();
  if (capture->owner_thread == sg_host_thread_id()) {
    if (sg_host_runtime.strict) return true;
    return capture->mode != hipStreamCaptureModeRelaxed &&
           thread_mode != hipStreamCaptureModeRelaxed;
  }
  return capture->mode == hipStreamCaptureModeGlobal &&
         thread_mode == hipStreamCaptureModeGlobal;
}

hipError_t sg_host_capture_check_unsafe(void) {
  hipError_t error = hipSuccess;
  for (sg_host_capture_t* capture = sg_host_runtime.captures; capture != NULL;
       capture = capture->next) {
    if (!forbids_unsafe(capture)) continue;
    error =
        sg_host_capture_invalidate(capture, hipErrorStreamCaptureUnsupported);
  }
  return error;
}

hipError_t sg_host_capture_check_own_thread(void) {
  hipError_t error = hipSuccess;
  for (sg_host_capture_t* capture = sg_host_runtime.captures; capture != NULL;
       capture = capture->next) {
    if (capture->owner_thread != sg_host_thread_id()) continue;
    error =
        sg_host_capture_invalidate(capture, hipErrorStreamCaptureUnsupported);
  }
  return error;
}

hipError_t sg_host_capture_check_device(const sg_host_device_t* device) {
  hipError_t error = hipSuccess;
  for (sg_host_stream_t* stream = sg_host_runtime.streams; stream != NULL;
       stream = stream->next) {
    if (stream->capture == NULL || stream->device != device) continue;
    error = sg_host_capture_refuse(stream);
  }
  return error;
}

// Whether |stream| captures and is ordered with the null stream of |device|.
static bool captures_in_legacy_order(const sg_host_stream_t* stream,
                                     const sg_host_device_t* device) {
  return stream->capture != NULL && stream->is_blocking &&
         stream->device == device;
}

bool sg_host_capture_is_in_legacy(const sg_host_device_t* device) {
  const sg_host_stream_t* stream = sg_host_runtime.streams;
  while (stream != NULL && !captures_in_legacy_order(stream, device)) {
    stream = stream->next;
  }
  return stream != NULL;
}

hipError_t sg_host_capture_check_legacy(const sg_host_device_t* device) {
  hipError_t error = hipSuccess;
  for (sg_host_stream_t* stream = sg_host_runtime.streams; stream != NULL;
       stream = stream->next) {
    if (!captures_in_legacy_order(stream, device)) continue;
    error = sg_host_capture_invalidate(stream->capture,
                                       hipErrorStreamCaptureImplicit);
  }
  return error;
}

hipError_t sg_host_capture_add(sg_host_stream_t* stream,
                               const sg_host_operation_t* operation) {
  sg_host_capture_t* capture = stream->capture;
  if (capture->is_invalidated) return hipErrorStreamCaptureInvalidated;
  sg_host_node_t* node =
      sg_host_graph_add(capture->graph, operation, stream->dependencies.items,
                        stream->dependencies.count);
  if (node == NULL) {
    return sg_host_capture_invalidate(capture, hipErrorOutOfMemory);
  }
  stream->dependencies.count = 0;
  if (!sg_host_nodes_append(&stream->dependencies, node)) {
    return sg_host_capture_invalidate(capture, hipErrorOutOfMemory);
  }
  return hipSuccess;
}

static bool add_all(sg_host_nodes_t* to, const sg_host_nodes_t* from) {
  for (size_t i = 0; i < from->count; ++i) {
    if (!sg_host_nodes_add(to, from->items[i])) return false;
  }
  return true;
}

hipError_t sg_host_capture_record(sg_host_stream_t* stream,
                                  sg_host_event_t* event) {
  sg_host_capture_t* capture = stream->capture;
  if (capture->is_invalidated) return hipErrorStreamCaptureInvalidated;
  event->capture_id = capture->id;
  event->nodes.count = 0;
  if (!add_all(&event->nodes, &stream->dependencies)) {
    return sg_host_capture_invalidate(capture, hipErrorOutOfMemory);
  }
  return hipSuccess;
}

hipError_t sg_host_capture_wait(sg_host_stream_t* stream,
                                sg_host_event_t* event) {
  sg_host_capture_t* of_stream = stream->capture;
  if (of_stream != NULL && of_stream->is_invalidated) {
    return hipErrorStreamCaptureInvalidated;
  }
  if (event->capture_id == 0) {
    return sg_host_capture_invalidate(of_stream,
                                      hipErrorStreamCaptureIsolation);
  }
  sg_host_capture_t* of_event = sg_host_capture_find(event->capture_id);
  if (of_event == NULL) return hipErrorCapturedEvent;
  if (of_event->is_invalidated) return hipErrorStreamCaptureInvalidated;
  if (stream->is_null) {
    return sg_host_capture_invalidate(of_event, hipErrorStreamCaptureImplicit);
  }
  if (of_stream != NULL && of_stream != of_event) {
    (void)sg_host_capture_invalidate(of_event, hipErrorStreamCaptureMerge);
    return sg_host_capture_invalidate(of_stream, hipErrorStreamCaptureMerge);
  }
  stream->capture = of_event;
  if (!add_all(&stream->dependencies, &event->nodes)) {
    return sg_host_capture_invalidate(of_event, hipErrorOutOfMemory);
  }
  return hipSuccess;
}
