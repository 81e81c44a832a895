// SPDX-License-Identifier: Apache-2.0
//
// What a step enqueues, in its order.

#include "graphs/kda_step_internal.h"
#include "kernels/batch_ingest/batch_ingest.h"
#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/gated_norm/gated_norm.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "kernels/short_conv/short_conv.h"
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

// The address bound to |buffer| of |layer|; NULL where the step has none.
static void* bound(const sg_kda_step_t* step, const sg_recording_t* recording,
                   int32_t layer, sg_kda_buffer_t buffer) {
  int32_t index = sg_kda_step_buffer(step, layer, buffer);
  return index < 0 ? NULL : recording->buffers[index];
}

static int64_t value_stride(const sg_kda_geometry_t* g) {
  return (int64_t)g->value_heads * g->value_dim;
}

// q, k and v: the caller's, or packed in the output of the convolution.
static void set_projections(const sg_kda_step_t* step,
                            const sg_recording_t* recording, int32_t layer,
                            sg_kda_tensors_t* tensors) {
  const sg_kda_geometry_t* g = &step->geometry;
  int64_t qk_stride = (int64_t)g->heads * g->key_dim;
  if (!step->options.with_conv) {
    tensors->q = bound(step, recording, layer, SG_KDA_BUFFER_Q);
    tensors->k = bound(step, recording, layer, SG_KDA_BUFFER_K);
    tensors->v = bound(step, recording, layer, SG_KDA_BUFFER_V);
    tensors->q_row_stride = qk_stride;
    tensors->k_row_stride = qk_stride;
    tensors->v_row_stride = value_stride(g);
    return;
  }
  const unsigned char* row = region(step, recording, SG_KDA_REGION_CONV_OUTPUT);
  size_t qk_bytes = (size_t)qk_stride * sg_dtype_bytes(g->activation_dtype);
  tensors->q = row;
  tensors->k = row + qk_bytes;
  tensors->v = row + 2 * qk_bytes;
  tensors->q_row_stride = sg_short_conv_channels(g);
  tensors->k_row_stride = tensors->q_row_stride;
  tensors->v_row_stride = tensors->q_row_stride;
}

static sg_kda_tensors_t tensors_of(const sg_kda_step_t* step,
                                   const sg_recording_t* recording,
                                   int32_t layer) {
  const sg_kda_geometry_t* g = &step->geometry;
  sg_kda_tensors_t tensors = {
      .raw_g = bound(step, recording, layer, SG_KDA_BUFFER_RAW_G),
      .raw_beta = bound(step, recording, layer, SG_KDA_BUFFER_RAW_BETA),
      .a_log = bound(step, recording, layer, SG_KDA_BUFFER_A_LOG),
      .dt_bias = bound(step, recording, layer, SG_KDA_BUFFER_DT_BIAS),
      .state = bound(step, recording, layer, SG_KDA_BUFFER_STATE),
      .o = bound(step, recording, layer, SG_KDA_BUFFER_O),
      .g_row_stride = (int64_t)g->value_heads * g->key_dim,
      .beta_row_stride = g->value_heads,
      .o_row_stride = value_stride(g),
      .state_slot_stride = value_stride(g) * g->key_dim,
  };
  set_projections(step, recording, layer, &tensors);
  return tensors;
}

static sg_status_t enqueue_conv(const sg_kda_step_t* step,
                                const sg_recording_t* recording,
                                int32_t layer) {
  sg_enqueue_t where = enqueue_at(recording, layer);
  int64_t channels = sg_short_conv_channels(&step->geometry);
  sg_short_conv_args_t args = {
      .geometry = &step->geometry,
      .capacity = capacity_of(step, recording),
      .tables = tables_of(step, recording),
      .x = bound(step, recording, layer, SG_KDA_BUFFER_QKV),
      .weight = bound(step, recording, layer, SG_KDA_BUFFER_CONV_WEIGHT),
      .cache = bound(step, recording, layer, SG_KDA_BUFFER_CONV_CACHE),
      .y = region(step, recording, SG_KDA_REGION_CONV_OUTPUT),
      .x_row_stride = channels,
      .y_row_stride = channels,
      .cache_slot_stride = channels * (step->geometry.conv_width - 1),
      .null_slot = step->options.null_slot,
  };
  return sg_short_conv_enqueue(&where, &args);
}

