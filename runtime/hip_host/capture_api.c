// SPDX-License-Identifier: Apache-2.0
//
// Beginning, ending and inspecting captures.

#include <stdlib.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/stream.h"

static bool is_mode(hipStreamCaptureMode mode) {
  return mode == hipStreamCaptureModeGlobal ||
         mode == hipStreamCaptureModeThreadLocal ||
         mode == hipStreamCaptureModeRelaxed;
}

static hipError_t begin_capture(sg_host_stream_t* stream,
                                hipStreamCaptureMode mode) {
  static uint64_t newest_id;
  if (stream == NULL) return hipErrorInvalidHandle;
  if (!is_mode(mode)) return hipErrorInvalidValue;
  if (stream->is_null) return hipErrorStreamCaptureUnsupported;
  if (stream->capture != NULL) return hipErrorIllegalState;
  SG_HOST_RETURN_IF_ERROR(stream->device->fault);
  sg_host_capture_t* capture = calloc(1, sizeof(*capture));
  if (capture == NULL) return hipErrorOutOfMemory;
  capture->graph = sg_host_graph_create();
  if (capture->graph == NULL) {
    free(capture);
    return hipErrorOutOfMemory;
  }
  capture->graph->is_captured_into = true;
  capture->id = ++newest_id;
  capture->mode = mode;
  capture->owner_thread = sg_host_thread_id();
  capture->origin = stream;
  capture->next = sg_host_runtime.captures;
  sg_host_runtime.captures = capture;
  stream->capture = capture;
  return hipSuccess;
}

