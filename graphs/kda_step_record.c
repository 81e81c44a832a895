// SPDX-License-Identifier: Apache-2.0
//
// What a step enqueues, in its order.

#include "graphs/kda_step_internal.h"
#include "kernels/batch_ingest/batch_ingest.h"
#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "kernels/step_done/step_done.h"
#include "kernels/verify/verify.h"

static void* region(const sg_kda_step_t* step, const sg_recording_t* recording,
                    int index) {
  return (unsigned char*)recording->arena + step->regions[index].offset;
}

static sg_enqueue_t enqueue_at(const sg_recording_t* recording, int32_t layer) {
  return (sg_enqueue_t){.stream = recording->stream,
                        .trace = recording->trace,
                        .target = recording->target,
                        .layer = layer};
}

static sg_batch_capacity_t capacity_of(const sg_kda_step_t* step,
                                       const sg_recording_t* recording) {
  int32_t tokens = recording->capacity.max_tokens;
  int32_t sequences = recording->capacity.max_sequences;
  return (sg_batch_capacity_t){
      .tokens = tokens,
      .sequences = sequences,
      .chunks = (int32_t)sg_chunk_capacity(tokens, sequences,
                                           step->geometry.chunk_size)};
}

// The chunk tables: the caller's where they are given, else those in the arena.
static void chunk_tables(const sg_kda_step_t* step,
                         const sg_recording_t* recording,
                         int32_t** out_chunk_indices,
                         int64_t** out_chunk_offsets) {
  if (step->options.tables == SG_TABLES_GIVEN) {
    *out_chunk_indices = recording->buffers[step->spec_count - 2];
    *out_chunk_offsets = recording->buffers[step->spec_count - 1];
    return;
  }
  *out_chunk_indices = region(step, recording, SG_KDA_REGION_CHUNK_INDICES);
  *out_chunk_offsets = region(step, recording, SG_KDA_REGION_CHUNK_OFFSETS);
}

static sg_status_t enqueue_ingest(const sg_kda_step_t* step,
                                  const sg_recording_t* recording) {
  sg_enqueue_t where = enqueue_at(recording, /*layer=*/-1);
  sg_batch_capacity_t capacity = capacity_of(step, recording);
  sg_batch_ingest_params_t params = {
      .ring = recording->ring,
      .cursor = recording->cursor,
      .counts = region(step, recording, SG_KDA_REGION_COUNTS),
      .query_start_loc = region(step, recording, SG_KDA_REGION_QUERY_START_LOC),
      .computed_lens = region(step, recording, SG_KDA_REGION_COMPUTED_LENS),
      .slots = region(step, recording, SG_KDA_REGION_SLOTS),
      .layout = *recording->ring_layout,
      .ring_depth = recording->ring_depth,
      .sequence_capacity = capacity.sequences,
      .chunk_capacity = capacity.chunks,
  };
  if (step->options.tables == SG_TABLES_HOST) {
    chunk_tables(step, recording, &params.chunk_indices, &params.chunk_offsets);
  }
  return sg_batch_ingest_enqueue(&where, &params);
}

static sg_step_content_t content_of(sg_phase_t phase) {
  switch (phase) {
    case SG_PHASE_DECODE:
      return SG_STEP_CONTENT_DECODES;
    case SG_PHASE_PREFILL:
      return SG_STEP_CONTENT_PREFILLS;
    case SG_PHASE_MIXED:
      break;
  }
  return SG_STEP_CONTENT_ANY;
}

static sg_status_t enqueue_metadata(const sg_kda_step_t* step,
                                    const sg_recording_t* recording) {
  sg_enqueue_t where = enqueue_at(recording, /*layer=*/-1);
  sg_batch_capacity_t capacity = capacity_of(step, recording);
  sg_chunk_metadata_params_t params = {
      .counts = region(step, recording, SG_KDA_REGION_COUNTS),
      .query_start_loc = region(step, recording, SG_KDA_REGION_QUERY_START_LOC),
      .computed_lens = region(step, recording, SG_KDA_REGION_COMPUTED_LENS),
      .slots = region(step, recording, SG_KDA_REGION_SLOTS),
      .slot_stamps = region(step, recording, SG_KDA_REGION_SLOT_STAMPS),
      .sequence_capacity = capacity.sequences,
      .token_capacity = capacity.tokens,
      .chunk_capacity = capacity.chunks,
      .chunk_size = step->geometry.chunk_size,
      .slot_count = recording->slot_count,
      .null_slot = step->options.null_slot,
      .content = (int32_t)content_of(recording->capacity.phase),
      .offset_bytes = 4,
      .tables_given = step->options.tables != SG_TABLES_DEVICE,
  };
  chunk_tables(step, recording, &params.chunk_indices, &params.chunk_offsets);
  return sg_chunk_metadata_enqueue(&where, &params);
}

