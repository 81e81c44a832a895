// SPDX-License-Identifier: Apache-2.0

#include "tests/graphs/foreign_ops.h"

#include <string.h>

#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/gated_norm/gated_norm.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "kernels/short_conv/short_conv.h"
#include "tests/check.h"
#include "tests/device_memory.h"

enum { OFFSETS = KDA_MAX_SEQUENCES + 1 };

static const sg_kda_geometry_t* geometry_of(const foreign_ops_t* ops) {
  return &ops->fixture.options.geometry;
}

static sg_batch_capacity_t capacity_of(const foreign_ops_t* ops, int32_t tokens,
                                       int32_t sequences) {
  int32_t chunk_size = geometry_of(ops)->chunk_size;
  return (sg_batch_capacity_t){
      tokens, sequences,
      (int32_t)sg_chunk_capacity(tokens, sequences, chunk_size)};
}

void foreign_ops_set_up(foreign_ops_t* ops, int32_t offset_bytes,
                        bool counted) {
  memset(ops, 0, sizeof(*ops));
  ops->offset_bytes = offset_bytes;
  ops->counted = counted;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.layers = 1;
  options.with_conv = true;
  options.with_norm = true;
  options.captured = false;
  kda_fixture_set_up(&ops->fixture, &options);
  ops->target = sg_context_target(ops->fixture.context);
  sg_batch_capacity_t capacity =
      capacity_of(ops, KDA_MAX_TOKENS, KDA_MAX_SEQUENCES);
  size_t workspace_bytes, stamp_bytes;
  assert_ok(sg_kda_chunk_workspace_bytes(geometry_of(ops), ops->target,
                                         &capacity, &workspace_bytes));
  assert_ok(sg_chunk_metadata_workspace_bytes(KDA_SLOTS, &stamp_bytes));
  size_t channels = (size_t)sg_short_conv_channels(geometry_of(ops));
  ops->offsets = device_allocate(8 * OFFSETS, 0xff);
  ops->computed_lens = device_allocate(4 * KDA_MAX_SEQUENCES, 0xff);
  ops->slots = device_allocate(4 * KDA_MAX_SEQUENCES, 0xff);
  ops->sequence_count = device_allocate(4, 0xff);
  ops->counts = device_allocate(sizeof(sg_batch_counts_t), 0xff);
  ops->offsets_copy = device_allocate(4 * OFFSETS, 0xff);
  ops->chunk_indices = device_allocate(8 * (size_t)capacity.chunks, 0xff);
  ops->chunk_offsets = device_allocate(8 * OFFSETS, 0xff);
  ops->slot_stamps = device_allocate(stamp_bytes, 0);
  ops->projections = device_allocate(4 * channels * KDA_MAX_TOKENS, 0xff);
  ops->workspace = device_allocate(workspace_bytes, 0xff);
  assert_hip(hipDeviceSynchronize());
}

void foreign_ops_tear_down(foreign_ops_t* ops) {
  kda_fixture_tear_down(&ops->fixture);
  void* const memory[] = {
      ops->offsets,        ops->computed_lens, ops->slots,
      ops->sequence_count, ops->counts,        ops->offsets_copy,
      ops->chunk_indices,  ops->chunk_offsets, ops->slot_stamps,
      ops->projections,    ops->workspace};
  for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); ++i) {
    assert_hip(hipFree(memory[i]));
  }
}

static void* bound(const foreign_ops_t* ops, sg_kda_buffer_t buffer) {
  return ops->fixture.device[kda_fixture_index(&ops->fixture, 0, buffer)];
}

static void enqueue_metadata(const foreign_ops_t* ops,
                             const sg_enqueue_t* where,
                             sg_batch_capacity_t capacity) {
  const sg_chunk_metadata_params_t params = {
      .counts = ops->counts,
      .query_start_loc = ops->offsets,
      .query_start_loc_copy = ops->offset_bytes == 8 ? ops->offsets_copy : NULL,
      .computed_lens = ops->computed_lens,
      .slots = ops->slots,
      .chunk_indices = ops->chunk_indices,
      .chunk_offsets = ops->chunk_offsets,
      .slot_stamps = ops->slot_stamps,
      .sequence_count = ops->counted ? ops->sequence_count : NULL,
      .sequence_capacity = capacity.sequences,
      .token_capacity = capacity.tokens,
      .chunk_capacity = capacity.chunks,
      .chunk_size = geometry_of(ops)->chunk_size,
      .slot_count = KDA_SLOTS,
      .null_slot = KDA_NULL_SLOT,
      .content = SG_STEP_CONTENT_ANY,
      .offset_bytes = ops->offset_bytes,
      .stands_alone = 1,
  };
  assert_ok(sg_chunk_metadata_enqueue(where, &params));
}

static sg_batch_tables_t tables_of(const foreign_ops_t* ops) {
  return (sg_batch_tables_t){.counts = ops->counts,
                             .query_start_loc = ops->offset_bytes == 8
                                                    ? ops->offsets_copy
                                                    : ops->offsets,
                             .computed_lens = ops->computed_lens,
                             .slots = ops->slots,
                             .chunk_indices = ops->chunk_indices,
                             .chunk_offsets = ops->chunk_offsets};
}

