// SPDX-License-Identifier: Apache-2.0
//
// The dump as JSON, as schemas/dump.schema.json describes it.

#include <math.h>

#include "graphs/dump.h"
#include "graphs/dump_value.h"
#include "schemas/json_writer.h"

static void write_float(sg_json_writer_t* writer, double value) {
  // JSON has no such numbers.
  if (isnan(value)) {
    sg_json_writer_string(writer, "nan");
  } else if (isinf(value)) {
    sg_json_writer_string(writer, value < 0 ? "-inf" : "inf");
  } else {
    sg_json_writer_double(writer, value);
  }
}

static void write_pointer(sg_json_writer_t* writer,
                          const sg__dump_value_t* value) {
  if (value->address == 0) {
    sg_json_writer_null(writer);
    return;
  }
  if (value->region == NULL) {
    sg_json_writer_string(writer, "unknown");
    return;
  }
  sg_json_writer_begin_inline_object(writer);
  sg_json_writer_key(writer, "buffer");
  sg_json_writer_string(writer, value->region->name);
  sg_json_writer_key(writer, "offset_bytes");
  sg_json_writer_uint64(writer, value->offset_bytes);
  sg_json_writer_end_object(writer);
}

static void write_value(sg_json_writer_t* writer,
                        const sg__dump_value_t* value) {
  switch (value->type) {
    case SG_PARAM_I32:
    case SG_PARAM_I64:
      sg_json_writer_int64(writer, value->i64);
      break;
    case SG_PARAM_U32:
    case SG_PARAM_U64:
      sg_json_writer_uint64(writer, value->u64);
      break;
    case SG_PARAM_F32:
      write_float(writer, value->f64);
      break;
    case SG_PARAM_POINTER:
      write_pointer(writer, value);
      break;
  }
}

static void write_params(const sg_dump_t* dump, const sg_node_table_t* nodes,
                         const sg_node_t* node, sg_json_writer_t* writer) {
  const void* params = sg_node_params(nodes, node);
  sg_json_writer_begin_object(writer);
  for (size_t i = 0; i < node->kernel->field_count; ++i) {
    const sg_param_field_t* field = &node->kernel->fields[i];
    sg__dump_value_t value = sg__dump_value(dump, params, field);
    sg_json_writer_key(writer, field->name);
    write_value(writer, &value);
  }
  sg_json_writer_end_object(writer);
}

static void write_node(const sg_dump_t* dump, const sg_node_table_t* nodes,
                       size_t index, sg_json_writer_t* writer) {
  const sg_node_t* node = &nodes->nodes[index];
  sg_json_writer_begin_object(writer);
  sg_json_writer_key(writer, "index");
  sg_json_writer_uint64(writer, index);
  sg_json_writer_key(writer, "op");
  sg_json_writer_string(writer, node->kernel->op);
  sg_json_writer_key(writer, "kernel");
  sg_json_writer_string(writer, node->kernel->name);
  sg_json_writer_key(writer, "layer");
  if (node->layer < 0) {
    sg_json_writer_null(writer);
  } else {
    sg_json_writer_int64(writer, node->layer);
  }
  sg_json_writer_key(writer, "grid");
  sg_json_writer_uint64(writer, node->grid);
  sg_json_writer_key(writer, "block");
  sg_json_writer_uint64(writer, node->block);
  sg_json_writer_key(writer, "shared_bytes");
  sg_json_writer_uint64(writer, node->shared_bytes);
  sg_json_writer_key(writer, "params");
  write_params(dump, nodes, node, writer);
  sg_json_writer_end_object(writer);
}

static void write_shape(const sg_shape_t* shape, sg_json_writer_t* writer) {
  sg_json_writer_key(writer, "shape");
  sg_json_writer_begin_inline_object(writer);
  sg_json_writer_key(writer, "name");
  sg_json_writer_string(writer, shape->name);
  sg_json_writer_key(writer, "phase");
  sg_json_writer_string(writer, sg_phase_name(shape->phase));
  sg_json_writer_key(writer, "max_tokens");
  sg_json_writer_int64(writer, shape->max_tokens);
  sg_json_writer_key(writer, "max_sequences");
  sg_json_writer_int64(writer, shape->max_sequences);
  sg_json_writer_end_object(writer);
}

static void write_graph(const sg_dump_t* dump, const sg_dump_graph_t* graph,
                        sg_json_writer_t* writer) {
  const sg_node_table_t* nodes = graph->nodes;
  sg_json_writer_begin_object(writer);
  write_shape(graph->shape, writer);
  sg_json_writer_key(writer, "node_count");
  sg_json_writer_uint64(writer, nodes->node_count);
  sg_json_writer_key(writer, "edge_count");
  sg_json_writer_uint64(writer, nodes->edge_count);
  sg_json_writer_key(writer, "nodes");
  sg_json_writer_begin_array(writer);
  for (size_t i = 0; i < nodes->node_count; ++i) {
    write_node(dump, nodes, i, writer);
  }
  sg_json_writer_end_array(writer);
  sg_json_writer_key(writer, "edges");
  sg_json_writer_begin_array(writer);
  for (size_t i = 0; i < nodes->edge_count; ++i) {
    sg_json_writer_begin_inline_array(writer);
    sg_json_writer_uint64(writer, nodes->edges[i].from);
    sg_json_writer_uint64(writer, nodes->edges[i].to);
    sg_json_writer_end_array(writer);
  }
  sg_json_writer_end_array(writer);
  sg_json_writer_end_object(writer);
}

sg_status_t sg_dump_write_json(const sg_dump_t* dump, FILE* file) {
  sg_json_writer_t writer;
  sg_json_writer_initialize_file(&writer, file, /*indent_spaces=*/2);
  sg_json_writer_begin_object(&writer);
  sg_json_writer_key(&writer, "version");
  sg_json_writer_int64(&writer, 1);
  sg_json_writer_key(&writer, "model");
  sg_json_writer_string(&writer, dump->model);
  sg_json_writer_key(&writer, "target");
  sg_json_writer_string(&writer, dump->target->name);
  sg_json_writer_key(&writer, "buffers");
  sg_json_writer_begin_array(&writer);
  for (size_t i = 0; i < dump->region_count; ++i) {
    sg_json_writer_begin_inline_object(&writer);
    sg_json_writer_key(&writer, "name");
    sg_json_writer_string(&writer, dump->regions[i].name);
    sg_json_writer_key(&writer, "bytes");
    sg_json_writer_uint64(&writer, dump->regions[i].bytes);
    sg_json_writer_end_object(&writer);
  }
  sg_json_writer_end_array(&writer);
  sg_json_writer_key(&writer, "graphs");
  sg_json_writer_begin_array(&writer);
  for (size_t i = 0; i < dump->graph_count; ++i) {
    write_graph(dump, &dump->graphs[i], &writer);
  }
  sg_json_writer_end_array(&writer);
  sg_json_writer_end_object(&writer);
  sg_status_t status = sg_json_writer_finish(&writer);
  sg_json_writer_deinitialize(&writer);
  return status;
}
