// SPDX-License-Identifier: Apache-2.0

#include "tests/runtime/toy_program.h"

#include <string.h>

#include "kernels/batch_ingest/batch_ingest.h"
#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/common/batch_tables.h"
#include "kernels/step_done/step_done.h"
#include "kernels/verify/verify.h"
#include "runtime/hip/error.h"

enum { COUNTS, QUERY_START_LOC, COMPUTED, SLOTS, INDICES, OFFSETS, STAMPS };

static const sg_param_field_t toy_fields[] = {
    SG_PARAM_FIELD(toy_params_t, counts, SG_PARAM_POINTER),
    SG_PARAM_FIELD(toy_params_t, query_start_loc, SG_PARAM_POINTER),
    SG_PARAM_FIELD(toy_params_t, computed_lens, SG_PARAM_POINTER),
    SG_PARAM_FIELD(toy_params_t, slots, SG_PARAM_POINTER),
    SG_PARAM_FIELD(toy_params_t, x, SG_PARAM_POINTER),
    SG_PARAM_FIELD(toy_params_t, state, SG_PARAM_POINTER),
    SG_PARAM_FIELD(toy_params_t, o, SG_PARAM_POINTER),
    SG_PARAM_FIELD(toy_params_t, null_slot, SG_PARAM_I32),
    SG_PARAM_FIELD(toy_params_t, token_capacity, SG_PARAM_I32),
};

static const sg_kernel_t toy_kernel = {
    .op = "toy",
    .name = "toy_layer",
    .handle = toy_layer_handle,
    .params_bytes = sizeof(toy_params_t),
    .fields = toy_fields,
    .field_count = sizeof(toy_fields) / sizeof(toy_fields[0]),
};

static void* region(const toy_program_t* toy, const sg_recording_t* r,
                    int index) {
  return (unsigned char*)r->arena + toy->regions[index].offset;
}

static sg_enqueue_t enqueue_at(const sg_recording_t* r, int32_t layer) {
  return (sg_enqueue_t){r->stream, r->trace, r->target, layer};
}

static int32_t chunk_capacity(const sg_recording_t* r) {
  return (int32_t)sg_chunk_capacity(r->capacity.max_tokens,
                                    r->capacity.max_sequences, TOY_CHUNK_SIZE);
}

static sg_status_t enqueue_tables(const toy_program_t* toy,
                                  const sg_recording_t* r) {
  sg_enqueue_t where = enqueue_at(r, -1);
  bool host_tables = toy->program.ring_chunk_capacity > 0;
  sg_batch_ingest_params_t ingest = {
      .ring = r->ring,
      .cursor = r->cursor,
      .counts = region(toy, r, COUNTS),
      .query_start_loc = region(toy, r, QUERY_START_LOC),
      .computed_lens = region(toy, r, COMPUTED),
      .slots = region(toy, r, SLOTS),
      .chunk_indices = host_tables ? region(toy, r, INDICES) : NULL,
      .chunk_offsets = host_tables ? region(toy, r, OFFSETS) : NULL,
      .layout = *r->ring_layout,
      .ring_depth = r->ring_depth,
      .sequence_capacity = r->capacity.max_sequences,
      .chunk_capacity = chunk_capacity(r),
  };
  SG_RETURN_IF_ERROR(sg_batch_ingest_enqueue(&where, &ingest));
  static const sg_step_content_t contents[SG_PHASE_COUNT] = {
      [SG_PHASE_DECODE] = SG_STEP_CONTENT_DECODES,
      [SG_PHASE_PREFILL] = SG_STEP_CONTENT_PREFILLS,
      [SG_PHASE_MIXED] = SG_STEP_CONTENT_ANY,
  };
  sg_chunk_metadata_params_t metadata = {
      .counts = region(toy, r, COUNTS),
      .query_start_loc = region(toy, r, QUERY_START_LOC),
      .computed_lens = region(toy, r, COMPUTED),
      .slots = region(toy, r, SLOTS),
      .chunk_indices = region(toy, r, INDICES),
      .chunk_offsets = region(toy, r, OFFSETS),
      .slot_stamps = region(toy, r, STAMPS),
      .sequence_capacity = r->capacity.max_sequences,
      .token_capacity = r->capacity.max_tokens,
      .chunk_capacity = chunk_capacity(r),
      .chunk_size = TOY_CHUNK_SIZE,
      .slot_count = r->slot_count,
      .null_slot = toy->program.null_slot,
      .content = (int32_t)contents[r->capacity.phase],
      .offset_bytes = 4,
      .tables_given = host_tables,
  };
  return sg_chunk_metadata_enqueue(&where, &metadata);
}

