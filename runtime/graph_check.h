// SPDX-License-Identifier: Apache-2.0
//
// Holds a captured graph against the trace of its recording, and completes the
// node table with what only the graph knows. Internal to the recorder.

#ifndef STEPGRAPH_RUNTIME_GRAPH_CHECK_H_
#define STEPGRAPH_RUNTIME_GRAPH_CHECK_H_

#include "runtime/recorder.h"

// The nodes that traced launches became, in their order.
typedef struct sg_traced_nodes_t {
  hipGraphNode_t* handles;
  size_t count;
  size_t capacity;
} sg_traced_nodes_t;

// Old runtimes lose nodes without an error, so counts are compared rather than
// believed. Fills the graph's counts and the table's edges.
//
// Without foreign work, |traced| is NULL: the graph must be one chain of as
// many kernels as the table has rows.
// With it, nodes that are not in |traced| get rows of the op "caller"; rows are
// put in an order that no edge runs against, those of the trace as they were.
SG_MUST_USE sg_status_t sg_graph_check(sg_allocator_t allocator,
                                       hipGraph_t captured,
                                       const sg_traced_nodes_t* traced,
                                       sg_graph_t* graph);

#endif  // STEPGRAPH_RUNTIME_GRAPH_CHECK_H_
