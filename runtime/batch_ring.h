// SPDX-License-Identifier: Apache-2.0
//
// The ring of pinned entries through which batches reach the device. Entry
// step mod depth holds step; the device reads it in the step's first node and
// says when the step has ended, so the host sees by a plain read whether an
// entry is free. No event, no query, no copy.

#ifndef STEPGRAPH_RUNTIME_BATCH_RING_H_
#define STEPGRAPH_RUNTIME_BATCH_RING_H_

#include <stdbool.h>

#include "runtime/base/allocator.h"
#include "runtime/base/batch_layout.h"
#include "runtime/batch.h"
#include "runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

// Used by one thread at a time. Fields are read-only outside batch_ring.c.
typedef struct sg_batch_ring_t {
  int32_t depth;
  sg_batch_entry_layout_t layout;
  // Host and device address of the same mapped pinned memory.
  unsigned char* entries;
  void* entries_device;
  sg_step_mailbox_t* mailbox;
  sg_step_mailbox_t* mailbox_device;
  // In device memory.
  sg_step_cursor_t* cursor_device;
  // The step that the next batch becomes; steps are numbered from 1.
  uint64_t next_step;
} sg_batch_ring_t;

// Where the arrays of an entry start. A chunk capacity of 0 is for rings
// without host tables.
SG_MUST_USE sg_status_t
sg_batch_ring_layout(int32_t sequence_capacity, int32_t chunk_capacity,
                     sg_batch_entry_layout_t* out_layout);

// Pinned memory of a ring, its mailbox included.
size_t sg_batch_ring_pinned_bytes(int32_t depth,
                                  const sg_batch_entry_layout_t* layout);

// Allocates pinned and device memory and puts the device's cursor at step 1;
// waits for that.
SG_MUST_USE sg_status_t sg_batch_ring_initialize(int32_t depth,
                                                 int32_t sequence_capacity,
                                                 int32_t chunk_capacity,
                                                 hipStream_t stream,
                                                 sg_batch_ring_t* out_ring);

// The device must be done with the ring. Accepts NULL and a zeroed ring.
void sg_batch_ring_deinitialize(sg_batch_ring_t* ring);

// Steps handed out whose end the device has not announced.
int64_t sg_batch_ring_in_flight(const sg_batch_ring_t* ring);

// SG_STATUS_BUSY with the numbers unless |count| more steps can be written.
SG_MUST_USE sg_status_t sg_batch_ring_check_room(const sg_batch_ring_t* ring,
                                                 int32_t count);

// Writes |batch| as step next_step + |ahead|. |source_slots| is NULL, or as
// long as the batch for a step that verifies (verify_layout.h). |program|
// builds host tables where its ring entries carry them. SG_STATUS_BUSY with
// the numbers when the entry is still in use; nothing is written then.
SG_MUST_USE sg_status_t sg_batch_ring_write(sg_batch_ring_t* ring,
                                            const sg_program_t* program,
                                            const sg_batch_t* batch,
                                            const int32_t* source_slots,
                                            uint64_t ahead);

// Writes |batch| as step next_step: its addresses, not what they hold.
SG_MUST_USE sg_status_t sg_batch_ring_write_device(
    sg_batch_ring_t* ring, const sg_device_batch_t* batch);

// To be called once |count| written steps were enqueued.
void sg_batch_ring_advance(sg_batch_ring_t* ring, uint64_t count);

// Whether there is an error record to take. A plain read.
bool sg_batch_ring_has_error(const sg_batch_ring_t* ring);

// Takes the device's error record if there is a new one. Plain reads.
bool sg_batch_ring_take_error(sg_batch_ring_t* ring,
                              sg_step_error_record_t* out_error);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_BATCH_RING_H_
