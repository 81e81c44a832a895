// SPDX-License-Identifier: Apache-2.0
//
// Turns enqueued work into an executable graph. Begin and end of a capture
// stand in one function, so that a capture is ended whatever happens in it and
// the stream stays usable.

#ifndef STEPGRAPH_RUNTIME_RECORDER_H_
#define STEPGRAPH_RUNTIME_RECORDER_H_

#include <stdbool.h>

#include "runtime/base/allocator.h"
#include "runtime/node_table.h"

#ifdef __cplusplus
extern "C" {
#endif

// Enqueues the work to be captured on |stream| and reports it to |trace|.
typedef sg_status_t (*sg_record_function_t)(void* self, hipStream_t stream,
                                            const sg_launch_trace_t* trace);

typedef struct sg_record_request_t {
  hipStream_t stream;
  sg_record_function_t record;
  void* self;
  // false leaves exec NULL, for looking at a step that will not run here.
  bool instantiate;
  // The work may hold nodes that are not in the trace: kernels, fills and
  // copies of device memory, forked and joined as the caller likes. Without it
  // the graph must be one chain of the traced kernels.
  bool allow_foreign;
} sg_record_request_t;

// A graph that can be launched, with the table of its nodes.
typedef struct sg_graph_t {
  // NULL when the graph was recorded without being instantiated.
  hipGraphExec_t exec;
  sg_node_table_t nodes;
  // What hipGraphGetNodes and hipGraphGetEdges said of the captured graph.
  size_t runtime_node_count;
  size_t runtime_edge_count;
} sg_graph_t;

// Captures what the request's function enqueues on its stream, in thread-local
// mode, and holds the result against the trace. Node types that no step may
// have (host functions, memory, child graphs, events) are refused by name.
// Captures of all threads are serialised. On failure |out_graph| is empty and
// the stream is not capturing.
SG_MUST_USE sg_status_t sg_graph_record(sg_allocator_t allocator,
                                        const sg_record_request_t* request,
                                        sg_graph_t* out_graph);

// Destroys the executable graph; launches of it that are queued still run.
// Accepts NULL and an empty graph.
void sg_graph_deinitialize(sg_graph_t* graph);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_RECORDER_H_