hipError_t hipStreamBeginCapture(hipStream_t stream,
                                 hipStreamCaptureMode mode) {
  SG_HOST_CALL(hipStreamBeginCapture);
  sg_host_lock();
  hipError_t error = begin_capture(sg_host_stream_find(stream), mode);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// Frees |capture| and sets its streams free. Returns its graph.
static sg_host_graph_t* terminate(sg_host_capture_t* capture) {
  for (sg_host_stream_t* stream = sg_host_runtime.streams; stream != NULL;
       stream = stream->next) {
    if (stream->capture != capture) continue;
    stream->capture = NULL;
    sg_host_nodes_clear(&stream->dependencies);
  }
  sg_host_capture_t** link = &sg_host_runtime.captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  sg_host_graph_t* graph = capture->graph;
  graph->is_captured_into = false;
  free(capture);
  return graph;
}

// Every node must come before the origin's present end.
static hipError_t check_joined(const sg_host_capture_t* capture) {
  size_t joined =
      sg_host_graph_mark(capture->graph, &capture->origin->dependencies);
  return joined == capture->graph->nodes.count ? hipSuccess
                                               : hipErrorStreamCaptureUnjoined;
}

static hipError_t end_capture(sg_host_stream_t* stream, hipError_t failure,
                              hipGraph_t* out_graph) {
  if (out_graph == NULL) return hipErrorInvalidValue;
  *out_graph = NULL;
  if (stream == NULL) return hipErrorInvalidHandle;
  sg_host_capture_t* capture = stream->capture;
  if (capture == NULL) return hipErrorIllegalState;
  if (capture->origin != stream) {
    return sg_host_capture_invalidate(capture, hipErrorStreamCaptureUnmatched);
  }
  if (capture->mode != hipStreamCaptureModeRelaxed &&
      capture->owner_thread != sg_host_thread_id()) {
    return sg_host_capture_invalidate(capture,
                                      hipErrorStreamCaptureWrongThread);
  }
  hipError_t error = failure;
  if (error == hipSuccess && capture->is_invalidated) {
    error = hipErrorStreamCaptureInvalidated;
  }
  if (error == hipSuccess) error = check_joined(capture);
  sg_host_graph_t* graph = terminate(capture);
  if (error != hipSuccess) {
    sg_host_graph_destroy(graph);
    return error;
  }
  *out_graph = graph->handle;
  return hipSuccess;
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* pGraph) {
  // An ordered failure must not leave the stream capturing, or no caller could
  // recover.
  hipError_t failure = sg_host_call_begin(SG_HOST_CALL_hipStreamEndCapture);
  sg_host_lock();
  hipError_t error = end_capture(sg_host_stream_find(stream), failure, pGraph);
  sg_host_unlock();
  return sg_host_call_end(failure != hipSuccess ? failure : error);
}

// What the inspecting functions tell.
typedef struct capture_info_t {
  hipStreamCaptureStatus status;
  uint64_t id;
  hipGraph_t graph;
} capture_info_t;

static hipError_t get_info(const sg_host_stream_t* stream,
                           capture_info_t* out_info) {
  *out_info = (capture_info_t){.status = hipStreamCaptureStatusNone};
  if (stream == NULL) return hipErrorInvalidHandle;
  // The null stream cannot say while a blocking stream captures; that asks
  // for nothing, so the capture stays valid.
  if (stream->is_null && sg_host_capture_is_in_legacy(stream->device)) {
    return hipErrorStreamCaptureImplicit;
  }
  const sg_host_capture_t* capture = stream->capture;
  if (capture == NULL) return hipSuccess;
  out_info->status = capture->is_invalidated ? hipStreamCaptureStatusInvalidated
                                             : hipStreamCaptureStatusActive;
  out_info->id = capture->id;
  out_info->graph = capture->graph->handle;
  return hipSuccess;
}

hipError_t hipStreamIsCapturing(hipStream_t stream,
                                hipStreamCaptureStatus* pCaptureStatus) {
  SG_HOST_CALL(hipStreamIsCapturing);
  if (pCaptureStatus == NULL) return sg_host_call_end(hipErrorInvalidValue);
  capture_info_t info;
  sg_host_lock();
  hipError_t error = get_info(sg_host_stream_find(stream), &info);
  sg_host_unlock();
  *pCaptureStatus = info.status;
  return sg_host_call_end(error);
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream,
                                   hipStreamCaptureStatus* pCaptureStatus,
                                   unsigned long long* pId) {
  SG_HOST_CALL(hipStreamGetCaptureInfo);
  if (pCaptureStatus == NULL) return sg_host_call_end(hipErrorInvalidValue);
  capture_info_t info;
  sg_host_lock();
  hipError_t error = get_info(sg_host_stream_find(stream), &info);
  sg_host_unlock();
  *pCaptureStatus = info.status;
  if (pId != NULL) *pId = info.id;
  return sg_host_call_end(error);
}

// The dependencies stay valid until the next call on the stream.
static hipError_t get_dependencies(sg_host_stream_t* stream,
                                   const hipGraphNode_t** out_nodes,
                                   size_t* out_count) {
  static _Thread_local hipGraphNode_t handles[16];
  size_t count = stream->dependencies.count;
  if (out_count != NULL) *out_count = count;
  if (out_nodes == NULL) return hipSuccess;
  if (count > sizeof(handles) / sizeof(handles[0])) return hipErrorNotSupported;
  for (size_t i = 0; i < count; ++i) {
    handles[i] = stream->dependencies.items[i]->handle;
  }
  *out_nodes = handles;
  return hipSuccess;
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream,
                                      hipStreamCaptureStatus* captureStatus_out,
                                      unsigned long long* id_out,
                                      hipGraph_t* graph_out,
                                      const hipGraphNode_t** dependencies_out,
                                      size_t* numDependencies_out) {
  SG_HOST_CALL(hipStreamGetCaptureInfo_v2);
  if (captureStatus_out == NULL) return sg_host_call_end(hipErrorInvalidValue);
  if (dependencies_out != NULL) *dependencies_out = NULL;
  if (numDependencies_out != NULL) *numDependencies_out = 0;
  capture_info_t info;
  sg_host_lock();
  sg_host_stream_t* found = sg_host_stream_find(stream);
  hipError_t error = get_info(found, &info);
  if (error == hipSuccess && info.status == hipStreamCaptureStatusActive) {
    error = get_dependencies(found, dependencies_out, numDependencies_out);
  }
  sg_host_unlock();
  *captureStatus_out = info.status;
  if (id_out != NULL) *id_out = info.id;
  if (graph_out != NULL) *graph_out = info.graph;
  return sg_host_call_end(error);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  SG_HOST_CALL(hipThreadExchangeStreamCaptureMode);
  if (mode == NULL || !is_mode(*mode)) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  hipStreamCaptureMode* current = sg_host_thread_capture_mode();
  hipStreamCaptureMode previous = *current;
  *current = *mode;
  *mode = previous;
  return hipSuccess;
}
