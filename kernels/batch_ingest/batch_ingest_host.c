// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "kernels/batch_ingest/batch_ingest.h"
#include "runtime/base/shared_word.h"
#include "runtime/hip/host_kernel.h"

static const int32_t* array_at(const unsigned char* entry, uint32_t offset) {
  return (const int32_t*)(const void*)(entry + offset);
}

// The batch's arrays, in the entry or on the device.
typedef struct source_t {
  int32_t sequence_count;
  const int32_t* query_start_loc;
  const int32_t* computed_lens;
  const int32_t* slots;
} source_t;

static source_t find_source(const sg_batch_ingest_params_t* p,
                            const unsigned char* entry) {
  const sg_batch_entry_header_t* header = (const void*)entry;
  if (header->place == SG_BATCH_IN_ENTRY) {
    return (source_t){
        .sequence_count = header->sequence_count,
        .query_start_loc = array_at(entry, p->layout.query_start_loc_offset),
        .computed_lens = array_at(entry, p->layout.computed_lens_offset),
        .slots = array_at(entry, p->layout.slots_offset)};
  }
  source_t source = {.sequence_count = header->sequence_count,
                     .query_start_loc = header->device_query_start_loc,
                     .computed_lens = header->device_computed_lens,
                     .slots = header->device_slots};
  if (header->device_sequence_count == NULL) return source;
  int32_t count = *header->device_sequence_count;
  // More than was announced is a fault, which a count of -1 leads to.
  source.sequence_count = count <= header->sequence_count ? count : -1;
  return source;
}

// Says whether the entry is the one that is due.
static sg_step_error_t check_entry(const sg_batch_ingest_params_t* p,
                                   const unsigned char* entry, uint64_t step,
                                   source_t* out_source, int64_t* out_value) {
  const sg_batch_entry_header_t* header = (const void*)entry;
  uint64_t found = sg_load_acquire(&header->step);
  if (found != step) {
    *out_value = (int64_t)found;
    return SG_STEP_ERROR_STALE_ENTRY;
  }
  *out_source = find_source(p, entry);
  *out_value = out_source->sequence_count;
  if (out_source->sequence_count < 0 ||
      out_source->sequence_count > p->sequence_capacity) {
    return SG_STEP_ERROR_SEQUENCE_COUNT;
  }
  *out_value = header->chunk_count;
  if (p->chunk_indices != NULL &&
      (header->chunk_count < 0 || header->chunk_count > p->chunk_capacity)) {
    return SG_STEP_ERROR_TABLES;
  }
  *out_value = 0;
  return SG_STEP_ERROR_NONE;
}

static void copy_tables(const sg_batch_ingest_params_t* p,
                        const unsigned char* entry, const source_t* source) {
  size_t count = (size_t)source->sequence_count;
  const sg_batch_entry_header_t* header = (const void*)entry;
  memcpy(p->query_start_loc, source->query_start_loc,
         (count + 1) * sizeof(int32_t));
  memcpy(p->computed_lens, source->computed_lens, count * sizeof(int32_t));
  memcpy(p->slots, source->slots, count * sizeof(int32_t));
  if (p->chunk_indices == NULL) return;
  memcpy(p->chunk_indices, array_at(entry, p->layout.chunk_indices_offset),
         (size_t)header->chunk_count * 2 * sizeof(int32_t));
  memcpy(p->chunk_offsets, array_at(entry, p->layout.chunk_offsets_offset),
         (count + 1) * sizeof(int64_t));
}

static void run_block(const void* params, const sg_host_block_t* block) {
  (void)block;
  const sg_batch_ingest_params_t* p = params;
  uint64_t step = p->cursor->next_step;
  p->cursor->current_step = step;
  p->cursor->next_step = step + 1;
  const unsigned char* entry =
      p->ring + (step % (uint64_t)p->ring_depth) * p->layout.entry_bytes;

  sg_batch_counts_t counts = {.error_sequence = -1};
  source_t source = {0};
  counts.error_code = check_entry(p, entry, step, &source, &counts.error_value);
  p->query_start_loc[0] = 0;
  if (counts.error_code == SG_STEP_ERROR_NONE) {
    counts.sequence_count = source.sequence_count;
    copy_tables(p, entry, &source);
  }
  for (int32_t i = counts.sequence_count; i < p->sequence_capacity; ++i) {
    p->query_start_loc[i + 1] = p->query_start_loc[i];
    p->computed_lens[i] = 0;
    p->slots[i] = -1;
  }
  counts.token_count = p->query_start_loc[counts.sequence_count];
  *p->counts = counts;
}

const void* batch_ingest_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "batch_ingest",
      .params_bytes = sizeof(sg_batch_ingest_params_t),
      .run_block = run_block,
  };
  return &kernel;
}