static sg_batch_tables_t tables_of(const sg_kda_step_t* step,
                                   const sg_recording_t* recording) {
  int32_t* chunk_indices;
  int64_t* chunk_offsets;
  chunk_tables(step, recording, &chunk_indices, &chunk_offsets);
  return (sg_batch_tables_t){
      .counts = region(step, recording, SG_KDA_REGION_COUNTS),
      .query_start_loc = region(step, recording, SG_KDA_REGION_QUERY_START_LOC),
      .computed_lens = region(step, recording, SG_KDA_REGION_COMPUTED_LENS),
      .slots = region(step, recording, SG_KDA_REGION_SLOTS),
      .chunk_indices = chunk_indices,
      .chunk_offsets = chunk_offsets,
  };
}

static sg_kda_tensors_t tensors_of(const sg_kda_step_t* step,
                                   const sg_recording_t* recording,
                                   int32_t layer) {
  const sg_kda_geometry_t* g = &step->geometry;
  void* const* buffers =
      recording->buffers + (size_t)layer * SG_KDA_BUFFERS_PER_LAYER;
  int64_t qk_stride = (int64_t)g->heads * g->key_dim;
  int64_t v_stride = (int64_t)g->value_heads * g->value_dim;
  return (sg_kda_tensors_t){
      .q = buffers[SG_KDA_BUFFER_Q],
      .k = buffers[SG_KDA_BUFFER_K],
      .v = buffers[SG_KDA_BUFFER_V],
      .raw_g = buffers[SG_KDA_BUFFER_RAW_G],
      .raw_beta = buffers[SG_KDA_BUFFER_RAW_BETA],
      .a_log = buffers[SG_KDA_BUFFER_A_LOG],
      .dt_bias = buffers[SG_KDA_BUFFER_DT_BIAS],
      .state = buffers[SG_KDA_BUFFER_STATE],
      .o = buffers[SG_KDA_BUFFER_O],
      .q_row_stride = qk_stride,
      .k_row_stride = qk_stride,
      .v_row_stride = v_stride,
      .g_row_stride = (int64_t)g->value_heads * g->key_dim,
      .beta_row_stride = g->value_heads,
      .o_row_stride = v_stride,
      .state_slot_stride = v_stride * g->key_dim,
  };
}

static sg_status_t enqueue_layer(const sg_kda_step_t* step,
                                 const sg_recording_t* recording,
                                 int32_t layer) {
  sg_enqueue_t where = enqueue_at(recording, layer);
  sg_phase_t phase = recording->capacity.phase;
  sg_kda_args_t args = {
      .geometry = &step->geometry,
      .capacity = capacity_of(step, recording),
      .tables = tables_of(step, recording),
      .tensors = tensors_of(step, recording, layer),
      .null_slot = step->options.null_slot,
      .zero_tail = step->options.zero_tail,
      .workspace = region(step, recording, SG_KDA_REGION_WORKSPACE),
  };
  if (phase != SG_PHASE_PREFILL) {
    args.zeroes_outputs = phase == SG_PHASE_DECODE;
    SG_RETURN_IF_ERROR(sg_kda_recurrent_enqueue(&where, &args));
  }
  if (phase != SG_PHASE_DECODE) {
    args.zeroes_outputs = true;
    SG_RETURN_IF_ERROR(sg_kda_chunk_enqueue(&where, &args));
  }
  return sg_status_ok();
}

sg_status_t sg_kda_step_record(void* self, const sg_recording_t* recording) {
  const sg_kda_step_t* step = self;
  SG_RETURN_IF_ERROR(enqueue_ingest(step, recording));
  SG_RETURN_IF_ERROR(enqueue_metadata(step, recording));
  for (int32_t layer = 0; layer < step->layers; ++layer) {
    SG_RETURN_IF_ERROR(enqueue_layer(step, recording, layer));
  }
  return sg_status_ok();
}

