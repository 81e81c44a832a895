// SPDX-License-Identifier: Apache-2.0

#include "runtime/batch_ring.h"

#include <string.h>

#include "runtime/base/checked.h"
#include "runtime/base/shared_word.h"
#include "runtime/hip/error.h"

// The device reads entries as they are laid out here.
_Static_assert(sizeof(sg_batch_entry_header_t) == 56, "no padding");

// Appends an array to the entry and returns where it starts. Starts are
// multiples of 64 bytes, so that no two arrays share a cache line.
static bool place(size_t* end, size_t count, size_t element_bytes,
                  uint32_t* out_offset) {
  size_t bytes, next;
  if (!sg_checked_mul(count, element_bytes, &bytes) ||
      !sg_checked_add(*end, bytes, &next) ||
      !sg_checked_align(next, 64, &next) || next > UINT32_MAX) {
    return false;
  }
  *out_offset = (uint32_t)*end;
  *end = next;
  return true;
}

sg_status_t sg_batch_ring_layout(int32_t sequence_capacity,
                                 int32_t chunk_capacity,
                                 sg_batch_entry_layout_t* out_layout) {
  size_t sequences = (size_t)sequence_capacity;
  size_t chunks = (size_t)chunk_capacity;
  // Host tables take room only where there are any.
  size_t offsets = chunks == 0 ? 0 : sequences + 1;
  size_t end = 64;
  sg_batch_entry_layout_t layout = {.sequence_capacity = sequence_capacity,
                                    .chunk_capacity = chunk_capacity};
  if (!place(&end, sequences + 1, 4, &layout.query_start_loc_offset) ||
      !place(&end, sequences, 4, &layout.computed_lens_offset) ||
      !place(&end, sequences, 4, &layout.slots_offset) ||
      !place(&end, sequences, 4, &layout.source_slots_offset) ||
      !place(&end, 2 * chunks, 4, &layout.chunk_indices_offset) ||
      !place(&end, offsets, 8, &layout.chunk_offsets_offset)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "batch ring: an entry of %d sequences and %d chunks "
                          "is beyond 4 GiB",
                          sequence_capacity, chunk_capacity);
  }
  layout.entry_bytes = (uint32_t)end;
  *out_layout = layout;
  return sg_status_ok();
}

size_t sg_batch_ring_pinned_bytes(int32_t depth,
                                  const sg_batch_entry_layout_t* layout) {
  return (size_t)depth * layout->entry_bytes + sizeof(sg_step_mailbox_t);
}

static sg_status_t allocate_pinned(size_t bytes, void** out_host,
                                   void** out_device) {
  SG_RETURN_IF_HIP_ERROR(hipHostMalloc, out_host, bytes,
                         hipHostMallocMapped | hipHostMallocCoherent);
  memset(*out_host, 0, bytes);
  SG_RETURN_IF_HIP_ERROR(hipHostGetDevicePointer, out_device, *out_host, 0);
  return sg_status_ok();
}

static sg_status_t allocate_ring(sg_batch_ring_t* ring, hipStream_t stream) {
  size_t bytes;
  if (!sg_checked_mul(ring->layout.entry_bytes, (size_t)ring->depth, &bytes)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "batch ring: %d entries of %u bytes overflow",
                          ring->depth, ring->layout.entry_bytes);
  }
  void* host = NULL;
  sg_status_t status = allocate_pinned(bytes, &host, &ring->entries_device);
  ring->entries = host;
  SG_RETURN_IF_ERROR(status);
  host = NULL;
  void* device = NULL;
  status = allocate_pinned(sizeof(sg_step_mailbox_t), &host, &device);
  ring->mailbox = host;
  ring->mailbox_device = device;
  SG_RETURN_IF_ERROR(status);
  void* cursor = NULL;
  SG_RETURN_IF_HIP_ERROR(hipMalloc, &cursor, sizeof(sg_step_cursor_t));
  ring->cursor_device = cursor;
  sg_step_cursor_t first = {.next_step = 1};
  SG_RETURN_IF_HIP_ERROR(hipMemcpyAsync, cursor, &first, sizeof(first),
                         hipMemcpyHostToDevice, stream);
  SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, stream);
  return sg_status_ok();
}

sg_status_t sg_batch_ring_initialize(int32_t depth, int32_t sequence_capacity,
                                     int32_t chunk_capacity, hipStream_t stream,
                                     sg_batch_ring_t* out_ring) {
  *out_ring = (sg_batch_ring_t){0};
  sg_batch_ring_t ring = {.depth = depth, .next_step = 1};
  SG_RETURN_IF_ERROR(
      sg_batch_ring_layout(sequence_capacity, chunk_capacity, &ring.layout));
  sg_status_t status = allocate_ring(&ring, stream);
  if (!sg_status_is_ok(status)) {
    sg_batch_ring_deinitialize(&ring);
    return status;
  }
  *out_ring = ring;
  return sg_status_ok();
}

