// SPDX-License-Identifier: Apache-2.0
//
// chunk_metadata: checks a batch on the device and builds what the chunk
// kernels index by, once a step for all layers.
//
//   decode_count   longest prefix of sequences with length 1, computed above 0
//   chunks of n    ceil(length[n] / chunk_size) from decode_count on, else 0
//   chunk_offsets  [n] = chunks of the sequences before n; [N] = all
//   chunk_indices  pairs (n, chunk of n), sequence-major
//
// With no decodes these are the tables of vLLM's device-side builder for KDA
// (vLLM pull request 51862), also where empty sequences stand between others.
// When the tables are given it checks them instead of writing them.
//
// A fault (sg_step_error_t) sets the counts' error fields. Of several faults
// the one of the lowest sequence is kept, and of its faults the one that the
// enumeration has first. An error that is already set stays.
//
// Constraints
//   grid    1 block, any block size; any number of sequences
//   types   query_start_loc int32 or int64 as declared; chunk_indices int32,
//           chunk_offsets int64
//   scratch slot_stamps: uint64 [1 + slot_count], zeroed once before the first
//           step and then left to this op

#ifndef STEPGRAPH_KERNELS_CHUNK_METADATA_PARAMS_H_
#define STEPGRAPH_KERNELS_CHUNK_METADATA_PARAMS_H_

#include "runtime/base/batch_layout.h"

// Which sequences the step was recorded for.
typedef enum sg_step_content_t {
  SG_STEP_CONTENT_ANY = 0,
  SG_STEP_CONTENT_DECODES = 1,
  SG_STEP_CONTENT_PREFILLS = 2,
} sg_step_content_t;

typedef struct sg_chunk_metadata_params_t {
  // sequence_count and the error are read, everything else is written; all of
  // it is written where the op stands alone.
  sg_batch_counts_t* counts;
  // [sequence_capacity + 1], of offset_bytes each.
  const void* query_start_loc;
  // int32 copy for the other kernels; NULL where query_start_loc is int32.
  int32_t* query_start_loc_copy;
  const int32_t* computed_lens;  // [sequence_capacity]
  const int32_t* slots;          // [sequence_capacity]
  int32_t* chunk_indices;        // [chunk_capacity][2]
  int64_t* chunk_offsets;        // [sequence_capacity + 1]
  uint64_t* slot_stamps;
  // Of an op that stands alone: how many sequences there are, or NULL for
  // sequence_capacity.
  const int32_t* sequence_count;
  int32_t sequence_capacity;
  int32_t token_capacity;
  int32_t chunk_capacity;
  int32_t chunk_size;
  int32_t slot_count;
  int32_t null_slot;
  int32_t content;       // sg_step_content_t
  int32_t offset_bytes;  // 4 or 8
  int32_t tables_given;  // 0: build them, 1: check them
  // 1 where no batch_ingest comes before, as in a capture of the caller's own:
  // the counts are then started here.
  int32_t stands_alone;
} sg_chunk_metadata_params_t;

#endif  // STEPGRAPH_KERNELS_CHUNK_METADATA_PARAMS_H_
