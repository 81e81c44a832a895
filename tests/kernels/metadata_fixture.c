// SPDX-License-Identifier: Apache-2.0

#include "tests/kernels/metadata_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/common/batch_tables.h"
#include "tests/check.h"
#include "tests/device_memory.h"

static void* host_array(size_t bytes) {
  void* memory = malloc(bytes);
  assert_non_null(memory);
  memset(memory, 0x7f, bytes);
  return memory;
}

static void* mapped_array(size_t bytes, void** out_device) {
  void* memory = NULL;
  assert_hip(hipHostMalloc(&memory, bytes,
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipHostGetDevicePointer(out_device, memory, 0));
  memset(memory, 0, bytes);
  return memory;
}

static void lay_out_entry(metadata_fixture_t* f) {
  size_t n = (size_t)f->options.sequences;
  uint32_t offset = sizeof(sg_batch_entry_header_t);
  f->layout.sequence_capacity = f->options.sequences;
  f->layout.chunk_capacity = f->chunks;
  f->layout.query_start_loc_offset = offset;
  offset += (uint32_t)(4 * (n + 1));
  f->layout.computed_lens_offset = offset;
  offset += (uint32_t)(4 * n);
  f->layout.slots_offset = offset;
  offset += (uint32_t)(4 * n);
  f->layout.source_slots_offset = offset;
  offset += (uint32_t)(4 * n);
  offset = (offset + 15) / 16 * 16;
  f->layout.chunk_indices_offset = offset;
  offset += (uint32_t)(8 * f->chunks);
  f->layout.chunk_offsets_offset = offset;
  offset += (uint32_t)(8 * (n + 1));
  f->layout.entry_bytes = (offset + 255) / 256 * 256;
}

static void allocate_device(metadata_fixture_t* f) {
  size_t n = (size_t)f->options.sequences;
  void *ring = NULL, *mailbox = NULL;
  f->ring = mapped_array((size_t)f->ring_depth * f->layout.entry_bytes, &ring);
  f->mailbox = mapped_array(sizeof(*f->mailbox), &mailbox);
  sg_step_cursor_t cursor = {.next_step = 1};
  f->ingest = (sg_batch_ingest_params_t){
      .ring = ring,
      .cursor = device_allocate(sizeof(cursor), 0),
      .counts = device_allocate(sizeof(sg_batch_counts_t), 0xee),
      .query_start_loc = device_allocate(4 * (n + 1), 0xee),
      .computed_lens = device_allocate(4 * n + 4, 0xee),
      .slots = device_allocate(4 * n + 4, 0xee),
      .layout = f->layout,
      .ring_depth = f->ring_depth,
      .sequence_capacity = f->options.sequences,
      .chunk_capacity = f->chunks};
  device_upload(f->ingest.cursor, &cursor, sizeof(cursor));
  size_t stamps_bytes = 0;
  assert_ok(
      sg_chunk_metadata_workspace_bytes(f->options.slot_count, &stamps_bytes));
  f->metadata = (sg_chunk_metadata_params_t){
      .counts = f->ingest.counts,
      .query_start_loc = f->ingest.query_start_loc,
      .computed_lens = f->ingest.computed_lens,
      .slots = f->ingest.slots,
      .chunk_indices = device_allocate(8 * (size_t)f->chunks + 8, 0xee),
      .chunk_offsets = device_allocate(8 * (n + 1), 0xee),
      .slot_stamps = device_allocate(stamps_bytes, 0),
      .sequence_capacity = f->options.sequences,
      .token_capacity = f->options.tokens,
      .chunk_capacity = f->chunks,
      .chunk_size = f->options.chunk_size,
      .slot_count = f->options.slot_count,
      .null_slot = f->options.null_slot,
      .content = (int32_t)f->options.content,
      .offset_bytes = 4};
  f->done =
      (sg_step_done_params_t){f->ingest.cursor, f->ingest.counts, mailbox};
}

void metadata_set_up(metadata_fixture_t* f, const metadata_options_t* options) {
  int device_count = 0;
  if (hipGetDeviceCount(&device_count) != hipSuccess || device_count == 0) {
    exit(77);
  }
  memset(f, 0, sizeof(*f));
  f->options = *options;
  f->chunks = (int32_t)sg_chunk_capacity(options->tokens, options->sequences,
                                         options->chunk_size);
  f->ring_depth = 3;
  f->step = 1;
  assert_ok(sg_target_of_device(0, &f->target));
  assert_hip(hipStreamCreateWithFlags(&f->stream, hipStreamNonBlocking));
  lay_out_entry(f);
  allocate_device(f);
  size_t n = (size_t)options->sequences;
  f->batch = (metadata_batch_t){0, host_array(4 * (n + 1)),
                                host_array(4 * n + 4), host_array(4 * n + 4)};
  f->query_start_loc = host_array(4 * (n + 1));
  f->computed_lens = host_array(4 * n + 4);
  f->slots = host_array(4 * n + 4);
  f->chunk_indices = host_array(8 * (size_t)f->chunks + 8);
  f->chunk_offsets = host_array(8 * (n + 1));
}

void metadata_tear_down(metadata_fixture_t* f) {
  assert_hip(hipStreamSynchronize(f->stream));
  void* device[] = {f->ingest.cursor,          f->ingest.counts,
                    f->ingest.query_start_loc, f->ingest.computed_lens,
                    f->ingest.slots,           f->metadata.chunk_indices,
                    f->metadata.chunk_offsets, f->metadata.slot_stamps};
  for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); ++i) {
    assert_hip(hipFree(device[i]));
  }
  assert_hip(hipHostFree(f->ring));
  assert_hip(hipHostFree(f->mailbox));
  assert_hip(hipStreamDestroy(f->stream));
  free(f->batch.query_start_loc);
  free(f->batch.computed_lens);
  free(f->batch.slots);
  free(f->query_start_loc);
  free(f->computed_lens);
  free(f->slots);
  free(f->chunk_indices);
  free(f->chunk_offsets);
}

