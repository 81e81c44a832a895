// SPDX-License-Identifier: Apache-2.0
//
// The batch as kernels see it: device pointers to its real counts and tables,
// beside the capacities that a launch was configured for.

#ifndef STEPGRAPH_KERNELS_COMMON_BATCH_TABLES_H_
#define STEPGRAPH_KERNELS_COMMON_BATCH_TABLES_H_

#include <stdint.h>

#include "runtime/base/batch_layout.h"

// What grids and workspaces are sized by. chunks is
// sg_chunk_capacity(tokens, sequences, chunk_size).
typedef struct sg_batch_capacity_t {
  int32_t tokens;
  int32_t sequences;
  int32_t chunks;
} sg_batch_capacity_t;

// Device pointers. Entries beyond the counts are never read.
typedef struct sg_batch_tables_t {
  const sg_batch_counts_t* counts;
  // [sequences + 1], first 0, then the running sum of query lengths.
  const int32_t* query_start_loc;
  // [sequences] tokens of the sequence before this step; 0 means fresh: its
  // slot is not read and the state starts from zeros.
  const int32_t* computed_lens;
  // [sequences] state slot; below 0 or equal to the null slot means none.
  const int32_t* slots;
  // [chunks][2] pairs (sequence, chunk of the sequence), sequence-major;
  // decodes have none.
  const int32_t* chunk_indices;
  // [sequences + 1] exclusive running sum of the chunks of each sequence, then
  // the total.
  const int64_t* chunk_offsets;
} sg_batch_tables_t;

// Most chunks that |tokens| tokens in at most |sequences| sequences can make:
// every sequence may end in a partial chunk, but needs a token for it.
static inline int64_t sg_chunk_capacity(int64_t tokens, int64_t sequences,
                                        int64_t chunk_size) {
  int64_t partial = tokens < sequences ? tokens : sequences;
  return (tokens - partial) / chunk_size + partial;
}

#endif  // STEPGRAPH_KERNELS_COMMON_BATCH_TABLES_H_
