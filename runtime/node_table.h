// SPDX-License-Identifier: Apache-2.0
//
// What is in a graph, in our own terms: which kernel of which op and layer each
// node launches, with which configuration and parameters, and the edges. Made
// while a step is recorded, so it needs no debug mode and no runtime query.

#ifndef STEPGRAPH_RUNTIME_NODE_TABLE_H_
#define STEPGRAPH_RUNTIME_NODE_TABLE_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/allocator.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_node_t {
  const sg_kernel_t* kernel;
  int32_t layer;
  uint32_t grid;
  uint32_t block;
  uint32_t shared_bytes;
  // Where the node's params start in the table's params.
  size_t params_offset;
} sg_node_t;

// Indices of nodes.
typedef struct sg_edge_t {
  uint32_t from;
  uint32_t to;
} sg_edge_t;

// Fields are read-only outside node_table.c and recorder.c. Nodes are in the
// order in which they were enqueued, edges in the order of their nodes.
typedef struct sg_node_table_t {
  sg_allocator_t allocator;
  sg_node_t* nodes;
  size_t node_count;
  size_t node_capacity;
  unsigned char* params;
  size_t params_bytes;
  size_t params_capacity;
  sg_edge_t* edges;
  size_t edge_count;
} sg_node_table_t;

void sg_node_table_initialize(sg_allocator_t allocator,
                              sg_node_table_t* out_table);

// Accepts NULL and a zeroed table.
void sg_node_table_deinitialize(sg_node_table_t* table);

// Appends a copy of |launch|.
SG_MUST_USE sg_status_t sg_node_table_add(sg_node_table_t* table,
                                          const sg_launch_t* launch);

// A trace whose launches are added to |table|, which must outlive it.
sg_launch_trace_t sg_node_table_trace(sg_node_table_t* table);

// The params struct of |node|, suitably aligned.
const void* sg_node_params(const sg_node_table_t* table, const sg_node_t* node);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_NODE_TABLE_H_
