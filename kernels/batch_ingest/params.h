// SPDX-License-Identifier: Apache-2.0
//
// batch_ingest: the first node of a step. It takes the batch from the ring of
// pinned entries to its fixed place on the device, so that everything recorded
// after it has addresses that never change.
//
//   step    = cursor.next_step, which advances by one
//   entry   = ring[step mod ring_depth], which must hold that step
//   tables  = the entry's arrays, or the device arrays that the entry names;
//             sequences from the real count to the capacity are empty (they
//             repeat the last offset) and have no slot
//   counts  = real sizes, no error
//
// Constraints
//   grid    1 block; any block size
//   ring    mapped pinned memory, coherent
//   types   int32 tables, int64 chunk_offsets

#ifndef STEPGRAPH_KERNELS_BATCH_INGEST_PARAMS_H_
#define STEPGRAPH_KERNELS_BATCH_INGEST_PARAMS_H_

#include "runtime/base/batch_layout.h"

typedef struct sg_batch_ingest_params_t {
  const unsigned char* ring;
  sg_step_cursor_t* cursor;
  sg_batch_counts_t* counts;
  int32_t* query_start_loc;  // [sequence_capacity + 1]
  int32_t* computed_lens;    // [sequence_capacity]
  int32_t* slots;            // [sequence_capacity]
  // Both NULL unless the host's chunk tables travel in the entry.
  int32_t* chunk_indices;  // [chunk_capacity][2]
  int64_t* chunk_offsets;  // [sequence_capacity + 1]
  sg_batch_entry_layout_t layout;
  int32_t ring_depth;
  // Capacities of this launch, at most those of the layout.
  int32_t sequence_capacity;
  int32_t chunk_capacity;
  int32_t reserved;
} sg_batch_ingest_params_t;

#endif  // STEPGRAPH_KERNELS_BATCH_INGEST_PARAMS_H_
