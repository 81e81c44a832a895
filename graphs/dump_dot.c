// SPDX-License-Identifier: Apache-2.0
//
// The dump as a picture for Graphviz ("dot -Tsvg"): a cluster a graph, in it a
// cluster a layer. A node shows its kernel and configuration; its parameters
// stand in the tooltip, which SVG viewers show.

#include <inttypes.h>
#include <string.h>

#include "graphs/dump.h"
#include "graphs/dump_value.h"

// Colours that a reader can tell apart.
static const char* const fills[] = {"#dbe9f6", "#fde5cd", "#dcf0dc", "#f3dcee",
                                    "#fff4c2", "#e3def3", "#d5f0ee", "#f6d9d9"};

enum { FILL_COUNT = sizeof(fills) / sizeof(fills[0]) };

// The ops that have a colour each, in the order in which nodes bring them.
typedef struct palette_t {
  const char* ops[FILL_COUNT];
  size_t count;
} palette_t;

// Writes |text| inside a quoted string.
static void write_escaped(const char* text, FILE* file) {
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') fputc('\\', file);
    fputc(*text, file);
  }
}

// Ops beyond the colours there are share the last one.
static const char* fill_of(palette_t* palette, const char* op) {
  size_t i = 0;
  while (i < palette->count && strcmp(palette->ops[i], op) != 0) ++i;
  if (i == palette->count && i < FILL_COUNT)
    palette->ops[palette->count++] = op;
  return fills[i < FILL_COUNT ? i : FILL_COUNT - 1];
}

static void write_tooltip(const sg_dump_t* dump, const sg_node_table_t* nodes,
                          const sg_node_t* node, FILE* file) {
  const void* params = sg_node_params(nodes, node);
  for (size_t i = 0; i < node->kernel->field_count; ++i) {
    const sg_param_field_t* field = &node->kernel->fields[i];
    sg__dump_value_t value = sg__dump_value(dump, params, field);
    char text[SG__DUMP_TEXT_BYTES];
    sg__dump_value_text(&value, text);
    write_escaped(field->name, file);
    fputs(" = ", file);
    write_escaped(text, file);
    fputs("\\n", file);
  }
}

static void write_node(const sg_dump_t* dump, size_t graph_index,
                       const sg_node_table_t* nodes, size_t index,
                       palette_t* palette, FILE* file) {
  const sg_node_t* node = &nodes->nodes[index];
  fprintf(file, "      g%zu_n%zu [label=\"%zu  ", graph_index, index, index);
  write_escaped(node->kernel->name, file);
  fprintf(file, "\\n%u %s x %u %s", node->grid,
          node->grid == 1 ? "block" : "blocks", node->block,
          node->block == 1 ? "thread" : "threads");
  if (node->shared_bytes > 0) fprintf(file, ", %u B", node->shared_bytes);
  fprintf(file, "\", fillcolor=\"%s\", tooltip=\"",
          fill_of(palette, node->kernel->op));
  write_tooltip(dump, nodes, node, file);
  fputs("\"];\n", file);
}

static void write_layer(const sg_dump_t* dump, size_t graph_index,
                        const sg_node_table_t* nodes, int32_t layer,
                        palette_t* palette, FILE* file) {
  if (layer >= 0) {
    fprintf(file, "    subgraph cluster_g%zu_layer%" PRId32 " {\n", graph_index,
            layer);
    fprintf(file,
            "      label=\"layer %" PRId32
            "\"; style=\"rounded,filled\"; "
            "color=\"#c8c8c8\"; fillcolor=\"#fafafa\";\n",
            layer);
  }
  for (size_t i = 0; i < nodes->node_count; ++i) {
    if (nodes->nodes[i].layer != layer) continue;
    write_node(dump, graph_index, nodes, i, palette, file);
  }
  if (layer >= 0) fputs("    }\n", file);
}

static void write_graph(const sg_dump_t* dump, size_t index, palette_t* palette,
                        FILE* file) {
  const sg_shape_t* shape = dump->graphs[index].shape;
  const sg_node_table_t* nodes = dump->graphs[index].nodes;
  fprintf(file, "  subgraph cluster_g%zu {\n    label=\"", index);
  write_escaped(shape->name, file);
  fprintf(file,
          "\\n%s, at most %d tokens, %d sequences\\n%zu nodes, %zu edges\";\n",
          sg_phase_name(shape->phase), shape->max_tokens, shape->max_sequences,
          nodes->node_count, nodes->edge_count);
  int32_t last_layer = -1;
  for (size_t i = 0; i < nodes->node_count; ++i) {
    if (nodes->nodes[i].layer > last_layer) last_layer = nodes->nodes[i].layer;
  }
  for (int32_t layer = -1; layer <= last_layer; ++layer) {
    write_layer(dump, index, nodes, layer, palette, file);
  }
  for (size_t i = 0; i < nodes->edge_count; ++i) {
    fprintf(file, "    g%zu_n%u -> g%zu_n%u;\n", index, nodes->edges[i].from,
            index, nodes->edges[i].to);
  }
  fputs("  }\n", file);
}

sg_status_t sg_dump_write_dot(const sg_dump_t* dump, FILE* file) {
  fputs("digraph \"", file);
  write_escaped(dump->model, file);
  fputs("\" {\n  label=\"model ", file);
  write_escaped(dump->model, file);
  fprintf(file, ", target %s\";\n", dump->target->name);
  fputs(
      "  labelloc=t; labeljust=l; fontname=\"Helvetica\"; fontsize=14; "
      "compound=true;\n"
      "  nodesep=0.25; ranksep=0.25;\n"
      "  node [shape=box, style=\"rounded,filled\", color=\"#808080\", "
      "fontname=\"Helvetica\", fontsize=11];\n"
      "  edge [color=\"#606060\", arrowsize=0.7];\n",
      file);
  palette_t palette = {.count = 0};
  for (size_t i = 0; i < dump->graph_count; ++i) {
    write_graph(dump, i, &palette, file);
  }
  fputs("}\n", file);
  return sg__dump_finish(file);
}
