// SPDX-License-Identifier: Apache-2.0
//
// Graphs, their nodes, and executable graphs. All functions need the runtime's
// lock.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_GRAPH_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_GRAPH_H_

#include <stdalign.h>

#include "runtime/hip_host/runtime.h"

typedef struct sg_host_graph_t sg_host_graph_t;

struct sg_host_node_t {
  void* handle;
  sg_host_graph_t* graph;
  // Position in the graph's |nodes|.
  size_t index;
  // Nodes that run before this one.
  sg_host_nodes_t dependencies;
  // What hipGraphKernelNodeGetParams hands out: the address of |params|.
  void* arguments[1];
  // Used by traversals.
  bool is_marked;
  sg_host_operation_t operation;
  // Params of a kernel.
  alignas(64) unsigned char params[];
};

struct sg_host_graph_t {
  void* handle;
  // In order of creation.
  sg_host_nodes_t nodes;
  // A capture is still adding to it.
  bool is_captured_into;
};

// An executable graph: the operations in an order that keeps every edge.
struct sg_host_exec_t {
  // Held by the handle and by queued launches.
  uint32_t references;
  // Launches enqueued and finished; they run one after another.
  uint64_t launched;
  uint64_t completed;
  sg_host_device_t* device;
  // What it counts for as memory of the device.
  size_t memory_bytes;
  size_t operation_count;
  sg_host_operation_t operations[];
};

// NULL if memory is exhausted.
sg_host_graph_t* sg_host_graph_create(void);
void sg_host_graph_destroy(sg_host_graph_t* graph);

// NULL if memory is exhausted. |dependencies| are nodes of |graph|.
sg_host_node_t* sg_host_graph_add(sg_host_graph_t* graph,
                                  const sg_host_operation_t* operation,
                                  sg_host_node_t* const* dependencies,
                                  size_t dependency_count);

// Marks |nodes| and all they depend on; returns how many were marked.
size_t sg_host_graph_mark(sg_host_graph_t* graph, const sg_host_nodes_t* nodes);

sg_host_graph_t* sg_host_graph_find(hipGraph_t handle);
sg_host_node_t* sg_host_node_find(hipGraphNode_t handle);

void sg_host_exec_release(sg_host_exec_t* exec);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_GRAPH_H_
