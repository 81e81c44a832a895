// SPDX-License-Identifier: Apache-2.0
//
// The dump as text: for each graph a table of its nodes, its edges, and then
// the parameters of each node.

#include <inttypes.h>
#include <string.h>

#include "graphs/dump.h"
#include "graphs/dump_value.h"

static int wider(int width, const char* text) {
  int length = (int)strlen(text);
  return length > width ? length : width;
}

static void layer_text(int32_t layer, char out_text[16]) {
  if (layer < 0) {
    snprintf(out_text, 16, "-");
  } else {
    snprintf(out_text, 16, "%" PRId32, layer);
  }
}

static void write_nodes(const sg_node_table_t* nodes, FILE* file) {
  int op_width = 2;
  int kernel_width = 6;
  for (size_t i = 0; i < nodes->node_count; ++i) {
    op_width = wider(op_width, nodes->nodes[i].kernel->op);
    kernel_width = wider(kernel_width, nodes->nodes[i].kernel->name);
  }
  fprintf(file, "\n  %4s  %5s  %-*s  %-*s  %8s  %5s  %12s\n", "node", "layer",
          op_width, "op", kernel_width, "kernel", "grid", "block",
          "shared bytes");
  for (size_t i = 0; i < nodes->node_count; ++i) {
    const sg_node_t* node = &nodes->nodes[i];
    char layer[16];
    layer_text(node->layer, layer);
    fprintf(file, "  %4zu  %5s  %-*s  %-*s  %8u  %5u  %12u\n", i, layer,
            op_width, node->kernel->op, kernel_width, node->kernel->name,
            node->grid, node->block, node->shared_bytes);
  }
}

// Whether each node is followed by the next and by nothing else.
static bool is_chain(const sg_node_table_t* nodes) {
  if (nodes->node_count == 0) return nodes->edge_count == 0;
  if (nodes->edge_count != nodes->node_count - 1) return false;
  for (size_t i = 0; i < nodes->edge_count; ++i) {
    if (nodes->edges[i].from != i || nodes->edges[i].to != i + 1) return false;
  }
  return true;
}

static void write_edges(const sg_node_table_t* nodes, FILE* file) {
  if (nodes->node_count > 1 && is_chain(nodes)) {
    fprintf(file, "\n  edges: a chain, 0 -> 1 -> ... -> %zu\n",
            nodes->node_count - 1);
    return;
  }
  fprintf(file, "\n  edges:%s", nodes->edge_count == 0 ? " none" : "");
  for (size_t i = 0; i < nodes->edge_count; ++i) {
    fprintf(file, "%s%u -> %u", i % 8 == 0 ? "\n    " : ", ",
            nodes->edges[i].from, nodes->edges[i].to);
  }
  fputc('\n', file);
}

static void write_params(const sg_dump_t* dump, const sg_node_table_t* nodes,
                         size_t index, FILE* file) {
  const sg_node_t* node = &nodes->nodes[index];
  const sg_kernel_t* kernel = node->kernel;
  char layer[16];
  layer_text(node->layer, layer);
  fprintf(file, "\n  node %zu, layer %s: %s\n", index, layer, kernel->name);
  int width = 0;
  for (size_t i = 0; i < kernel->field_count; ++i) {
    width = wider(width, kernel->fields[i].name);
  }
  const void* params = sg_node_params(nodes, node);
  for (size_t i = 0; i < kernel->field_count; ++i) {
    sg__dump_value_t value = sg__dump_value(dump, params, &kernel->fields[i]);
    char text[SG__DUMP_TEXT_BYTES];
    sg__dump_value_text(&value, text);
    fprintf(file, "    %-*s  %s\n", width, kernel->fields[i].name, text);
  }
}

static void write_graph(const sg_dump_t* dump, const sg_dump_graph_t* graph,
                        FILE* file) {
  const sg_shape_t* shape = graph->shape;
  fprintf(file,
          "\nshape %s: %s, at most %d tokens and %d sequences; %zu nodes, %zu "
          "edges\n",
          shape->name, sg_phase_name(shape->phase), shape->max_tokens,
          shape->max_sequences, graph->nodes->node_count,
          graph->nodes->edge_count);
  write_nodes(graph->nodes, file);
  write_edges(graph->nodes, file);
  for (size_t i = 0; i < graph->nodes->node_count; ++i) {
    write_params(dump, graph->nodes, i, file);
  }
}

static void write_buffers(const sg_dump_t* dump, FILE* file) {
  int width = 0;
  for (size_t i = 0; i < dump->region_count; ++i) {
    width = wider(width, dump->regions[i].name);
  }
  fprintf(file, "\nbuffers:\n");
  for (size_t i = 0; i < dump->region_count; ++i) {
    fprintf(file, "  %-*s  %14zu bytes\n", width, dump->regions[i].name,
            dump->regions[i].bytes);
  }
}

sg_status_t sg_dump_write_text(const sg_dump_t* dump, FILE* file) {
  fprintf(file, "model %s, target %s, %zu %s\n", dump->model,
          dump->target->name, dump->graph_count,
          dump->graph_count == 1 ? "graph" : "graphs");
  for (size_t i = 0; i < dump->graph_count; ++i) {
    write_graph(dump, &dump->graphs[i], file);
  }
  write_buffers(dump, file);
  return sg__dump_finish(file);
}
