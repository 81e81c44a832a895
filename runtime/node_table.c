// SPDX-License-Identifier: Apache-2.0

#include "runtime/node_table.h"

#include <stdalign.h>
#include <string.h>

#include "runtime/base/checked.h"

void sg_node_table_initialize(sg_allocator_t allocator,
                              sg_node_table_t* out_table) {
  *out_table = (sg_node_table_t){.allocator = allocator};
}

void sg_node_table_deinitialize(sg_node_table_t* table) {
  if (table == NULL) return;
  sg_release(table->allocator, table->nodes);
  sg_release(table->allocator, table->params);
  sg_release(table->allocator, table->edges);
  *table = (sg_node_table_t){0};
}

// Makes room for |needed| elements, doubling what is there.
static sg_status_t grow(sg_allocator_t allocator, const char* what,
                        size_t needed, size_t element_bytes, void** memory,
                        size_t* capacity) {
  if (needed <= *capacity) return sg_status_ok();
  size_t wanted = *capacity < 64 ? 64 : *capacity * 2;
  if (wanted < needed) wanted = needed;
  void* larger;
  SG_RETURN_IF_ERROR(
      sg_allocate(allocator, what, wanted, element_bytes, &larger));
  if (*memory != NULL) memcpy(larger, *memory, *capacity * element_bytes);
  sg_release(allocator, *memory);
  *memory = larger;
  *capacity = wanted;
  return sg_status_ok();
}

sg_status_t sg_node_table_add(sg_node_table_t* table,
                              const sg_launch_t* launch) {
  size_t offset;
  if (!sg_checked_align(table->params_bytes, alignof(max_align_t), &offset)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "node table: params");
  }
  size_t end = offset + launch->kernel->params_bytes;
  void* nodes = table->nodes;
  void* params = table->params;
  sg_status_t status =
      grow(table->allocator, "node table", table->node_count + 1,
           sizeof(sg_node_t), &nodes, &table->node_capacity);
  table->nodes = nodes;
  SG_RETURN_IF_ERROR(status);
  status = grow(table->allocator, "node params", end, 1, &params,
                &table->params_capacity);
  table->params = params;
  SG_RETURN_IF_ERROR(status);
  // Rows of the caller's nodes have none.
  if (end > offset)
    memcpy(table->params + offset, launch->params, end - offset);
  table->params_bytes = end;
  table->nodes[table->node_count++] = (sg_node_t){
      .kernel = launch->kernel,
      .layer = launch->layer,
      .grid = launch->grid,
      .block = launch->block,
      .shared_bytes = launch->shared_bytes,
      .params_offset = offset,
  };
  return sg_status_ok();
}

static sg_status_t trace_add(void* self, const sg_launch_t* launch) {
  return sg_node_table_add(self, launch);
}

sg_launch_trace_t sg_node_table_trace(sg_node_table_t* table) {
  return (sg_launch_trace_t){.self = table, .add = trace_add};
}

const void* sg_node_params(const sg_node_table_t* table,
                           const sg_node_t* node) {
  return table->params + node->params_offset;
}
