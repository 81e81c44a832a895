// SPDX-License-Identifier: Apache-2.0

#include "graphs/kda_step.h"

#include <stdio.h>
#include <string.h>

#include "graphs/kda_step_internal.h"
#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "runtime/base/arena.h"
#include "runtime/base/checked.h"

static sg_batch_capacity_t largest_capacity(const sg_kda_step_t* step) {
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
  sg_batch_capacity_t capacity = largest_capacity(step);
  size_t sequences = (size_t)capacity.sequences;
  size_t workspace_bytes, stamp_bytes;
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

// What one of a layer's buffers is, by its place in the enumeration.
typedef struct layer_buffer_t {
  const char* name;
  sg_buffer_role_t role;
  size_t row_bytes;
} layer_buffer_t;

static void describe_layer(const sg_kda_geometry_t* g,
                           layer_buffer_t out[SG_KDA_BUFFERS_PER_LAYER]) {
  size_t element = sg_dtype_bytes(g->activation_dtype);
  size_t gate_element = g->gate_kind == SG_GATE_GIVEN ? 4 : element;
  size_t beta_element = g->beta_kind == SG_BETA_GIVEN ? 4 : element;
  size_t heads = (size_t)g->heads, value_heads = (size_t)g->value_heads;
  size_t key_dim = (size_t)g->key_dim, value_dim = (size_t)g->value_dim;
  size_t qk = heads * key_dim, v = value_heads * value_dim;
  size_t gate = value_heads * key_dim;
  size_t state = v * key_dim * sg_dtype_bytes(g->state_dtype);
  out[SG_KDA_BUFFER_Q] = (layer_buffer_t){"q", SG_BUFFER_INPUT, qk * element};
  out[SG_KDA_BUFFER_K] = (layer_buffer_t){"k", SG_BUFFER_INPUT, qk * element};
  out[SG_KDA_BUFFER_V] = (layer_buffer_t){"v", SG_BUFFER_INPUT, v * element};
  out[SG_KDA_BUFFER_RAW_G] =
      (layer_buffer_t){"raw_g", SG_BUFFER_INPUT, gate * gate_element};
  out[SG_KDA_BUFFER_RAW_BETA] =
      (layer_buffer_t){"raw_beta", SG_BUFFER_INPUT, value_heads * beta_element};
  out[SG_KDA_BUFFER_A_LOG] =
      (layer_buffer_t){"a_log", SG_BUFFER_WEIGHT, value_heads * 4};
  out[SG_KDA_BUFFER_DT_BIAS] =
      (layer_buffer_t){"dt_bias", SG_BUFFER_WEIGHT, gate * 4};
  out[SG_KDA_BUFFER_STATE] = (layer_buffer_t){"state", SG_BUFFER_POOL, state};
  out[SG_KDA_BUFFER_O] = (layer_buffer_t){"o", SG_BUFFER_OUTPUT, v * element};
}

static sg_status_t fill_spec(const sg_kda_step_t* step, int32_t layer,
                             const layer_buffer_t* buffer,
                             sg_buffer_spec_t* out_spec) {
  *out_spec = (sg_buffer_spec_t){.role = buffer->role,
                                 .layer = layer,
                                 .row_bytes = buffer->row_bytes,
                                 .bytes = buffer->row_bytes};
  snprintf(out_spec->name, sizeof(out_spec->name), "layers.%d.%s", layer,
           buffer->name);
  if (buffer->role == SG_BUFFER_WEIGHT) return sg_status_ok();
  size_t rows = buffer->role == SG_BUFFER_POOL
                    ? (size_t)step->options.slot_count
                    : (size_t)step->options.limits.max_tokens;
  out_spec->stride_bytes = buffer->row_bytes;
  if (!sg_checked_mul(buffer->row_bytes, rows, &out_spec->bytes)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "%s: %zu rows of %zu bytes overflow", out_spec->name,
                          rows, buffer->row_bytes);
  }
  return sg_status_ok();
}

// The buffers of given tables, behind those of the layers.
static void fill_table_specs(const sg_kda_step_t* step,
                             sg_buffer_spec_t* out_specs) {
  sg_batch_capacity_t capacity = largest_capacity(step);
  const sg_buffer_spec_t tables[2] = {
      {.name = "chunk_indices",
       .role = SG_BUFFER_INPUT,
       .layer = -1,
       .bytes = (size_t)capacity.chunks * 2 * sizeof(int32_t)},
      {.name = "chunk_offsets",
       .role = SG_BUFFER_INPUT,
       .layer = -1,
       .bytes = ((size_t)capacity.sequences + 1) * sizeof(int64_t)}};
  memcpy(out_specs, tables, sizeof(tables));
}

static sg_status_t describe_buffers(sg_kda_step_t* step) {
  size_t layer_specs = (size_t)step->layers * SG_KDA_BUFFERS_PER_LAYER;
  bool given = step->options.tables == SG_TABLES_GIVEN;
  step->spec_count = layer_specs + (given ? 2 : 0);
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(step->options.allocator, "buffer specs",
                                 step->spec_count, sizeof(sg_buffer_spec_t),
                                 &memory));
  step->specs = memory;
  layer_buffer_t buffers[SG_KDA_BUFFERS_PER_LAYER];
  describe_layer(&step->geometry, buffers);
  for (size_t i = 0; i < layer_specs; ++i) {
    SG_RETURN_IF_ERROR(fill_spec(step, (int32_t)(i / SG_KDA_BUFFERS_PER_LAYER),
                                 &buffers[i % SG_KDA_BUFFERS_PER_LAYER],
                                 &step->specs[i]));
  }
  if (given) fill_table_specs(step, step->specs + layer_specs);
  step->program.buffers = step->specs;
  step->program.buffer_count = step->spec_count;
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
  const sg_kda_geometry_t* geometry = &options->model->geometry;
  SG_RETURN_IF_ERROR(sg_kda_chunk_supports(geometry, options->target));
  SG_RETURN_IF_ERROR(sg_kda_recurrent_supports(geometry, options->target));
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
  SG_RETURN_IF_ERROR(describe_buffers(step));
  sg_program_t* program = &step->program;
  program->name = "kda_step";
  program->self = step;
  program->fingerprint = fingerprint(step);
  program->limits = step->options.limits;
  if (step->options.tables == SG_TABLES_HOST) {
    program->ring_chunk_capacity = largest_capacity(step).chunks;
  }
  program->slot_count = step->options.slot_count;
  program->null_slot = step->options.null_slot;
  program->piece_count = 1;
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
