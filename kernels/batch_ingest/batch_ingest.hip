// SPDX-License-Identifier: Apache-2.0
//
// batch_ingest on a GPU: one block, whose threads copy side by side.

#include "kernels/batch_ingest/params.h"
#include "kernels/common/device.h"

enum { THREADS = 256 };

// Element of an array of the entry. The ring is memory of the host: its words
// must come from there and from no cache.
template <typename word_t>
SG_DEVICE word_t read(const unsigned char* entry, uint32_t offset, int32_t i) {
  return sg_system_peek((const word_t*)(entry + offset) + i);
}

// What one thread finds out for all.
typedef struct found_t {
  uint64_t step;
  sg_batch_counts_t counts;
  int32_t chunk_count;
  int32_t last_offset;
} found_t;

SG_DEVICE const unsigned char* entry_of(const sg_batch_ingest_params_t* p,
                                        uint64_t step) {
  return p->ring + (step % (uint64_t)p->ring_depth) * p->layout.entry_bytes;
}

SG_DEVICE void check_entry(const sg_batch_ingest_params_t* p, found_t* found) {
  const unsigned char* entry = entry_of(p, found->step);
  const sg_batch_entry_header_t* header = (const sg_batch_entry_header_t*)entry;
  sg_batch_counts_t* counts = &found->counts;
  *counts = sg_batch_counts_t{};
  counts->error_sequence = -1;
  found->chunk_count = 0;
  found->last_offset = 0;
  const uint64_t step = sg_system_load(&header->step);
  if (step != found->step) {
    counts->error_code = SG_STEP_ERROR_STALE_ENTRY;
    counts->error_value = (int64_t)step;
    return;
  }
  const int32_t sequence_count = sg_system_peek(&header->sequence_count);
  const int32_t chunk_count = sg_system_peek(&header->chunk_count);
  if (sequence_count < 0 || sequence_count > p->sequence_capacity ||
      chunk_count < 0 || chunk_count > p->chunk_capacity) {
    counts->error_code = SG_STEP_ERROR_SEQUENCE_COUNT;
    counts->error_value = sequence_count;
    return;
  }
  counts->sequence_count = sequence_count;
  found->chunk_count = chunk_count;
  found->last_offset =
      read<int32_t>(entry, p->layout.query_start_loc_offset, sequence_count);
  counts->token_count = found->last_offset;
}

SG_DEVICE void copy_sequences(const sg_batch_ingest_params_t* p,
                              const unsigned char* entry,
                              const found_t* found) {
  const int32_t count = found->counts.sequence_count;
  const sg_batch_entry_layout_t* layout = &p->layout;
  for (int32_t n = sg_thread(); n < p->sequence_capacity; n += THREADS) {
    const bool real = n < count;
    p->query_start_loc[n] =
        real ? read<int32_t>(entry, layout->query_start_loc_offset, n)
             : found->last_offset;
    p->computed_lens[n] =
        real ? read<int32_t>(entry, layout->computed_lens_offset, n) : 0;
    p->slots[n] = real ? read<int32_t>(entry, layout->slots_offset, n) : -1;
  }
  if (sg_thread() == 0) {
    p->query_start_loc[p->sequence_capacity] = found->last_offset;
  }
}

SG_DEVICE void copy_chunks(const sg_batch_ingest_params_t* p,
                           const unsigned char* entry, const found_t* found) {
  for (int32_t i = sg_thread(); i < 2 * found->chunk_count; i += THREADS) {
    p->chunk_indices[i] =
        read<int32_t>(entry, p->layout.chunk_indices_offset, i);
  }
  const int32_t count = found->counts.sequence_count;
  for (int32_t n = sg_thread(); n <= count; n += THREADS) {
    p->chunk_offsets[n] =
        read<int64_t>(entry, p->layout.chunk_offsets_offset, n);
  }
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 1)
    batch_ingest(sg_batch_ingest_params_t params) {
  const sg_batch_ingest_params_t* p = &params;
  SG_SHARED found_t found;
  if (sg_thread() == 0) {
    found.step = p->cursor->next_step;
    check_entry(p, &found);
    p->cursor->current_step = found.step;
    p->cursor->next_step = found.step + 1;
    *p->counts = found.counts;
  }
  sg_block_barrier();
  const unsigned char* entry = entry_of(p, found.step);
  copy_sequences(p, entry, &found);
  if (found.counts.error_code == SG_STEP_ERROR_NONE &&
      p->chunk_indices != nullptr) {
    copy_chunks(p, entry, &found);
  }
}

extern "C" const void* batch_ingest_handle(void) {
  return sg_kernel_handle(batch_ingest);
}
