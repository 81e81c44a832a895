// SPDX-License-Identifier: Apache-2.0
//
// Asking a graph for its nodes and edges, and adding edges. Arrays that the
// caller gives are filled as far as they reach and cleared beyond; without an
// array the number alone is told.

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/graph.h"

// Counts what is put into it and keeps as much as the array holds.
typedef struct sink_t {
  hipGraphNode_t* items;
  size_t capacity;
  size_t count;
} sink_t;

static void put(sink_t* sink, const sg_host_node_t* node) {
  if (sink->items != NULL && sink->count < sink->capacity) {
    sink->items[sink->count] = node->handle;
  }
  sink->count++;
}

// Tells the caller how many were put in, or with an array how many it got.
static void finish(sink_t* sink, size_t* out_count) {
  if (sink->items == NULL) {
    *out_count = sink->count;
    return;
  }
  for (size_t i = sink->count; i < sink->capacity; ++i) sink->items[i] = NULL;
  if (sink->count < *out_count) *out_count = sink->count;
}

static hipError_t get_nodes(const sg_host_graph_t* graph, bool roots_only,
                            hipGraphNode_t* out_nodes, size_t* count) {
  if (graph == NULL || count == NULL) return hipErrorInvalidValue;
  sink_t sink = {.items = out_nodes, .capacity = *count};
  for (size_t i = 0; i < graph->nodes.count; ++i) {
    const sg_host_node_t* node = graph->nodes.items[i];
    if (!roots_only || node->dependencies.count == 0) put(&sink, node);
  }
  finish(&sink, count);
  return hipSuccess;
}

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes,
                            size_t* numNodes) {
  SG_HOST_CALL(hipGraphGetNodes);
  sg_host_lock();
  hipError_t error = get_nodes(sg_host_graph_find(graph), /*roots_only=*/false,
                               nodes, numNodes);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* pRootNodes,
                                size_t* pNumRootNodes) {
  SG_HOST_CALL(hipGraphGetRootNodes);
  sg_host_lock();
  hipError_t error = get_nodes(sg_host_graph_find(graph), /*roots_only=*/true,
                               pRootNodes, pNumRootNodes);
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t get_edges(const sg_host_graph_t* graph,
                            hipGraphNode_t* out_from, hipGraphNode_t* out_to,
                            size_t* count) {
  if (graph == NULL || count == NULL) return hipErrorInvalidValue;
  if ((out_from == NULL) != (out_to == NULL)) return hipErrorInvalidValue;
  sink_t from = {.items = out_from, .capacity = *count};
  sink_t to = {.items = out_to, .capacity = *count};
  for (size_t i = 0; i < graph->nodes.count; ++i) {
    const sg_host_node_t* node = graph->nodes.items[i];
    for (size_t j = 0; j < node->dependencies.count; ++j) {
      put(&from, node->dependencies.items[j]);
      put(&to, node);
    }
  }
  finish(&from, count);
  finish(&to, count);
  return hipSuccess;
}

hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t* from,
                            hipGraphNode_t* to, size_t* numEdges) {
  SG_HOST_CALL(hipGraphGetEdges);
  sg_host_lock();
  hipError_t error = get_edges(sg_host_graph_find(graph), from, to, numEdges);
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t get_dependencies(const sg_host_node_t* node,
                                   hipGraphNode_t* out_nodes, size_t* count) {
  if (node == NULL || count == NULL) return hipErrorInvalidValue;
  sink_t sink = {.items = out_nodes, .capacity = *count};
  for (size_t i = 0; i < node->dependencies.count; ++i) {
    put(&sink, node->dependencies.items[i]);
  }
  finish(&sink, count);
  return hipSuccess;
}

hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node,
                                       hipGraphNode_t* pDependencies,
                                       size_t* pNumDependencies) {
  SG_HOST_CALL(hipGraphNodeGetDependencies);
  sg_host_lock();
  hipError_t error = get_dependencies(sg_host_node_find(node), pDependencies,
                                      pNumDependencies);
  sg_host_unlock();
  return sg_host_call_end(error);
}

static bool depends_on(const sg_host_node_t* node,
                       const sg_host_node_t* dependency) {
  for (size_t i = 0; i < node->dependencies.count; ++i) {
    if (node->dependencies.items[i] == dependency) return true;
  }
  return false;
}

static hipError_t get_dependents(const sg_host_node_t* node,
                                 hipGraphNode_t* out_nodes, size_t* count) {
  if (node == NULL || count == NULL) return hipErrorInvalidValue;
  sink_t sink = {.items = out_nodes, .capacity = *count};
  const sg_host_nodes_t* nodes = &node->graph->nodes;
  for (size_t i = 0; i < nodes->count; ++i) {
    if (depends_on(nodes->items[i], node)) put(&sink, nodes->items[i]);
  }
  finish(&sink, count);
  return hipSuccess;
}

hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t node,
                                         hipGraphNode_t* pDependentNodes,
                                         size_t* pNumDependentNodes) {
  SG_HOST_CALL(hipGraphNodeGetDependentNodes);
  sg_host_lock();
  hipError_t error = get_dependents(sg_host_node_find(node), pDependentNodes,
                                    pNumDependentNodes);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// Refuses what is there already and what would close a circle.
static hipError_t add_edge(sg_host_graph_t* graph, sg_host_node_t* from,
                           sg_host_node_t* to) {
  if (from == NULL || to == NULL) return hipErrorInvalidValue;
  if (from->graph != graph || to->graph != graph) return hipErrorInvalidValue;
  if (from == to || depends_on(to, from)) return hipErrorInvalidValue;
  (void)sg_host_graph_mark(graph, &from->dependencies);
  if (to->is_marked) return hipErrorInvalidValue;
  return sg_host_nodes_append(&to->dependencies, from) ? hipSuccess
                                                       : hipErrorOutOfMemory;
}

static hipError_t add_edges(sg_host_graph_t* graph, const hipGraphNode_t* from,
                            const hipGraphNode_t* to, size_t count) {
  if (graph == NULL || graph->is_captured_into) return hipErrorInvalidValue;
  if (count > 0 && (from == NULL || to == NULL)) return hipErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) {
    SG_HOST_RETURN_IF_ERROR(
        add_edge(graph, sg_host_node_find(from[i]), sg_host_node_find(to[i])));
  }
  return hipSuccess;
}

hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t* from,
                                   const hipGraphNode_t* to,
                                   size_t numDependencies) {
  SG_HOST_CALL(hipGraphAddDependencies);
  sg_host_lock();
  hipError_t error =
      add_edges(sg_host_graph_find(graph), from, to, numDependencies);
  sg_host_unlock();
  return sg_host_call_end(error);
}
