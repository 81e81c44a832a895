// SPDX-License-Identifier: Apache-2.0
//
// Which buffers a step has, in which order and of which size.

#include <stdio.h>
#include <string.h>

#include "graphs/kda_step_internal.h"
#include "kernels/short_conv/short_conv.h"
#include "runtime/base/checked.h"

// A buffer of every layer; its size is that of a row, a slot, or a weight.
typedef struct layer_buffer_t {
  const char* name;
  sg_buffer_role_t role;
  sg_dtype_t dtype;
  size_t elements;
} layer_buffer_t;

static void describe_layer(const sg_kda_geometry_t* g,
                           layer_buffer_t out[SG_KDA_BUFFER_COUNT]) {
  sg_dtype_t dtype = g->activation_dtype;
  sg_dtype_t gate_dtype = g->gate_kind == SG_GATE_GIVEN ? SG_DTYPE_FP32 : dtype;
  sg_dtype_t beta_dtype = g->beta_kind == SG_BETA_GIVEN ? SG_DTYPE_FP32 : dtype;
  size_t value_heads = (size_t)g->value_heads;
  size_t key_dim = (size_t)g->key_dim, value_dim = (size_t)g->value_dim;
  size_t qk = (size_t)g->heads * key_dim, v = value_heads * value_dim;
  size_t gate = value_heads * key_dim;
  size_t channels = (size_t)sg_short_conv_channels(g);
  size_t width = (size_t)g->conv_width;
  const layer_buffer_t buffers[SG_KDA_BUFFER_COUNT] = {
      [SG_KDA_BUFFER_Q] = {"q", SG_BUFFER_INPUT, dtype, qk},
      [SG_KDA_BUFFER_K] = {"k", SG_BUFFER_INPUT, dtype, qk},
      [SG_KDA_BUFFER_V] = {"v", SG_BUFFER_INPUT, dtype, v},
      [SG_KDA_BUFFER_QKV] = {"qkv", SG_BUFFER_INPUT, dtype, channels},
      [SG_KDA_BUFFER_CONV_WEIGHT] = {"conv_weight", SG_BUFFER_WEIGHT,
                                     SG_DTYPE_FP32, channels * width},
      [SG_KDA_BUFFER_CONV_CACHE] = {"conv_cache", SG_BUFFER_POOL, dtype,
                                    channels * (width - 1)},
      [SG_KDA_BUFFER_RAW_G] = {"raw_g", SG_BUFFER_INPUT, gate_dtype, gate},
      [SG_KDA_BUFFER_RAW_BETA] = {"raw_beta", SG_BUFFER_INPUT, beta_dtype,
                                  value_heads},
      [SG_KDA_BUFFER_A_LOG] = {"a_log", SG_BUFFER_WEIGHT, SG_DTYPE_FP32,
                               value_heads},
      [SG_KDA_BUFFER_DT_BIAS] = {"dt_bias", SG_BUFFER_WEIGHT, SG_DTYPE_FP32,
                                 gate},
      [SG_KDA_BUFFER_STATE] = {"state", SG_BUFFER_POOL, g->state_dtype,
                               v * key_dim},
      [SG_KDA_BUFFER_O] = {"o", SG_BUFFER_OUTPUT, dtype, v},
      [SG_KDA_BUFFER_OUTPUT_GATE] = {"output_gate", SG_BUFFER_INPUT, dtype, v},
      [SG_KDA_BUFFER_NORM_WEIGHT] = {"norm_weight", SG_BUFFER_WEIGHT,
                                     SG_DTYPE_FP32, value_dim},
  };
  memcpy(out, buffers, sizeof(buffers));
}

static bool has_buffer(const sg_kda_step_options_t* options,
                       sg_kda_buffer_t buffer) {
  switch (buffer) {
    case SG_KDA_BUFFER_Q:
    case SG_KDA_BUFFER_K:
    case SG_KDA_BUFFER_V:
      return !options->with_conv;
    case SG_KDA_BUFFER_QKV:
    case SG_KDA_BUFFER_CONV_WEIGHT:
    case SG_KDA_BUFFER_CONV_CACHE:
      return options->with_conv;
    case SG_KDA_BUFFER_OUTPUT_GATE:
    case SG_KDA_BUFFER_NORM_WEIGHT:
      return options->with_norm;
    case SG_KDA_BUFFER_RAW_G:
    case SG_KDA_BUFFER_RAW_BETA:
    case SG_KDA_BUFFER_A_LOG:
    case SG_KDA_BUFFER_DT_BIAS:
    case SG_KDA_BUFFER_STATE:
    case SG_KDA_BUFFER_O:
      break;
  }
  return true;
}

static void place_buffers(sg_kda_step_t* step) {
  step->buffers_per_layer = 0;
  for (int b = 0; b < SG_KDA_BUFFER_COUNT; ++b) {
    bool present = has_buffer(&step->options, (sg_kda_buffer_t)b);
    step->places[b] = present ? step->buffers_per_layer++ : -1;
  }
}

static sg_status_t fill_spec(const sg_kda_step_t* step, int32_t layer,
                             const layer_buffer_t* buffer,
                             sg_buffer_spec_t* out_spec) {
  size_t row_bytes = buffer->elements * sg_dtype_bytes(buffer->dtype);
  *out_spec = (sg_buffer_spec_t){.role = buffer->role,
                                 .dtype = buffer->dtype,
                                 .layer = layer,
                                 .row_bytes = row_bytes,
                                 .bytes = row_bytes};
  snprintf(out_spec->name, sizeof(out_spec->name), "layers.%d.%s", layer,
           buffer->name);
  if (buffer->role == SG_BUFFER_WEIGHT) return sg_status_ok();
  size_t rows = buffer->role == SG_BUFFER_POOL
                    ? (size_t)step->options.slot_count
                    : (size_t)step->options.limits.max_tokens;
  out_spec->stride_bytes = row_bytes;
  if (!sg_checked_mul(row_bytes, rows, &out_spec->bytes)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "%s: %zu rows of %zu bytes overflow", out_spec->name,
                          rows, row_bytes);
  }
  return sg_status_ok();
}

// The buffers of given tables, behind those of the layers.
static void fill_table_specs(const sg_kda_step_t* step,
                             sg_buffer_spec_t* out_specs) {
  sg_batch_capacity_t capacity = sg_kda_step_capacity(step);
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

sg_status_t sg_kda_step_describe_buffers(sg_kda_step_t* step) {
  place_buffers(step);
  size_t layer_specs = (size_t)step->layers * (size_t)step->buffers_per_layer;
  bool given = step->options.tables == SG_TABLES_GIVEN;
  step->spec_count = layer_specs + (given ? 2 : 0);
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(step->options.allocator, "buffer specs",
                                 step->spec_count, sizeof(sg_buffer_spec_t),
                                 &memory));
  step->specs = memory;
  layer_buffer_t buffers[SG_KDA_BUFFER_COUNT];
  describe_layer(&step->geometry, buffers);
  for (int32_t layer = 0; layer < step->layers; ++layer) {
    for (int b = 0; b < SG_KDA_BUFFER_COUNT; ++b) {
      int32_t index = sg_kda_step_buffer(step, layer, (sg_kda_buffer_t)b);
      if (index < 0) continue;
      SG_RETURN_IF_ERROR(
          fill_spec(step, layer, &buffers[b], &step->specs[index]));
    }
  }
  if (given) fill_table_specs(step, step->specs + layer_specs);
  step->program.buffers = step->specs;
  step->program.buffer_count = step->spec_count;
  return sg_status_ok();
}
