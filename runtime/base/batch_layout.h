// SPDX-License-Identifier: Apache-2.0
//
// Structs that host and device code both read: what a batch looks like in the
// ring of steps and in its fixed place on the device, and the mailbox through
// which the device answers. Plain C without pointers to host-only types, so
// that device compilers take it as it is.

#ifndef STEPGRAPH_RUNTIME_BASE_BATCH_LAYOUT_H_
#define STEPGRAPH_RUNTIME_BASE_BATCH_LAYOUT_H_

#include <stdint.h>

// Faults of a batch that the device finds. A step with a fault changes no
// state; its outputs are zero.
typedef enum sg_step_error_t {
  SG_STEP_ERROR_NONE = 0,
  // The ring entry does not hold the step that the device expects; value is
  // the step number found there.
  SG_STEP_ERROR_STALE_ENTRY = 1,
  // More sequences than the capacity, or fewer than none; value is the count.
  SG_STEP_ERROR_SEQUENCE_COUNT = 2,
  // query_start_loc[0] is not 0, also where there is no sequence; value is what
  // it is, sequence 0.
  SG_STEP_ERROR_FIRST_OFFSET = 3,
  // query_start_loc decreases at this sequence; value is its length.
  SG_STEP_ERROR_DECREASING_OFFSET = 4,
  // query_start_loc passes the token capacity here; value is the offset.
  SG_STEP_ERROR_TOKEN_COUNT = 5,
  // A slot of a non-empty sequence is not below the slot count; value is it.
  SG_STEP_ERROR_SLOT_RANGE = 6,
  // A non-empty sequence has the slot of an earlier one; value is the slot.
  SG_STEP_ERROR_SLOT_DUPLICATE = 7,
  // A non-empty sequence that is no decode in a step recorded for decodes only,
  // or the other way round; value is its query length.
  SG_STEP_ERROR_PHASE = 8,
  // Given chunk tables do not describe this batch; value is the table row, or
  // the number of rows where an entry has more than the capacity.
  SG_STEP_ERROR_TABLES = 9,
  // A non-empty sequence with a negative computed length; value is that length.
  SG_STEP_ERROR_COMPUTED_LENGTH = 10,
} sg_step_error_t;

// The first fault of a step. sequence is -1 where none is to blame.
typedef struct sg_step_error_record_t {
  uint64_t step;
  int64_t value;
  int32_t code;
  int32_t sequence;
} sg_step_error_record_t;

// Real sizes of the batch on the device. Kernels read their counts from here;
// what is recorded in a graph is capacities only.
typedef struct sg_batch_counts_t {
  int32_t sequence_count;
  int32_t token_count;
  // Length of the longest prefix of sequences with query length 1 and computed
  // length above 0. Their tokens are rows 0 to decode_count - 1.
  int32_t decode_count;
  // Chunks of the sequences after the decodes.
  int32_t chunk_count;
  // An sg_step_error_t; other than 0 it gates every write of state and output.
  int32_t error_code;
  int32_t error_sequence;
  int64_t error_value;
} sg_batch_counts_t;

// Where the tables of a step come from.
typedef enum sg_table_source_t {
  // The chunk_metadata kernel builds them inside the step.
  SG_TABLES_DEVICE = 0,
  // The host builds them; they travel in the ring entry.
  SG_TABLES_HOST = 1,
  // The caller's own device tables, bound like any other buffer.
  SG_TABLES_GIVEN = 2,
} sg_table_source_t;

// Where the lengths and slots of a batch stand.
typedef enum sg_batch_place_t {
  // In the arrays of the entry.
  SG_BATCH_IN_ENTRY = 0,
  // In device memory of the caller's, whose addresses the entry has.
  SG_BATCH_ON_DEVICE = 1,
} sg_batch_place_t;

// Start of one entry of the ring, in mapped pinned memory. Arrays follow it at
// offsets in bytes from the entry's start that sg_batch_entry_layout_t has.
typedef struct sg_batch_entry_header_t {
  // Number of the step that this entry holds; steps are numbered from 1.
  uint64_t step;
  int32_t sequence_count;
  // Rows of chunk_indices that follow, for SG_TABLES_HOST; otherwise 0.
  int32_t chunk_count;
  int32_t place;  // sg_batch_place_t
  int32_t reserved;
  // For SG_BATCH_ON_DEVICE, with sequence_count entries to be read; the count
  // itself is read from device_sequence_count unless that is NULL, and is then
  // at most sequence_count.
  const int32_t* device_query_start_loc;
  const int32_t* device_computed_lens;
  const int32_t* device_slots;
  const int32_t* device_sequence_count;
} sg_batch_entry_header_t;

// Where the arrays of an entry start. The capacities are those of the ring,
// the largest that any step may have.
typedef struct sg_batch_entry_layout_t {
  int32_t sequence_capacity;
  int32_t chunk_capacity;
  uint32_t query_start_loc_offset;  // int32 [sequence_capacity + 1]
  uint32_t computed_lens_offset;    // int32 [sequence_capacity]
  uint32_t slots_offset;            // int32 [sequence_capacity]
  uint32_t source_slots_offset;     // int32 [sequence_capacity], see verify.h
  uint32_t chunk_indices_offset;    // int32 [chunk_capacity][2], host tables
  uint32_t chunk_offsets_offset;    // int64 [sequence_capacity + 1], likewise
  uint32_t entry_bytes;             // distance between entries
  uint32_t reserved;
} sg_batch_entry_layout_t;

// Progress of the device through the ring, in device memory.
typedef struct sg_step_cursor_t {
  // The step that the next batch_ingest takes.
  uint64_t next_step;
  // The step in progress.
  uint64_t current_step;
} sg_step_cursor_t;

// What the device tells the host, in mapped pinned memory. Each field has one
// writer; the other side only reads it.
typedef struct sg_step_mailbox_t {
  // Written by the device: the last step whose work has ended.
  uint64_t completed_step;
  // Written by the device: how many error records it has put into error.
  // While it differs from errors_read the record is left as it is.
  uint64_t errors_written;
  // Written by the host.
  uint64_t errors_read;
  // Written by the device: how many steps had an error, all told.
  uint64_t error_steps;
  sg_step_error_record_t error;
} sg_step_mailbox_t;

#endif  // STEPGRAPH_RUNTIME_BASE_BATCH_LAYOUT_H_
