// SPDX-License-Identifier: Apache-2.0

#include "runtime/recorder.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/hip/error.h"

// Runtimes mix up the nodes of graphs that are captured at the same time
// (ROCm rocm-systems issue 6888), so captures take turns in a process.
static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;

static int compare_handles(const void* a, const void* b) {
  uintptr_t left = (uintptr_t) * (const hipGraphNode_t*)a;
  uintptr_t right = (uintptr_t) * (const hipGraphNode_t*)b;
  return (left > right) - (left < right);
}

static bool all_different(hipGraphNode_t* nodes, size_t count) {
  qsort(nodes, count, sizeof(hipGraphNode_t), compare_handles);
  for (size_t i = 1; i < count; ++i) {
    if (nodes[i] == nodes[i - 1]) return false;
  }
  return true;
}

// Releases number the types differently; these all of them have.
static const char* node_type_name(hipGraphNodeType type) {
  switch (type) {
    case hipGraphNodeTypeMemcpy:
      return "memcpy";
    case hipGraphNodeTypeMemset:
      return "memset";
    case hipGraphNodeTypeHost:
      return "host";
    case hipGraphNodeTypeGraph:
      return "graph";
    case hipGraphNodeTypeEmpty:
      return "empty";
    case hipGraphNodeTypeWaitEvent:
      return "event wait";
    case hipGraphNodeTypeEventRecord:
      return "event record";
    default:
      return "foreign";
  }
}

static sg_status_t check_kernel_nodes(const hipGraphNode_t* nodes,
                                      size_t node_count) {
  for (size_t i = 0; i < node_count; ++i) {
    hipGraphNodeType type;
    SG_RETURN_IF_HIP_ERROR(hipGraphNodeGetType, nodes[i], &type);
    if (type != hipGraphNodeTypeKernel) {
      return sg_status_make(SG_STATUS_UNSUPPORTED,
                            "captured graph: node %zu is a %s node (type %d), "
                            "expected kernel nodes alone",
                            i, node_type_name(type), (int)type);
    }
  }
  return sg_status_ok();
}

// A graph without cycles that has n nodes and n - 1 edges, no two from or to
// the same node, is one chain.
static sg_status_t check_chain(hipGraphNode_t* from, hipGraphNode_t* to,
                               size_t node_count, size_t edge_count) {
  if (edge_count + 1 != node_count || !all_different(from, edge_count) ||
      !all_different(to, edge_count)) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "captured graph: %zu nodes and %zu edges do not "
                          "make one chain",
                          node_count, edge_count);
  }
  return sg_status_ok();
}

// Fills the table's edges, which are those of the chain.
static sg_status_t add_chain_edges(sg_node_table_t* table) {
  size_t edge_count = table->node_count - 1;
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(table->allocator, "node edges", edge_count,
                                 sizeof(sg_edge_t), &memory));
  table->edges = memory;
  table->edge_count = edge_count;
  for (size_t i = 0; i < edge_count; ++i) {
    table->edges[i] = (sg_edge_t){(uint32_t)i, (uint32_t)(i + 1)};
  }
  return sg_status_ok();
}

static sg_status_t check_with_scratch(hipGraph_t captured, sg_graph_t* graph,
                                      hipGraphNode_t* scratch) {
  size_t node_count = graph->runtime_node_count;
  size_t edge_count = graph->runtime_edge_count;
  hipGraphNode_t* from = scratch;
  hipGraphNode_t* to = scratch + edge_count;
  SG_RETURN_IF_HIP_ERROR(hipGraphGetNodes, captured, scratch, &node_count);
  SG_RETURN_IF_ERROR(check_kernel_nodes(scratch, node_count));
  if (node_count != graph->nodes.node_count) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "captured graph: %zu nodes, %zu launches were "
                          "enqueued",
                          node_count, graph->nodes.node_count);
  }
  // No edges is no call: runtimes differ in what they make of empty arrays.
  if (edge_count > 0) {
    SG_RETURN_IF_HIP_ERROR(hipGraphGetEdges, captured, from, to, &edge_count);
  }
  SG_RETURN_IF_ERROR(check_chain(from, to, node_count, edge_count));
  return add_chain_edges(&graph->nodes);
}

// Holds what the runtime captured against what was traced. Old runtimes lose
// nodes without an error, so counts are compared rather than believed.
static sg_status_t check_captured(sg_allocator_t allocator, hipGraph_t captured,
                                  sg_graph_t* graph) {
  SG_RETURN_IF_HIP_ERROR(hipGraphGetNodes, captured, NULL,
                         &graph->runtime_node_count);
  SG_RETURN_IF_HIP_ERROR(hipGraphGetEdges, captured, NULL, NULL,
                         &graph->runtime_edge_count);
  size_t node_count = graph->runtime_node_count;
  if (node_count == 0) {
    return sg_status_make(
        SG_STATUS_UNSUPPORTED,
        "captured graph: no nodes, %zu launches were enqueued",
        graph->nodes.node_count);
  }
  size_t scratch_count = 2 * graph->runtime_edge_count;
  if (scratch_count < node_count) scratch_count = node_count;
  void* scratch;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "graph check", scratch_count,
                                 sizeof(hipGraphNode_t), &scratch));
  sg_status_t status = check_with_scratch(captured, graph, scratch);
  sg_release(allocator, scratch);
  return status;
}

// Ends every capture that it begins. The first error of the two wins, since it
// names the launch that spoiled the capture.
static sg_status_t capture(hipStream_t stream, sg_record_function_t record,
                           void* self, sg_node_table_t* table,
                           hipGraph_t* out_captured) {
  *out_captured = NULL;
  sg_launch_trace_t trace = sg_node_table_trace(table);
  pthread_mutex_lock(&capture_lock);
  sg_status_t status = sg_status_from_hip(
      hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal),
      "hipStreamBeginCapture");
  if (sg_status_is_ok(status)) {
    status = record(self, stream, &trace);
    sg_status_t end_status = sg_status_from_hip(
        hipStreamEndCapture(stream, out_captured), "hipStreamEndCapture");
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

sg_status_t sg_graph_record(sg_allocator_t allocator, hipStream_t stream,
                            sg_record_function_t record, void* self,
                            bool instantiate, sg_graph_t* out_graph) {
  *out_graph = (sg_graph_t){0};
  sg_graph_t graph = {0};
  sg_node_table_initialize(allocator, &graph.nodes);
  hipGraph_t captured;
  sg_status_t status = capture(stream, record, self, &graph.nodes, &captured);
  if (sg_status_is_ok(status)) {
    status = check_captured(allocator, captured, &graph);
  }
  if (sg_status_is_ok(status) && instantiate) {
    status = instantiate_graph(captured, &graph);
  }
  if (captured != NULL) {
    sg_status_t destroy_status =
        sg_status_from_hip(hipGraphDestroy(captured), "hipGraphDestroy");
    if (sg_status_is_ok(status)) status = destroy_status;
  }
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