void sg_batch_ring_deinitialize(sg_batch_ring_t* ring) {
  if (ring == NULL) return;
  if (ring->entries != NULL) (void)hipHostFree(ring->entries);
  if (ring->mailbox != NULL) (void)hipHostFree(ring->mailbox);
  if (ring->cursor_device != NULL) (void)hipFree(ring->cursor_device);
  *ring = (sg_batch_ring_t){0};
}

int64_t sg_batch_ring_in_flight(const sg_batch_ring_t* ring) {
  uint64_t completed = sg_load_acquire(&ring->mailbox->completed_step);
  return (int64_t)(ring->next_step - 1 - completed);
}

static void* array_at(unsigned char* entry, uint32_t offset) {
  return entry + offset;
}

static void write_arrays(const sg_batch_ring_t* ring, const sg_batch_t* batch,
                         const int32_t* source_slots, unsigned char* entry) {
  size_t count = (size_t)batch->sequence_count;
  int32_t* offsets = array_at(entry, ring->layout.query_start_loc_offset);
  offsets[0] = 0;
  for (size_t n = 0; n < count; ++n) {
    offsets[n + 1] = offsets[n] + batch->query_lens[n];
  }
  // An empty batch may come with NULL arrays, which memcpy does not take.
  if (count == 0) return;
  memcpy(array_at(entry, ring->layout.computed_lens_offset),
         batch->computed_lens, count * sizeof(int32_t));
  memcpy(array_at(entry, ring->layout.slots_offset), batch->slots,
         count * sizeof(int32_t));
  if (source_slots == NULL) return;
  memcpy(array_at(entry, ring->layout.source_slots_offset), source_slots,
         count * sizeof(int32_t));
}

sg_status_t sg_batch_ring_check_room(const sg_batch_ring_t* ring,
                                     int32_t count) {
  int64_t in_flight = sg_batch_ring_in_flight(ring);
  if (in_flight + count <= ring->depth) return sg_status_ok();
  return sg_status_make(SG_STATUS_BUSY,
                        "batch ring: %lld steps in flight and %d wanted, depth "
                        "is %d",
                        (long long)in_flight, count, ring->depth);
}

static unsigned char* entry_at(const sg_batch_ring_t* ring, uint64_t step) {
  return ring->entries +
         (step % (uint64_t)ring->depth) * (size_t)ring->layout.entry_bytes;
}

sg_status_t sg_batch_ring_write(sg_batch_ring_t* ring,
                                const sg_program_t* program,
                                const sg_batch_t* batch,
                                const int32_t* source_slots, uint64_t ahead) {
  uint64_t step = ring->next_step + ahead;
  SG_RETURN_IF_ERROR(sg_batch_ring_check_room(ring, (int32_t)ahead + 1));
  unsigned char* entry = entry_at(ring, step);
  write_arrays(ring, batch, source_slots, entry);
  sg_batch_entry_header_t* header = (void*)entry;
  header->sequence_count = batch->sequence_count;
  header->chunk_count = 0;
  header->place = SG_BATCH_IN_ENTRY;
  if (ring->layout.chunk_capacity > 0) {
    header->chunk_count = program->build_tables(
        program->self, batch->query_lens, batch->computed_lens,
        batch->sequence_count,
        array_at(entry, ring->layout.chunk_indices_offset),
        array_at(entry, ring->layout.chunk_offsets_offset));
  }
  sg_store_release(&header->step, step);
  return sg_status_ok();
}

sg_status_t sg_batch_ring_write_device(sg_batch_ring_t* ring,
                                       const sg_device_batch_t* batch) {
  SG_RETURN_IF_ERROR(sg_batch_ring_check_room(ring, 1));
  unsigned char* entry = entry_at(ring, ring->next_step);
  sg_batch_entry_header_t* header = (void*)entry;
  header->sequence_count = batch->max_sequences;
  header->chunk_count = 0;
  header->place = SG_BATCH_ON_DEVICE;
  header->device_query_start_loc = batch->query_start_loc;
  header->device_computed_lens = batch->computed_lens;
  header->device_slots = batch->slots;
  header->device_sequence_count = batch->sequence_count;
  sg_store_release(&header->step, ring->next_step);
  return sg_status_ok();
}

void sg_batch_ring_advance(sg_batch_ring_t* ring, uint64_t count) {
  ring->next_step += count;
}

bool sg_batch_ring_has_error(const sg_batch_ring_t* ring) {
  return sg_load_acquire(&ring->mailbox->errors_written) !=
         ring->mailbox->errors_read;
}

bool sg_batch_ring_take_error(sg_batch_ring_t* ring,
                              sg_step_error_record_t* out_error) {
  if (!sg_batch_ring_has_error(ring)) return false;
  sg_step_mailbox_t* mailbox = ring->mailbox;
  uint64_t written = sg_load_acquire(&mailbox->errors_written);
  *out_error = mailbox->error;
  sg_store_release(&mailbox->errors_read, written);
  return true;
}
