// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/graph.h"

#include <stdlib.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/handle.h"

sg_host_graph_t* sg_host_graph_find(hipGraph_t handle) {
  return sg_host_handle_find(SG_HOST_GRAPH, handle);
}

sg_host_node_t* sg_host_node_find(hipGraphNode_t handle) {
  return sg_host_handle_find(SG_HOST_NODE, handle);
}

sg_host_graph_t* sg_host_graph_create(void) {
  sg_host_graph_t* graph = calloc(1, sizeof(*graph));
  if (graph == NULL) return NULL;
  graph->handle = sg_host_handle_create(SG_HOST_GRAPH, graph);
  if (graph->handle == NULL) {
    free(graph);
    return NULL;
  }
  return graph;
}

static void destroy_node(sg_host_node_t* node) {
  sg_host_handle_destroy(node->handle);
  sg_host_nodes_clear(&node->dependencies);
  free(node);
}

void sg_host_graph_destroy(sg_host_graph_t* graph) {
  for (size_t i = 0; i < graph->nodes.count; ++i) {
    destroy_node(graph->nodes.items[i]);
  }
  sg_host_nodes_clear(&graph->nodes);
  sg_host_handle_destroy(graph->handle);
  free(graph);
}

// A node that belongs to no graph yet, or NULL.
static sg_host_node_t* create_node(const sg_host_operation_t* operation) {
  size_t params_bytes = sg_host_operation_params_bytes(operation);
  size_t bytes = sizeof(sg_host_node_t) + params_bytes;
  const size_t alignment = alignof(sg_host_node_t);
  sg_host_node_t* node =
      aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (node == NULL) return NULL;
  *node = (sg_host_node_t){.arguments = {node->params}};
  sg_host_operation_copy(&node->operation, operation, node->params);
  node->handle = sg_host_handle_create(SG_HOST_NODE, node);
  if (node->handle == NULL) {
    free(node);
    return NULL;
  }
  return node;
}

sg_host_node_t* sg_host_graph_add(sg_host_graph_t* graph,
                                  const sg_host_operation_t* operation,
                                  sg_host_node_t* const* dependencies,
                                  size_t dependency_count) {
  sg_host_node_t* node = create_node(operation);
  if (node == NULL) return NULL;
  bool is_complete = true;
  for (size_t i = 0; i < dependency_count && is_complete; ++i) {
    is_complete = sg_host_nodes_append(&node->dependencies, dependencies[i]);
  }
  if (!is_complete || !sg_host_nodes_append(&graph->nodes, node)) {
    destroy_node(node);
    return NULL;
  }
  node->graph = graph;
  node->index = graph->nodes.count - 1;
  return node;
}

// Marks the unmarked ones of |nodes|; returns how many there were.
static size_t mark_set(const sg_host_nodes_t* nodes) {
  size_t count = 0;
  for (size_t i = 0; i < nodes->count; ++i) {
    if (nodes->items[i]->is_marked) continue;
    nodes->items[i]->is_marked = true;
    count++;
  }
  return count;
}

// A pass over the nodes from the newest to the oldest follows every edge that
// leads to an older node, so a second pass is rare.
size_t sg_host_graph_mark(sg_host_graph_t* graph,
                          const sg_host_nodes_t* nodes) {
  for (size_t i = 0; i < graph->nodes.count; ++i) {
    graph->nodes.items[i]->is_marked = false;
  }
  size_t total = mark_set(nodes);
  size_t found = total;
  while (found > 0) {
    found = 0;
    for (size_t i = graph->nodes.count; i > 0; --i) {
      const sg_host_node_t* node = graph->nodes.items[i - 1];
      if (node->is_marked) found += mark_set(&node->dependencies);
    }
    total += found;
  }
  return total;
}

hipError_t hipGraphCreate(hipGraph_t* pGraph, unsigned int flags) {
  SG_HOST_CALL(hipGraphCreate);
  if (pGraph == NULL || flags != 0) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  sg_host_lock();
  const sg_host_graph_t* graph = sg_host_graph_create();
  *pGraph = graph == NULL ? NULL : graph->handle;
  sg_host_unlock();
  return sg_host_call_end(graph == NULL ? hipErrorOutOfMemory : hipSuccess);
}

static hipError_t destroy_graph(sg_host_graph_t* graph) {
  if (graph == NULL || graph->is_captured_into) return hipErrorInvalidValue;
  sg_host_graph_destroy(graph);
  return hipSuccess;
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  SG_HOST_CALL(hipGraphDestroy);
  sg_host_lock();
  hipError_t error = destroy_graph(sg_host_graph_find(graph));
  sg_host_unlock();
  return sg_host_call_end(error);
}

static bool copy_dependencies(sg_host_graph_t* clone,
                              const sg_host_graph_t* original) {
  for (size_t i = 0; i < original->nodes.count; ++i) {
    const sg_host_nodes_t* from = &original->nodes.items[i]->dependencies;
    sg_host_nodes_t* to = &clone->nodes.items[i]->dependencies;
    for (size_t j = 0; j < from->count; ++j) {
      sg_host_node_t* twin = clone->nodes.items[from->items[j]->index];
      if (!sg_host_nodes_append(to, twin)) return false;
    }
  }
  return true;
}

static hipError_t clone_graph(const sg_host_graph_t* original,
                              hipGraph_t* out_graph) {
  if (out_graph == NULL) return hipErrorInvalidValue;
  *out_graph = NULL;
  if (original == NULL) return hipErrorInvalidValue;
  sg_host_graph_t* clone = sg_host_graph_create();
  if (clone == NULL) return hipErrorOutOfMemory;
  bool is_complete = true;
  for (size_t i = 0; i < original->nodes.count && is_complete; ++i) {
    is_complete = sg_host_graph_add(clone, &original->nodes.items[i]->operation,
                                    /*dependencies=*/NULL,
                                    /*dependency_count=*/0) != NULL;
  }
  if (!is_complete || !copy_dependencies(clone, original)) {
    sg_host_graph_destroy(clone);
    return hipErrorOutOfMemory;
  }
  *out_graph = clone->handle;
  return hipSuccess;
}

hipError_t hipGraphClone(hipGraph_t* pGraphClone, hipGraph_t originalGraph) {
  SG_HOST_CALL(hipGraphClone);
  sg_host_lock();
  hipError_t error =
      clone_graph(sg_host_graph_find(originalGraph), pGraphClone);
  sg_host_unlock();
  return sg_host_call_end(error);
}
