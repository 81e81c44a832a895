// SPDX-License-Identifier: Apache-2.0
//
// batch_ingest on a GPU: one block, whose threads copy side by side.

#include "kernels/batch_ingest/params.h"
#include "kernels/common/device.h"

enum { THREADS = 256 };

// An array of the entry. The ring is memory of the host: its words must come
// from there and from no cache, hence sg_system_peek.
template <typename word_t>
SG_DEVICE const word_t* array_at(const unsigned char* entry, uint32_t offset) {
  return (const word_t*)(entry + offset);
}

// What one thread finds out for all: the batch's arrays, in the entry or on the
// device, and its sizes.
typedef struct found_t {
  uint64_t step;
  const int32_t* query_start_loc;
  const int32_t* computed_lens;
  const int32_t* slots;
  sg_batch_counts_t counts;
  int32_t chunk_count;
  int32_t last_offset;
} found_t;

SG_DEVICE const unsigned char* entry_of(const sg_batch_ingest_params_t* p,
                                        uint64_t step) {
  return p->ring + (step % (uint64_t)p->ring_depth) * p->layout.entry_bytes;
}

// Returns the number of sequences.
SG_DEVICE int32_t find_source(const sg_batch_ingest_params_t* p,
                              const unsigned char* entry, found_t* found) {
  const sg_batch_entry_header_t* header = (const sg_batch_entry_header_t*)entry;
  const int32_t announced = sg_system_peek(&header->sequence_count);
  if (sg_system_peek(&header->place) == SG_BATCH_IN_ENTRY) {
    found->query_start_loc =
        array_at<int32_t>(entry, p->layout.query_start_loc_offset);
    found->computed_lens =
        array_at<int32_t>(entry, p->layout.computed_lens_offset);
    found->slots = array_at<int32_t>(entry, p->layout.slots_offset);
    return announced;
  }
  found->query_start_loc = sg_system_peek(&header->device_query_start_loc);
  found->computed_lens = sg_system_peek(&header->device_computed_lens);
  found->slots = sg_system_peek(&header->device_slots);
  const int32_t* place = sg_system_peek(&header->device_sequence_count);
  if (place == nullptr) return announced;
  const int32_t count = sg_system_peek(place);
  // More than was announced is a fault, which a count of -1 leads to.
  return count <= announced ? count : -1;
}

// Says whether the entry is the one that is due. Sizes are those of an empty
// batch when this starts.
SG_DEVICE sg_step_error_t check_entry(const sg_batch_ingest_params_t* p,
                                      found_t* found) {
  const unsigned char* entry = entry_of(p, found->step);
  const sg_batch_entry_header_t* header = (const sg_batch_entry_header_t*)entry;
  sg_batch_counts_t* counts = &found->counts;
  const uint64_t step = sg_system_load(&header->step);
  counts->error_value = (int64_t)step;
  if (step != found->step) return SG_STEP_ERROR_STALE_ENTRY;
  const int32_t sequence_count = find_source(p, entry, found);
  counts->error_value = sequence_count;
  if (sequence_count < 0 || sequence_count > p->sequence_capacity) {
    return SG_STEP_ERROR_SEQUENCE_COUNT;
  }
  const int32_t chunk_count = sg_system_peek(&header->chunk_count);
  counts->error_value = chunk_count;
  if (p->chunk_indices != nullptr &&
      (chunk_count < 0 || chunk_count > p->chunk_capacity)) {
    return SG_STEP_ERROR_TABLES;
  }
  counts->error_value = 0;
  counts->sequence_count = sequence_count;
  found->chunk_count = chunk_count;
  found->last_offset = sg_system_peek(found->query_start_loc + sequence_count);
  counts->token_count = found->last_offset;
  return SG_STEP_ERROR_NONE;
}

SG_DEVICE void copy_sequences(const sg_batch_ingest_params_t* p,
                              const found_t* found) {
  const int32_t count = found->counts.sequence_count;
  for (int32_t n = sg_thread(); n < p->sequence_capacity; n += THREADS) {
    const bool real = n < count;
    p->query_start_loc[n] =
        real ? sg_system_peek(found->query_start_loc + n) : found->last_offset;
    p->computed_lens[n] = real ? sg_system_peek(found->computed_lens + n) : 0;
    p->slots[n] = real ? sg_system_peek(found->slots + n) : -1;
  }
  if (sg_thread() == 0) {
    p->query_start_loc[p->sequence_capacity] = found->last_offset;
  }
}

SG_DEVICE void copy_chunks(const sg_batch_ingest_params_t* p,
                           const unsigned char* entry, const found_t* found) {
  const int32_t* indices =
      array_at<int32_t>(entry, p->layout.chunk_indices_offset);
  const int64_t* offsets =
      array_at<int64_t>(entry, p->layout.chunk_offsets_offset);
  for (int32_t i = sg_thread(); i < 2 * found->chunk_count; i += THREADS) {
    p->chunk_indices[i] = sg_system_peek(indices + i);
  }
  const int32_t count = found->counts.sequence_count;
  for (int32_t n = sg_thread(); n <= count; n += THREADS) {
    p->chunk_offsets[n] = sg_system_peek(offsets + n);
  }
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 1)
    batch_ingest(sg_batch_ingest_params_t params) {
  const sg_batch_ingest_params_t* p = &params;
  SG_SHARED found_t found;
  if (sg_thread() == 0) {
    found = found_t{};
    found.step = p->cursor->next_step;
    found.counts.error_sequence = -1;
    found.counts.error_code = check_entry(p, &found);
    p->cursor->current_step = found.step;
    p->cursor->next_step = found.step + 1;
    *p->counts = found.counts;
  }
  sg_block_barrier();
  copy_sequences(p, &found);
  if (found.counts.error_code == SG_STEP_ERROR_NONE &&
      p->chunk_indices != nullptr) {
    copy_chunks(p, entry_of(p, found.step), &found);
  }
}

extern "C" const void* batch_ingest_handle(void) {
  return sg_kernel_handle(batch_ingest);
}