void metadata_set_batch(metadata_fixture_t* f, int32_t count,
                        const int32_t* query_lens, const int32_t* computed_lens,
                        const int32_t* slots) {
  f->batch.sequence_count = count;
  f->batch.query_start_loc[0] = 0;
  for (int32_t n = 0; n < count; ++n) {
    f->batch.query_start_loc[n + 1] =
        f->batch.query_start_loc[n] + query_lens[n];
    f->batch.computed_lens[n] = computed_lens != NULL ? computed_lens[n] : 0;
    f->batch.slots[n] = slots != NULL ? slots[n] : -1;
  }
}

void metadata_write_entry(metadata_fixture_t* f, uint64_t step) {
  unsigned char* entry =
      f->ring + (f->step % (uint64_t)f->ring_depth) * f->layout.entry_bytes;
  // What is not written is garbage that no one may believe.
  memset(entry, 0x5a, f->layout.entry_bytes);
  sg_batch_entry_header_t header = {.step = step,
                                    .sequence_count = f->batch.sequence_count};
  memcpy(entry, &header, sizeof(header));
  int32_t count = f->batch.sequence_count;
  if (count < 0 || count > f->options.sequences) return;
  size_t n = (size_t)count;
  memcpy(entry + f->layout.query_start_loc_offset, f->batch.query_start_loc,
         4 * (n + 1));
  memcpy(entry + f->layout.computed_lens_offset, f->batch.computed_lens, 4 * n);
  memcpy(entry + f->layout.slots_offset, f->batch.slots, 4 * n);
}

void metadata_read(metadata_fixture_t* f) {
  assert_hip(hipStreamSynchronize(f->stream));
  size_t n = (size_t)f->options.sequences;
  const struct {
    void* to;
    const void* from;
    size_t bytes;
  } copies[] = {
      {&f->counts, f->ingest.counts, sizeof(f->counts)},
      {f->query_start_loc, f->ingest.query_start_loc, 4 * (n + 1)},
      {f->computed_lens, f->ingest.computed_lens, 4 * n},
      {f->slots, f->ingest.slots, 4 * n},
      {f->chunk_indices, f->metadata.chunk_indices, 8 * (size_t)f->chunks + 8},
      {f->chunk_offsets, f->metadata.chunk_offsets, 8 * (n + 1)},
  };
  for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); ++i) {
    if (copies[i].bytes == 0) continue;
    assert_hip(hipMemcpy(copies[i].to, copies[i].from, copies[i].bytes,
                         hipMemcpyDeviceToHost));
  }
  // Nothing is written beyond the chunk capacity, whatever the batch.
  assert_int_equal(f->chunk_indices[2 * f->chunks], (int32_t)0xeeeeeeee);
  assert_int_equal(f->chunk_indices[2 * f->chunks + 1], (int32_t)0xeeeeeeee);
}

void metadata_run(metadata_fixture_t* f) {
  sg_enqueue_t where = {f->stream, NULL, f->target, -1};
  assert_ok(sg_batch_ingest_enqueue(&where, &f->ingest));
  assert_ok(sg_chunk_metadata_enqueue(&where, &f->metadata));
  assert_ok(sg_step_done_enqueue(&where, &f->done));
  metadata_read(f);
  ++f->step;
}

void metadata_step(metadata_fixture_t* f) {
  metadata_write_entry(f, f->step);
  metadata_run(f);
}