static sg_status_t enqueue_layer(const toy_program_t* toy,
                                 const sg_recording_t* r, int32_t layer) {
  sg_enqueue_t where = enqueue_at(r, layer);
  toy_params_t params = {
      .counts = region(toy, r, COUNTS),
      .query_start_loc = region(toy, r, QUERY_START_LOC),
      .computed_lens = region(toy, r, COMPUTED),
      .slots = region(toy, r, SLOTS),
      .x = r->buffers[TOY_X],
      .state = r->buffers[TOY_STATE],
      .o = r->buffers[TOY_O],
      .null_slot = toy->program.null_slot,
      .token_capacity = r->capacity.max_tokens,
  };
  return sg_launch_enqueue(
      &where, &(sg_launch_t){.kernel = &toy_kernel,
                             .layer = layer,
                             .grid = (uint32_t)r->capacity.max_sequences,
                             .block = 32,
                             .params = &params});
}

// A fill and a kernel of the caller's own.
static sg_status_t enqueue_foreign(const toy_program_t* toy,
                                   const sg_recording_t* r) {
  SG_RETURN_IF_ERROR(sg_status_from_hip(
      hipMemsetAsync(toy->foreign_counter, 0, sizeof(uint64_t), r->stream),
      "hipMemsetAsync"));
  add_one_params_t params = {toy->foreign_counter};
  void* arguments[] = {&params};
  dim3 unit = {1, 1, 1};
  return sg_status_from_hip(
      hipLaunchKernel(add_one_handle(), unit, unit, arguments, 0, r->stream),
      "hipLaunchKernel");
}

static sg_status_t record_piece(void* self, const sg_recording_t* r) {
  toy_program_t* toy = self;
  // A capture thread records while steps run eagerly.
  __atomic_store_n(&toy->last_mode, r->mode, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&toy->record_count, 1, __ATOMIC_RELAXED) ==
      toy->fail_record) {
    return sg_status_make(SG_STATUS_INTERNAL, "toy: told to fail");
  }
  bool cut = toy->program.piece_count > 1;
  if (r->piece == 0) SG_RETURN_IF_ERROR(enqueue_tables(toy, r));
  if (toy->foreign_counter != NULL) {
    SG_RETURN_IF_ERROR(enqueue_foreign(toy, r));
  }
  int32_t first = cut ? r->piece : 0;
  int32_t last = cut ? r->piece + 1 : toy->layers;
  for (int32_t layer = first; layer < last; ++layer) {
    SG_RETURN_IF_ERROR(enqueue_layer(toy, r, layer));
  }
  return sg_status_ok();
}

static sg_status_t record_done(void* self, const sg_recording_t* r) {
  const toy_program_t* toy = self;
  sg_enqueue_t where = enqueue_at(r, -1);
  sg_step_done_params_t params = {.cursor = r->cursor,
                                  .counts = region(toy, r, COUNTS),
                                  .mailbox = r->mailbox};
  return sg_step_done_enqueue(&where, &params);
}

static sg_verify_slots_params_t slots_params(const toy_program_t* toy,
                                             const sg_recording_t* r) {
  return (sg_verify_slots_params_t){
      .ring = r->ring,
      .cursor = r->cursor,
      .pool = r->buffers[TOY_STATE],
      .shadow = r->shadow_buffers[TOY_STATE],
      .pool_stride_bytes = sizeof(uint64_t),
      .shadow_stride_bytes = sizeof(uint64_t),
      .slot_bytes = sizeof(uint64_t),
      .mismatches = r->mismatches,
      .layout = *r->ring_layout,
      .ring_depth = r->ring_depth,
      .slot_count = r->slot_count,
      .shadow_slot_count = r->shadow_slot_count,
      .null_slot = toy->program.null_slot,
      .buffer = TOY_STATE,
  };
}

static sg_status_t record_snapshot(void* self, const sg_recording_t* r) {
  sg_enqueue_t where = enqueue_at(r, 0);
  sg_verify_slots_params_t params = slots_params(self, r);
  return sg_verify_snapshot_enqueue(&where, &params, r->capacity.max_sequences);
}