static void enqueue_conv(const foreign_ops_t* ops, const sg_enqueue_t* where,
                         sg_batch_capacity_t capacity) {
  const sg_kda_geometry_t* g = geometry_of(ops);
  int64_t channels = sg_short_conv_channels(g);
  const sg_short_conv_args_t args = {
      .geometry = g,
      .capacity = capacity,
      .tables = tables_of(ops),
      .x = bound(ops, SG_KDA_BUFFER_QKV),
      .weight = bound(ops, SG_KDA_BUFFER_CONV_WEIGHT),
      .cache = bound(ops, SG_KDA_BUFFER_CONV_CACHE),
      .y = ops->projections,
      .x_row_stride = channels,
      .y_row_stride = channels,
      .cache_slot_stride = channels * (g->conv_width - 1),
      .null_slot = KDA_NULL_SLOT,
  };
  assert_ok(sg_short_conv_enqueue(where, &args));
}

static void enqueue_kda(const foreign_ops_t* ops, const sg_enqueue_t* where,
                        sg_batch_capacity_t capacity) {
  const sg_kda_geometry_t* g = geometry_of(ops);
  const float* y = ops->projections;
  int64_t channels = sg_short_conv_channels(g);
  int64_t qk = (int64_t)g->heads * g->key_dim;
  int64_t v = (int64_t)g->value_heads * g->value_dim;
  const sg_kda_args_t args = {
      .geometry = g,
      .capacity = capacity,
      .tables = tables_of(ops),
      .tensors = {.q = y,
                  .k = y + qk,
                  .v = y + 2 * qk,
                  .raw_g = bound(ops, SG_KDA_BUFFER_RAW_G),
                  .raw_beta = bound(ops, SG_KDA_BUFFER_RAW_BETA),
                  .a_log = bound(ops, SG_KDA_BUFFER_A_LOG),
                  .dt_bias = bound(ops, SG_KDA_BUFFER_DT_BIAS),
                  .o = bound(ops, SG_KDA_BUFFER_O),
                  .state = bound(ops, SG_KDA_BUFFER_STATE),
                  .q_row_stride = channels,
                  .k_row_stride = channels,
                  .v_row_stride = channels,
                  .g_row_stride = (int64_t)g->value_heads * g->key_dim,
                  .beta_row_stride = g->value_heads,
                  .o_row_stride = v,
                  .state_slot_stride = v * g->key_dim},
      .null_slot = KDA_NULL_SLOT,
      .workspace = ops->workspace,
  };
  assert_ok(sg_kda_recurrent_enqueue(where, &args));
  assert_ok(sg_kda_chunk_enqueue(where, &args));
}

static void enqueue_norm(const foreign_ops_t* ops, const sg_enqueue_t* where,
                         sg_batch_capacity_t capacity) {
  const sg_kda_geometry_t* g = geometry_of(ops);
  int64_t v = (int64_t)g->value_heads * g->value_dim;
  const sg_gated_norm_args_t args = {
      .geometry = g,
      .capacity = capacity,
      .counts = ops->counts,
      .o = bound(ops, SG_KDA_BUFFER_O),
      .gate = bound(ops, SG_KDA_BUFFER_OUTPUT_GATE),
      .weight = bound(ops, SG_KDA_BUFFER_NORM_WEIGHT),
      .y = bound(ops, SG_KDA_BUFFER_O),
      .o_row_stride = v,
      .gate_row_stride = v,
      .y_row_stride = v,
  };
  assert_ok(sg_gated_norm_enqueue(where, &args));
}

void foreign_ops_enqueue(const foreign_ops_t* ops, int32_t tokens,
                         int32_t sequences) {
  const sg_enqueue_t where = {.stream = ops->fixture.stream,
                              .target = ops->target};
  sg_batch_capacity_t capacity = capacity_of(ops, tokens, sequences);
  enqueue_metadata(ops, &where, capacity);
  enqueue_conv(ops, &where, capacity);
  enqueue_kda(ops, &where, capacity);
  enqueue_norm(ops, &where, capacity);
}

void foreign_ops_write(const foreign_ops_t* ops, const sg_batch_t* batch,
                       int32_t sequences) {
  int64_t wide[OFFSETS] = {0};
  int32_t narrow[OFFSETS] = {0};
  int32_t computed[KDA_MAX_SEQUENCES], slots[KDA_MAX_SEQUENCES];
  const int32_t garbage = 0x7f7f7f7f;
  for (int32_t n = 0; n < sequences; ++n) {
    bool real = n < batch->sequence_count;
    bool empty = !real && !ops->counted;
    int32_t length = real ? batch->query_lens[n] : 0;
    wide[n + 1] = real || empty ? wide[n] + length : garbage;
    narrow[n + 1] = (int32_t)wide[n + 1];
    computed[n] = real ? batch->computed_lens[n] : garbage;
    slots[n] = real ? batch->slots[n] : garbage;
  }
  size_t count = (size_t)sequences;
  bool is_wide = ops->offset_bytes == 8;
  device_upload(ops->offsets, is_wide ? (const void*)wide : narrow,
                (size_t)ops->offset_bytes * (count + 1));
  device_upload(ops->computed_lens, computed, 4 * count);
  device_upload(ops->slots, slots, 4 * count);
  device_upload(ops->sequence_count, &batch->sequence_count, 4);
}