static sg_status_t enqueue_norm(const sg_kda_step_t* step,
                                const sg_recording_t* recording,
                                int32_t layer) {
  sg_enqueue_t where = enqueue_at(recording, layer);
  void* o = bound(step, recording, layer, SG_KDA_BUFFER_O);
  int64_t stride = value_stride(&step->geometry);
  sg_gated_norm_args_t args = {
      .geometry = &step->geometry,
      .capacity = capacity_of(step, recording),
      .counts = region(step, recording, SG_KDA_REGION_COUNTS),
      .o = o,
      .gate = bound(step, recording, layer, SG_KDA_BUFFER_OUTPUT_GATE),
      .weight = bound(step, recording, layer, SG_KDA_BUFFER_NORM_WEIGHT),
      .y = o,
      .o_row_stride = stride,
      .gate_row_stride = stride,
      .y_row_stride = stride,
      .zero_tail = step->options.zero_tail,
  };
  return sg_gated_norm_enqueue(&where, &args);
}

// Of the ops that write o the last one zeroes the rows that no sequence owns.
static sg_status_t enqueue_recurrence(const sg_kda_step_t* step,
                                      const sg_recording_t* recording,
                                      int32_t layer) {
  sg_enqueue_t where = enqueue_at(recording, layer);
  sg_phase_t phase = recording->capacity.phase;
  bool is_last = !step->options.with_norm;
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
    args.zeroes_outputs = is_last && phase == SG_PHASE_DECODE;
    SG_RETURN_IF_ERROR(sg_kda_recurrent_enqueue(&where, &args));
  }
  if (phase != SG_PHASE_DECODE) {
    args.zeroes_outputs = is_last;
    SG_RETURN_IF_ERROR(sg_kda_chunk_enqueue(&where, &args));
  }
  return sg_status_ok();
}

static sg_status_t enqueue_layer(const sg_kda_step_t* step,
                                 const sg_recording_t* recording,
                                 int32_t layer) {
  if (step->options.with_conv) {
    SG_RETURN_IF_ERROR(enqueue_conv(step, recording, layer));
  }
  SG_RETURN_IF_ERROR(enqueue_recurrence(step, recording, layer));
  if (step->options.with_norm) {
    SG_RETURN_IF_ERROR(enqueue_norm(step, recording, layer));
  }
  return sg_status_ok();
}

sg_status_t sg_kda_segment_layer(const sg_kda_segment_t* segment,
                                 int32_t layer) {
  const sg_kda_step_t* step = segment->step;
  if (layer < 0 || layer >= step->layers) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "KDA segment: layer %d, the model has %d", layer,
                          step->layers);
  }
  return enqueue_layer(step, segment->recording, layer);
}

static sg_status_t record_segment(const sg_kda_step_t* step,
                                  const sg_recording_t* recording) {
  const sg_kda_segment_t segment = {
      .stream = recording->stream,
      .mode = recording->mode,
      .piece = recording->piece,
      .capacity = recording->capacity,
      .tables = tables_of(step, recording),
      .step = step,
      .recording = recording,
  };
  return step->options.record(step->options.record_self, &segment);
}

sg_status_t sg_kda_step_record(void* self, const sg_recording_t* recording) {
  const sg_kda_step_t* step = self;
  if (recording->piece == 0) {
    SG_RETURN_IF_ERROR(enqueue_ingest(step, recording));
    SG_RETURN_IF_ERROR(enqueue_metadata(step, recording));
  }
  if (step->options.record != NULL) return record_segment(step, recording);
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
