// SPDX-License-Identifier: Apache-2.0

#include "runtime/recorder.h"

#include <pthread.h>
#include <string.h>

#include "runtime/graph_check.h"
#include "runtime/hip/error.h"

// Runtimes mix up the nodes of graphs that are captured at the same time (known
// of ROCm: ROCm/rocm-systems#6888), so captures take turns in a process.
static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;

// What the trace of a capture adds to.
typedef struct recording_t {
  sg_allocator_t allocator;
  hipStream_t stream;
  bool allow_foreign;
  sg_node_table_t* table;
  sg_traced_nodes_t traced;
} recording_t;

static sg_status_t keep_handle(recording_t* recording, hipGraphNode_t node) {
  sg_traced_nodes_t* traced = &recording->traced;
  if (traced->count == traced->capacity) {
    size_t capacity = traced->capacity == 0 ? 64 : 2 * traced->capacity;
    void* larger;
    SG_RETURN_IF_ERROR(sg_allocate(recording->allocator, "traced nodes",
                                   capacity, sizeof(hipGraphNode_t), &larger));
    if (traced->count > 0) {
      memcpy(larger, traced->handles, traced->count * sizeof(hipGraphNode_t));
    }
    sg_release(recording->allocator, traced->handles);
    traced->handles = larger;
    traced->capacity = capacity;
  }
  traced->handles[traced->count++] = node;
  return sg_status_ok();
}

// The node that the last launch became: what the next one would depend on.
static sg_status_t trace_handle(recording_t* recording,
                                const sg_launch_t* launch) {
  hipStreamCaptureStatus capture_status;
  unsigned long long id;
  hipGraph_t graph;
  const hipGraphNode_t* last;
  size_t count = 0;
  SG_RETURN_IF_HIP_ERROR(hipStreamGetCaptureInfo_v2, recording->stream,
                         &capture_status, &id, &graph, &last, &count);
  if (capture_status != hipStreamCaptureStatusActive || count != 1) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "captured graph: %zu nodes behind %s, expected its "
                          "own",
                          count, launch->kernel->name);
  }
  return keep_handle(recording, last[0]);
}

static sg_status_t trace_add(void* self, const sg_launch_t* launch) {
  recording_t* recording = self;
  SG_RETURN_IF_ERROR(sg_node_table_add(recording->table, launch));
  if (!recording->allow_foreign) return sg_status_ok();
  return trace_handle(recording, launch);
}

// Ends every capture that it begins. The first error of the two wins, since it
// names the launch that spoiled the capture.
static sg_status_t capture(const sg_record_request_t* request,
                           recording_t* recording, hipGraph_t* out_captured) {
  *out_captured = NULL;
  sg_launch_trace_t trace = {.self = recording, .add = trace_add};
  pthread_mutex_lock(&capture_lock);
  sg_status_t status = sg_status_from_hip(
      hipStreamBeginCapture(request->stream, hipStreamCaptureModeThreadLocal),
      "hipStreamBeginCapture");
  if (sg_status_is_ok(status)) {
    status = request->record(request->self, request->stream, &trace);
    sg_status_t end_status =
        sg_status_from_hip(hipStreamEndCapture(request->stream, out_captured),
                           "hipStreamEndCapture");
    if (sg_status_is_ok(status)) status = end_status;
  }
  pthread_mutex_unlock(&capture_lock);
  if (sg_status_is_ok(status) && *out_captured == NULL) {
    status = sg_status_make(SG_STATUS_DEVICE,
                            "hipStreamEndCapture gave no graph and no error");
  }
  return status;
}

static sg_status_t instantiate_graph(hipGraph_t captured, sg_graph_t* graph) {
  SG_RETURN_IF_HIP_ERROR(hipGraphInstantiate, &graph->exec, captured, NULL,
                         NULL, 0);
  return sg_status_ok();
}

sg_status_t sg_graph_record(sg_allocator_t allocator,
                            const sg_record_request_t* request,
                            sg_graph_t* out_graph) {
  *out_graph = (sg_graph_t){0};
  sg_graph_t graph = {0};
  sg_node_table_initialize(allocator, &graph.nodes);
  recording_t recording = {.allocator = allocator,
                           .stream = request->stream,
                           .allow_foreign = request->allow_foreign,
                           .table = &graph.nodes};
  hipGraph_t captured;
  sg_status_t status = capture(request, &recording, &captured);
  if (sg_status_is_ok(status)) {
    status = sg_graph_check(allocator, captured,
                            request->allow_foreign ? &recording.traced : NULL,
                            &graph);
  }
  if (sg_status_is_ok(status) && request->instantiate) {
    status = instantiate_graph(captured, &graph);
  }
  if (captured != NULL) {
    sg_status_t destroy_status =
        sg_status_from_hip(hipGraphDestroy(captured), "hipGraphDestroy");
    if (sg_status_is_ok(status)) status = destroy_status;
  }
  sg_release(allocator, recording.traced.handles);
  if (!sg_status_is_ok(status)) {
    sg_graph_deinitialize(&graph);
    return status;
  }
  *out_graph = graph;
  return sg_status_ok();
}

void sg_graph_deinitialize(sg_graph_t* graph) {
  if (graph == NULL) return;
  // Nothing can be done about an error here: the handle is gone either way.
  if (graph->exec != NULL) (void)hipGraphExecDestroy(graph->exec);
  sg_node_table_deinitialize(&graph->nodes);
  *graph = (sg_graph_t){0};
}