static sg_status_t record_compare(void* self, const sg_recording_t* r) {
  const toy_program_t* toy = self;
  sg_enqueue_t where = enqueue_at(r, 0);
  sg_verify_slots_params_t slots = slots_params(toy, r);
  SG_RETURN_IF_ERROR(sg_verify_compare_slots_enqueue(
      &where, &slots, r->capacity.max_sequences));
  sg_verify_rows_params_t rows = {
      .counts = region(toy, r, COUNTS),
      .cursor = r->cursor,
      .live = r->buffers[TOY_O],
      .shadow = r->shadow_buffers[TOY_O],
      .stride_bytes = sizeof(uint64_t),
      .row_bytes = sizeof(uint64_t),
      .mismatches = r->mismatches,
      .buffer = TOY_O,
  };
  return sg_verify_compare_rows_enqueue(&where, &rows, r->capacity.max_tokens);
}

static int32_t build_tables(void* self, const int32_t* query_lens,
                            const int32_t* computed_lens,
                            int32_t sequence_count, int32_t* out_chunk_indices,
                            int64_t* out_chunk_offsets) {
  (void)self;
  return sg_chunk_tables_build(query_lens, computed_lens, sequence_count,
                               TOY_CHUNK_SIZE, out_chunk_indices,
                               out_chunk_offsets);
}

static void lay_out(toy_program_t* toy, sg_shape_limits_t limits,
                    int32_t slot_count) {
  size_t n = (size_t)limits.max_sequences;
  size_t chunks = (size_t)sg_chunk_capacity(
      limits.max_tokens, limits.max_sequences, TOY_CHUNK_SIZE);
  size_t stamps =
      (size_t)(slot_count > limits.max_sequences ? slot_count
                                                 : limits.max_sequences + 1) +
      1;
  const size_t bytes[] = {sizeof(sg_batch_counts_t),
                          4 * (n + 1),
                          4 * n,
                          4 * n,
                          8 * chunks,
                          8 * (n + 1),
                          8 * stamps};
  size_t offset = 0;
  for (int i = 0; i < 7; ++i) {
    toy->regions[i] = (sg_arena_region_t){"part", offset, bytes[i]};
    offset += (bytes[i] + 255) / 256 * 256;
  }
  toy->program.arena_bytes = offset;
}

void toy_program_initialize(toy_program_t* toy, sg_shape_limits_t limits,
                            int32_t slot_count, int32_t null_slot,
                            sg_table_source_t tables) {
  memset(toy, 0, sizeof(*toy));
  lay_out(toy, limits, slot_count);
  size_t rows = 8 * (size_t)limits.max_tokens;
  toy->specs[TOY_X] =
      (sg_buffer_spec_t){"x", SG_BUFFER_INPUT, SG_DTYPE_FP32, 0, 8, 8, rows};
  toy->specs[TOY_STATE] = (sg_buffer_spec_t){
      "state", SG_BUFFER_POOL, SG_DTYPE_FP32, 0, 8, 8, 8 * (size_t)slot_count};
  toy->specs[TOY_O] =
      (sg_buffer_spec_t){"o", SG_BUFFER_OUTPUT, SG_DTYPE_FP32, 0, 8, 8, rows};
  toy->layers = 1;
  sg_program_t* program = &toy->program;
  program->name = "toy";
  program->self = toy;
  program->fingerprint = 7;
  program->buffers = toy->specs;
  program->buffer_count = TOY_BUFFER_COUNT;
  program->arena_regions = toy->regions;
  program->arena_region_count = 7;
  program->limits = limits;
  if (tables == SG_TABLES_HOST) {
    program->ring_chunk_capacity = (int32_t)sg_chunk_capacity(
        limits.max_tokens, limits.max_sequences, TOY_CHUNK_SIZE);
  }
  program->slot_count = slot_count;
  program->null_slot = null_slot;
  program->piece_count = 1;
  program->record_piece = record_piece;
  program->record_done = record_done;
  program->record_snapshot = record_snapshot;
  program->record_compare = record_compare;
  program->build_tables = build_tables;
}

void toy_model_step(const sg_batch_t* batch, int32_t null_slot,
                    const uint64_t* x, uint64_t* state, uint64_t* o) {
  size_t t = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    int32_t slot = batch->slots[n];
    bool live = slot >= 0 && slot != null_slot;
    uint64_t value = 0;
    if (live && batch->computed_lens[n] > 0) value = state[slot];
    for (int32_t i = 0; i < batch->query_lens[n]; ++i, ++t) {
      value = value * TOY_MULTIPLIER + x[t];
      o[t] = live ? value : 0;
    }
    if (live && batch->query_lens[n] > 0) state[slot] = value;
  }
}

void toy_program_cut(toy_program_t* toy, int32_t piece_count,
                     uint64_t* foreign_counter) {
  toy->layers = piece_count;
  toy->program.piece_count = piece_count;
  toy->foreign_counter = foreign_counter;
  toy->program.has_foreign_work = foreign_counter != NULL;
}