sg_status_t sg_kda_step_record_done(void* self,
                                    const sg_recording_t* recording) {
  const sg_kda_step_t* step = self;
  sg_enqueue_t where = enqueue_at(recording, /*layer=*/-1);
  sg_step_done_params_t params = {
      .cursor = recording->cursor,
      .counts = region(step, recording, SG_KDA_REGION_COUNTS),
      .mailbox = recording->mailbox,
  };
  return sg_step_done_enqueue(&where, &params);
}

static sg_verify_slots_params_t slots_params(const sg_kda_step_t* step,
                                             const sg_recording_t* recording,
                                             size_t buffer) {
  const sg_buffer_spec_t* spec = &step->specs[buffer];
  return (sg_verify_slots_params_t){
      .ring = recording->ring,
      .cursor = recording->cursor,
      .pool = recording->buffers[buffer],
      .shadow = recording->shadow_buffers[buffer],
      .pool_stride_bytes = (int64_t)spec->stride_bytes,
      .shadow_stride_bytes = (int64_t)spec->stride_bytes,
      .slot_bytes = (int64_t)spec->row_bytes,
      .layout = *recording->ring_layout,
      .ring_depth = recording->ring_depth,
      .slot_count = recording->slot_count,
      .shadow_slot_count = recording->shadow_slot_count,
      .null_slot = step->options.null_slot,
      .buffer = (int32_t)buffer,
  };
}

sg_status_t sg_kda_step_record_snapshot(void* self,
                                        const sg_recording_t* recording) {
  const sg_kda_step_t* step = self;
  for (size_t i = 0; i < step->spec_count; ++i) {
    if (step->specs[i].role != SG_BUFFER_POOL) continue;
    sg_enqueue_t where = enqueue_at(recording, step->specs[i].layer);
    sg_verify_slots_params_t params = slots_params(step, recording, i);
    SG_RETURN_IF_ERROR(sg_verify_snapshot_enqueue(
        &where, &params, recording->capacity.max_sequences));
  }
  return sg_status_ok();
}

static sg_status_t compare_pool(const sg_kda_step_t* step,
                                const sg_recording_t* recording,
                                size_t buffer) {
  sg_enqueue_t where = enqueue_at(recording, step->specs[buffer].layer);
  sg_verify_slots_params_t params = slots_params(step, recording, buffer);
  params.mismatches = recording->mismatches;
  return sg_verify_compare_slots_enqueue(&where, &params,
                                         recording->capacity.max_sequences);
}

static sg_status_t compare_output(const sg_kda_step_t* step,
                                  const sg_recording_t* recording,
                                  size_t buffer) {
  const sg_buffer_spec_t* spec = &step->specs[buffer];
  sg_enqueue_t where = enqueue_at(recording, spec->layer);
  sg_verify_rows_params_t params = {
      .counts = region(step, recording, SG_KDA_REGION_COUNTS),
      .cursor = recording->cursor,
      .live = recording->buffers[buffer],
      .shadow = recording->shadow_buffers[buffer],
      .stride_bytes = (int64_t)spec->stride_bytes,
      .row_bytes = (int64_t)spec->row_bytes,
      .mismatches = recording->mismatches,
      .buffer = (int32_t)buffer,
  };
  return sg_verify_compare_rows_enqueue(&where, &params,
                                        recording->capacity.max_tokens);
}

sg_status_t sg_kda_step_record_compare(void* self,
                                       const sg_recording_t* recording) {
  const sg_kda_step_t* step = self;
  for (size_t i = 0; i < step->spec_count; ++i) {
    switch (step->specs[i].role) {
      case SG_BUFFER_POOL:
        SG_RETURN_IF_ERROR(compare_pool(step, recording, i));
        break;
      case SG_BUFFER_OUTPUT:
        SG_RETURN_IF_ERROR(compare_output(step, recording, i));
        break;
      case SG_BUFFER_INPUT:
      case SG_BUFFER_WEIGHT:
        break;
    }
  }
  return sg_status_ok();
}
