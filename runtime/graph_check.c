// SPDX-License-Identifier: Apache-2.0

#include "runtime/graph_check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/hip/error.h"

// A captured graph's nodes and edges, in arrays of our own.
typedef struct structure_t {
  hipGraphNode_t* nodes;
  hipGraphNode_t* from;
  hipGraphNode_t* to;
  size_t node_count;
  size_t edge_count;
} structure_t;

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
    case hipGraphNodeTypeKernel:
      return "kernel";
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
      return "unknown";
  }
}

static bool type_is_allowed(hipGraphNodeType type, bool foreign) {
  if (type == hipGraphNodeTypeKernel) return true;
  return foreign &&
         (type == hipGraphNodeTypeMemcpy || type == hipGraphNodeTypeMemset ||
          type == hipGraphNodeTypeEmpty);
}

static sg_status_t check_types(const structure_t* s, bool foreign) {
  for (size_t i = 0; i < s->node_count; ++i) {
    hipGraphNodeType type;
    SG_RETURN_IF_HIP_ERROR(hipGraphNodeGetType, s->nodes[i], &type);
    if (type_is_allowed(type, foreign)) continue;
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "captured graph: node %zu is a %s node (type %d), "
                          "expected kernel nodes%s",
                          i, node_type_name(type), (int)type,
                          foreign ? ", fills and copies" : " alone");
  }
  return sg_status_ok();
}

static sg_status_t add_edges(sg_node_table_t* table, size_t edge_count) {
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(table->allocator, "node edges", edge_count,
                                 sizeof(sg_edge_t), &memory));
  table->edges = memory;
  table->edge_count = edge_count;
  return sg_status_ok();
}

// A graph without cycles that has n nodes and n - 1 edges, no two from or to
// the same node, is one chain.
static sg_status_t check_chain(const structure_t* s, sg_node_table_t* table) {
  if (s->node_count != table->node_count) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "captured graph: %zu nodes, %zu launches were "
                          "enqueued",
                          s->node_count, table->node_count);
  }
  if (s->edge_count + 1 != s->node_count ||
      !all_different(s->from, s->edge_count) ||
      !all_different(s->to, s->edge_count)) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "captured graph: %zu nodes and %zu edges do not "
                          "make one chain",
                          s->node_count, s->edge_count);
  }
  SG_RETURN_IF_ERROR(add_edges(table, s->edge_count));
  for (size_t i = 0; i < s->edge_count; ++i) {
    table->edges[i] = (sg_edge_t){(uint32_t)i, (uint32_t)(i + 1)};
  }
  return sg_status_ok();
}

// Index of |node| among |count| handles, or count.
static size_t index_of(const hipGraphNode_t* handles, size_t count,
                       hipGraphNode_t node) {
  size_t i = 0;
  while (i < count && handles[i] != node) ++i;
  return i;
}

// Puts the nodes in an order that no edge runs against. |blocked| counts, for
// each node, the edges into it from nodes that have no place yet.
static sg_status_t order_nodes(structure_t* s, uint32_t* blocked) {
  for (size_t e = 0; e < s->edge_count; ++e) {
    ++blocked[index_of(s->nodes, s->node_count, s->to[e])];
  }
  for (size_t place = 0; place < s->node_count; ++place) {
    size_t next = place;
    while (next < s->node_count && blocked[next] != 0) ++next;
    if (next == s->node_count) {
      return sg_status_make(SG_STATUS_INTERNAL,
                            "captured graph: a circle among %zu nodes",
                            s->node_count - place);
    }
    hipGraphNode_t node = s->nodes[next];
    memmove(&s->nodes[place + 1], &s->nodes[place],
            (next - place) * sizeof(hipGraphNode_t));
    memmove(&blocked[place + 1], &blocked[place],
            (next - place) * sizeof(*blocked));
    s->nodes[place] = node;
    blocked[place] = 0;
    for (size_t e = 0; e < s->edge_count; ++e) {
      if (s->from[e] != node) continue;
      --blocked[index_of(s->nodes, s->node_count, s->to[e])];
    }
  }
  return sg_status_ok();
}

static const sg_kernel_t caller_kernel = {.op = "caller", .name = "kernel"};
static const sg_kernel_t caller_memset = {.op = "caller", .name = "memset"};
static const sg_kernel_t caller_memcpy = {.op = "caller", .name = "memcpy"};
static const sg_kernel_t caller_empty = {.op = "caller", .name = "empty"};

static sg_status_t describe_foreign(hipGraphNode_t node,
                                    sg_launch_t* out_launch) {
  hipGraphNodeType type;
  SG_RETURN_IF_HIP_ERROR(hipGraphNodeGetType, node, &type);
  *out_launch = (sg_launch_t){.kernel = &caller_empty, .layer = -1};
  if (type == hipGraphNodeTypeMemset) out_launch->kernel = &caller_memset;
  if (type == hipGraphNodeTypeMemcpy) out_launch->kernel = &caller_memcpy;
  if (type != hipGraphNodeTypeKernel) return sg_status_ok();
  hipKernelNodeParams params;
  memset(&params, 0, sizeof(params));
  SG_RETURN_IF_HIP_ERROR(hipGraphKernelNodeGetParams, node, &params);
  out_launch->kernel = &caller_kernel;
  out_launch->grid = params.gridDim.x * params.gridDim.y * params.gridDim.z;
  out_launch->block = params.blockDim.x * params.blockDim.y * params.blockDim.z;
  out_launch->shared_bytes = params.sharedMemBytes;
  return sg_status_ok();
}

