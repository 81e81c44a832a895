// SPDX-License-Identifier: Apache-2.0

#include "graphs/kda_step.h"

#include <string.h>

#include "graphs/kda_step_internal.h"
#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/gated_norm/gated_norm.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "kernels/short_conv/short_conv.h"
#include "runtime/base/arena.h"

sg_batch_capacity_t sg_kda_step_capacity(const sg_kda_step_t* step) {
  sg_shape_limits_t limits = step->options.limits;
  return (sg_batch_capacity_t){
      .tokens = limits.max_tokens,
      .sequences = limits.max_sequences,
      .chunks = (int32_t)sg_chunk_capacity(
          limits.max_tokens, limits.max_sequences, step->geometry.chunk_size)};
}

static sg_status_t add_region(sg_kda_step_t* step, sg_arena_layout_t* layout,
                              int region, const char* name, size_t count,
                              size_t element_bytes) {
  size_t offset;
  SG_RETURN_IF_ERROR(
      sg_arena_reserve(layout, name, count, element_bytes, &offset));
  step->regions[region] = (sg_arena_region_t){
      .name = name, .offset = offset, .bytes = count * element_bytes};
  return sg_status_ok();
}

static sg_status_t lay_out_arena(sg_kda_step_t* step) {
  sg_batch_capacity_t capacity = sg_kda_step_capacity(step);
  size_t sequences = (size_t)capacity.sequences;
  size_t workspace_bytes, stamp_bytes;
  size_t conv_rows = step->options.with_conv ? (size_t)capacity.tokens : 0;
  size_t conv_row_bytes = (size_t)sg_short_conv_channels(&step->geometry) *
                          sg_dtype_bytes(step->geometry.activation_dtype);
  SG_RETURN_IF_ERROR(sg_kda_chunk_workspace_bytes(
      &step->geometry, step->options.target, &capacity, &workspace_bytes));
  // Verified steps run on shadow pools of one slot more than sequences.
  int32_t slots = step->options.slot_count;
  if (slots < capacity.sequences + 1) slots = capacity.sequences + 1;
  SG_RETURN_IF_ERROR(sg_chunk_metadata_workspace_bytes(slots, &stamp_bytes));
  const struct {
    int region;
    const char* name;
    size_t count;
    size_t element_bytes;
  } parts[] = {
      {SG_KDA_REGION_COUNTS, "counts", 1, sizeof(sg_batch_counts_t)},
      {SG_KDA_REGION_QUERY_START_LOC, "query_start_loc", sequences + 1, 4},
      {SG_KDA_REGION_COMPUTED_LENS, "computed_lens", sequences, 4},
      {SG_KDA_REGION_SLOTS, "slots", sequences, 4},
      {SG_KDA_REGION_CHUNK_INDICES, "chunk_indices",
       2 * (size_t)capacity.chunks, 4},
      {SG_KDA_REGION_CHUNK_OFFSETS, "chunk_offsets", sequences + 1, 8},
      {SG_KDA_REGION_SLOT_STAMPS, "slot_stamps", stamp_bytes, 1},
      {SG_KDA_REGION_WORKSPACE, "workspace", workspace_bytes, 1},
      {SG_KDA_REGION_CONV_OUTPUT, "conv_output", conv_rows, conv_row_bytes},
  };
  sg_arena_layout_t layout = {0};
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    SG_RETURN_IF_ERROR(add_region(step, &layout, parts[i].region, parts[i].name,
                                  parts[i].count, parts[i].element_bytes));
  }
  step->program.arena_bytes = layout.total_bytes;
  step->program.arena_regions = step->regions;
  step->program.arena_region_count = SG_KDA_REGION_COUNT;
  return sg_status_ok();
}

// FNV-1a over 64-bit words.
static uint64_t hash_words(const uint64_t* words, size_t count) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < count; ++i) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ ((words[i] >> shift) & 0xff)) * 1099511628211u;
    }
  }
  return hash;
}

static uint64_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static uint64_t fingerprint(const sg_kda_step_t* step) {
  const sg_kda_geometry_t* g = &step->geometry;
  const sg_kda_step_options_t* o = &step->options;
  const uint64_t words[] = {
      (uint64_t)step->layers,
      (uint64_t)g->heads,
      (uint64_t)g->value_heads,
      (uint64_t)g->key_dim,
      (uint64_t)g->value_dim,
      (uint64_t)g->conv_width,
      (uint64_t)g->chunk_size,
      (uint64_t)g->gate_kind,
      float_bits(g->gate_lower_bound),
      (uint64_t)g->beta_kind,
      g->qk_l2norm,
      float_bits(g->scale),
      (uint64_t)g->activation_dtype,
      (uint64_t)g->state_dtype,
      float_bits(g->norm_epsilon),
      (uint64_t)o->slot_count,
      (uint64_t)o->null_slot,
      o->zero_tail,
      o->with_conv,
      o->with_norm,
      (uint64_t)o->tables,
  };
  return hash_words(words, sizeof(words) / sizeof(words[0]));
}

