// SPDX-License-Identifier: Apache-2.0
//
// The ops of one whole KDA layer, enqueued one by one as a serving stack does
// that has graphs of its own: no executor, no ring, and a batch that stands in
// device arrays.

#ifndef STEPGRAPH_TESTS_GRAPHS_FOREIGN_OPS_H_
#define STEPGRAPH_TESTS_GRAPHS_FOREIGN_OPS_H_

#include "tests/graphs/kda_fixture.h"

typedef struct foreign_ops_t {
  // Buffers, inputs, the model, and an executor that has no part in it.
  kda_fixture_t fixture;
  const sg_target_t* target;
  // 4 or 8.
  int32_t offset_bytes;
  // Whether the count is on the device, or the batch is filled up with empty
  // sequences.
  bool counted;
  // The batch; what is beyond the count is garbage.
  void* offsets;
  int32_t* computed_lens;
  int32_t* slots;
  int32_t* sequence_count;
  // What the ops make of it.
  sg_batch_counts_t* counts;
  int32_t* offsets_copy;
  int32_t* chunk_indices;
  int64_t* chunk_offsets;
  uint64_t* slot_stamps;
  void* projections;
  void* workspace;
} foreign_ops_t;

// Exits with 77 where there is no device.
void foreign_ops_set_up(foreign_ops_t* ops, int32_t offset_bytes, bool counted);
void foreign_ops_tear_down(foreign_ops_t* ops);

// Enqueues the five ops, configured for |tokens| and |sequences|, on the
// fixture's stream.
void foreign_ops_enqueue(const foreign_ops_t* ops, int32_t tokens,
                         int32_t sequences);

// Writes |batch| to the device arrays; the stream must be idle. |sequences| is
// what the ops were enqueued for.
void foreign_ops_write(const foreign_ops_t* ops, const sg_batch_t* batch,
                       int32_t sequences);

#endif  // STEPGRAPH_TESTS_GRAPHS_FOREIGN_OPS_H_