// Replaces |table| by one with a row for every node.
static sg_status_t complete_table(const structure_t* s,
                                  const sg_traced_nodes_t* traced,
                                  sg_node_table_t* table) {
  size_t found = 0;
  sg_node_table_t whole;
  sg_node_table_initialize(table->allocator, &whole);
  sg_status_t status = sg_status_ok();
  for (size_t i = 0; i < s->node_count && sg_status_is_ok(status); ++i) {
    size_t row = index_of(traced->handles, traced->count, s->nodes[i]);
    sg_launch_t launch;
    if (row < traced->count) {
      const sg_node_t* node = &table->nodes[row];
      launch = (sg_launch_t){node->kernel,       node->layer,
                             node->grid,         node->block,
                             node->shared_bytes, sg_node_params(table, node)};
      ++found;
    } else {
      status = describe_foreign(s->nodes[i], &launch);
    }
    if (sg_status_is_ok(status)) status = sg_node_table_add(&whole, &launch);
  }
  if (sg_status_is_ok(status) && found != table->node_count) {
    status = sg_status_make(SG_STATUS_UNSUPPORTED,
                            "captured graph: %zu of %zu launches became nodes",
                            found, table->node_count);
  }
  if (!sg_status_is_ok(status)) {
    sg_node_table_deinitialize(&whole);
    return status;
  }
  sg_node_table_deinitialize(table);
  *table = whole;
  return sg_status_ok();
}

static int compare_edges(const void* a, const void* b) {
  const sg_edge_t* left = a;
  const sg_edge_t* right = b;
  if (left->from != right->from) return left->from < right->from ? -1 : 1;
  return (left->to > right->to) - (left->to < right->to);
}

static sg_status_t check_foreign(structure_t* s, uint32_t* blocked,
                                 const sg_traced_nodes_t* traced,
                                 sg_node_table_t* table) {
  SG_RETURN_IF_ERROR(order_nodes(s, blocked));
  SG_RETURN_IF_ERROR(complete_table(s, traced, table));
  SG_RETURN_IF_ERROR(add_edges(table, s->edge_count));
  for (size_t e = 0; e < s->edge_count; ++e) {
    table->edges[e] =
        (sg_edge_t){(uint32_t)index_of(s->nodes, s->node_count, s->from[e]),
                    (uint32_t)index_of(s->nodes, s->node_count, s->to[e])};
  }
  qsort(table->edges, s->edge_count, sizeof(sg_edge_t), compare_edges);
  return sg_status_ok();
}

static sg_status_t check_structure(hipGraph_t captured, structure_t* s,
                                   uint32_t* blocked,
                                   const sg_traced_nodes_t* traced,
                                   sg_graph_t* graph) {
  SG_RETURN_IF_HIP_ERROR(hipGraphGetNodes, captured, s->nodes, &s->node_count);
  SG_RETURN_IF_ERROR(check_types(s, traced != NULL));
  // No edges is no call: runtimes differ in what they make of empty arrays.
  if (s->edge_count > 0) {
    SG_RETURN_IF_HIP_ERROR(hipGraphGetEdges, captured, s->from, s->to,
                           &s->edge_count);
  }
  if (traced == NULL) return check_chain(s, &graph->nodes);
  return check_foreign(s, blocked, traced, &graph->nodes);
}

sg_status_t sg_graph_check(sg_allocator_t allocator, hipGraph_t captured,
                           const sg_traced_nodes_t* traced, sg_graph_t* graph) {
  SG_RETURN_IF_HIP_ERROR(hipGraphGetNodes, captured, NULL,
                         &graph->runtime_node_count);
  SG_RETURN_IF_HIP_ERROR(hipGraphGetEdges, captured, NULL, NULL,
                         &graph->runtime_edge_count);
  size_t node_count = graph->runtime_node_count;
  size_t edge_count = graph->runtime_edge_count;
  if (node_count == 0) {
    return sg_status_make(
        SG_STATUS_UNSUPPORTED,
        "captured graph: no nodes, %zu launches were enqueued",
        graph->nodes.node_count);
  }
  void *handles = NULL, *blocked = NULL;
  sg_status_t status =
      sg_allocate(allocator, "graph check", node_count + 2 * edge_count,
                  sizeof(hipGraphNode_t), &handles);
  if (sg_status_is_ok(status)) {
    // One more, for an edge to a node that hipGraphGetNodes did not name.
    status = sg_allocate(allocator, "graph check", node_count + 1,
                         sizeof(uint32_t), &blocked);
  }
  if (sg_status_is_ok(status)) {
    hipGraphNode_t* nodes = handles;
    structure_t structure = {nodes, nodes + node_count,
                             nodes + node_count + edge_count, node_count,
                             edge_count};
    status = check_structure(captured, &structure, blocked, traced, graph);
  }
  sg_release(allocator, handles);
  sg_release(allocator, blocked);
  return status;
}
