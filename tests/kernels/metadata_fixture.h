// SPDX-License-Identifier: Apache-2.0
//
// batch_ingest, chunk_metadata and step_done on a stream, with the memory that
// a step has: a ring entry is written by hand, the three run, and what they
// left on the device is read back. All of it is NaN-like garbage at first.

#ifndef STEPGRAPH_TESTS_KERNELS_METADATA_FIXTURE_H_
#define STEPGRAPH_TESTS_KERNELS_METADATA_FIXTURE_H_

#include <stddef.h>

#include "kernels/batch_ingest/batch_ingest.h"
#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/step_done/step_done.h"

// A batch as it stands in a ring entry, also a malformed one.
typedef struct metadata_batch_t {
  // Of the entry's header; normally sequence_count is the arrays' length.
  int32_t sequence_count;
  // [capacity + 1], [capacity], [capacity].
  int32_t* query_start_loc;
  int32_t* computed_lens;
  int32_t* slots;
} metadata_batch_t;

typedef struct metadata_options_t {
  int32_t sequences;
  int32_t tokens;
  int32_t chunk_size;
  int32_t slot_count;
  int32_t null_slot;
  sg_step_content_t content;
} metadata_options_t;

typedef struct metadata_fixture_t {
  metadata_options_t options;
  int32_t chunks;
  hipStream_t stream;
  const sg_target_t* target;
  sg_batch_entry_layout_t layout;
  int32_t ring_depth;
  unsigned char* ring;
  sg_step_mailbox_t* mailbox;
  // The step that the next entry is for.
  uint64_t step;
  sg_batch_ingest_params_t ingest;
  sg_chunk_metadata_params_t metadata;
  sg_step_done_params_t done;
  // The batch to be run, and what was read back; the same lengths as on the
  // device.
  metadata_batch_t batch;
  sg_batch_counts_t counts;
  int32_t* query_start_loc;
  int32_t* computed_lens;
  int32_t* slots;
  int32_t* chunk_indices;
  int64_t* chunk_offsets;
} metadata_fixture_t;

// Exits with 77 where there is no device.
void metadata_set_up(metadata_fixture_t* fixture,
                     const metadata_options_t* options);
void metadata_tear_down(metadata_fixture_t* fixture);

// Fills in fixture->batch from lengths; computed_lens and slots may be NULL for
// fresh sequences without a slot.
void metadata_set_batch(metadata_fixture_t* fixture, int32_t count,
                        const int32_t* query_lens, const int32_t* computed_lens,
                        const int32_t* slots);

// Writes fixture->batch as the next entry, whose header says |step|.
void metadata_write_entry(metadata_fixture_t* fixture, uint64_t step);

// Enqueues the three, waits and reads everything back; the next step is due.
void metadata_run(metadata_fixture_t* fixture);

// Both: the batch as the step that is due.
void metadata_step(metadata_fixture_t* fixture);

// Reads everything back.
void metadata_read(metadata_fixture_t* fixture);

// Fails unless the counts have this error, or none with SG_STEP_ERROR_NONE.
void metadata_check_error(const metadata_fixture_t* fixture, int32_t code,
                          int32_t sequence, int64_t value);

// Fails unless all that was read back is what fixture->batch, a good one,
// makes: compares with the definitions in params.h, and the tables with those
// of sg_chunk_tables_build as well.
void metadata_check_good(const metadata_fixture_t* fixture);

#endif  // STEPGRAPH_TESTS_KERNELS_METADATA_FIXTURE_H_