static int32_t build_tables(void* self, const int32_t* query_lens,
                            const int32_t* computed_lens,
                            int32_t sequence_count, int32_t* out_chunk_indices,
                            int64_t* out_chunk_offsets) {
  const sg_kda_step_t* step = self;
  return sg_chunk_tables_build(query_lens, computed_lens, sequence_count,
                               step->geometry.chunk_size, out_chunk_indices,
                               out_chunk_offsets);
}

static sg_status_t check_options(const sg_kda_step_options_t* options) {
  if (options->piece_count > 1 && options->record == NULL) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "KDA step: %d pieces, but no function that records "
                          "them",
                          options->piece_count);
  }
  const sg_kda_geometry_t* geometry = &options->model->geometry;
  SG_RETURN_IF_ERROR(sg_kda_chunk_supports(geometry, options->target));
  SG_RETURN_IF_ERROR(sg_kda_recurrent_supports(geometry, options->target));
  if (options->with_conv) {
    SG_RETURN_IF_ERROR(sg_short_conv_supports(geometry, options->target));
  }
  if (options->with_norm) {
    SG_RETURN_IF_ERROR(sg_gated_norm_supports(geometry, options->target));
  }
  if (options->model->layers < 1 || options->limits.max_tokens < 1 ||
      options->limits.max_sequences < 1 || options->slot_count < 1) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "KDA step: %d layers, %d tokens, %d sequences, %d "
                          "slots, expected at least 1 of each",
                          options->model->layers, options->limits.max_tokens,
                          options->limits.max_sequences, options->slot_count);
  }
  return sg_status_ok();
}

static sg_status_t fill_step(sg_kda_step_t* step) {
  SG_RETURN_IF_ERROR(lay_out_arena(step));
  SG_RETURN_IF_ERROR(sg_kda_step_describe_buffers(step));
  sg_program_t* program = &step->program;
  program->name = "kda_step";
  program->self = step;
  program->fingerprint = fingerprint(step);
  program->limits = step->options.limits;
  if (step->options.tables == SG_TABLES_HOST) {
    program->ring_chunk_capacity = sg_kda_step_capacity(step).chunks;
  }
  program->slot_count = step->options.slot_count;
  program->null_slot = step->options.null_slot;
  program->piece_count =
      step->options.piece_count > 1 ? step->options.piece_count : 1;
  program->has_foreign_work = step->options.record != NULL;
  program->record_piece = sg_kda_step_record;
  program->record_done = sg_kda_step_record_done;
  program->record_snapshot = sg_kda_step_record_snapshot;
  program->record_compare = sg_kda_step_record_compare;
  program->build_tables = build_tables;
  return sg_status_ok();
}

sg_status_t sg_kda_step_create(const sg_kda_step_options_t* options,
                               sg_kda_step_t** out_step) {
  *out_step = NULL;
  SG_RETURN_IF_ERROR(check_options(options));
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(options->allocator, "KDA step", 1,
                                 sizeof(sg_kda_step_t), &memory));
  sg_kda_step_t* step = memory;
  step->options = *options;
  step->options.model = NULL;
  step->geometry = options->model->geometry;
  step->layers = options->model->layers;
  sg_status_t status = fill_step(step);
  if (!sg_status_is_ok(status)) {
    sg_kda_step_destroy(step);
    return status;
  }
  *out_step = step;
  return sg_status_ok();
}

void sg_kda_step_destroy(sg_kda_step_t* step) {
  if (step == NULL) return;
  sg_allocator_t allocator = step->options.allocator;
  sg_release(allocator, step->specs);
  sg_release(allocator, step);
}

const sg_program_t* sg_kda_step_program(const sg_kda_step_t* step) {
  return &step->program;
}

int32_t sg_kda_step_buffer(const sg_kda_step_t* step, int32_t layer,
                           sg_kda_buffer_t buffer) {
  if (step->places[buffer] < 0) return -1;
  return layer * step->buffers_per_layer + step->places[buffer];
}
