// SPDX-License-Identifier: Apache-2.0
//
// Writes what is in recorded graphs: as text to read, as JSON
// (schemas/dump.schema.json), or as a picture for Graphviz. A dump holds no
// address: a pointer is written as the buffer that it points into and the
// offset in bytes, so that dumps of the same step are the same bytes, and those
// of two versions can be compared.

#ifndef STEPGRAPH_GRAPHS_DUMP_H_
#define STEPGRAPH_GRAPHS_DUMP_H_

#include <stddef.h>
#include <stdio.h>

#include "runtime/executor.h"
#include "runtime/hip/target.h"
#include "runtime/node_table.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

// One recorded shape.
typedef struct sg_dump_graph_t {
  const sg_shape_t* shape;
  const sg_node_table_t* nodes;
} sg_dump_graph_t;

typedef struct sg_dump_t {
  // Name of the model.
  const char* model;
  const sg_target_t* target;
  const sg_dump_graph_t* graphs;
  size_t graph_count;
  // Where pointers may point. Of several regions that hold an address the
  // smallest names it; one in none is written as "unknown".
  const sg_memory_region_t* regions;
  size_t region_count;
} sg_dump_t;

// All three write to |file|, which stays the caller's. SG_STATUS_IO when it
// takes no more.
SG_MUST_USE sg_status_t sg_dump_write_text(const sg_dump_t* dump, FILE* file);
SG_MUST_USE sg_status_t sg_dump_write_json(const sg_dump_t* dump, FILE* file);
SG_MUST_USE sg_status_t sg_dump_write_dot(const sg_dump_t* dump, FILE* file);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_GRAPHS_DUMP_H_
