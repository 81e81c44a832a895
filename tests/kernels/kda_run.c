// SPDX-License-Identifier: Apache-2.0

#include "tests/kernels/kda_run.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/common/host_convert.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "tests/check.h"

enum { CANARY = 0xa5 };

const sg_target_t kda_host_target = {
    .name = "host",
    .flavour = SG_FLAVOUR_HOST,
    .wave_size = 1,
    .compute_units = 1,
    .max_threads_per_block = 1024,
    .shared_bytes_per_block = (size_t)1 << 20,
};

static kda_buffer_t buffer_of(size_t bytes) {
  kda_buffer_t buffer = {.bytes = bytes};
  buffer.memory = malloc(bytes + 2 * KDA_RUN_CANARY_BYTES);
  assert_non_null(buffer.memory);
  buffer.data = buffer.memory + KDA_RUN_CANARY_BYTES;
  memset(buffer.memory, CANARY, bytes + 2 * KDA_RUN_CANARY_BYTES);
  memset(buffer.data, KDA_RUN_POISON, bytes);
  return buffer;
}

static void release(kda_buffer_t* buffer) {
  for (size_t i = 0; i < KDA_RUN_CANARY_BYTES; ++i) {
    assert_int_equal(buffer->memory[i], CANARY);
    assert_int_equal(buffer->memory[KDA_RUN_CANARY_BYTES + buffer->bytes + i],
                     CANARY);
  }
  free(buffer->memory);
}

// Writes |count| values of one row from element |offset| on.
static void put(const kda_buffer_t* buffer, sg_dtype_t dtype, int64_t offset,
                const double* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = (float)values[i];
    if (dtype == SG_DTYPE_FP32) {
      ((float*)buffer->data)[offset + i] = value;
    } else {
      ((uint16_t*)buffer->data)[offset + i] = dtype == SG_DTYPE_BF16
                                                  ? sg_bf16_from_float(value)
                                                  : sg_fp16_from_float(value);
    }
  }
}

// A tensor of |capacity| rows, |stride| elements apart, of which |tokens| are
// filled from dense |values|.
static kda_buffer_t rows_of(sg_dtype_t dtype, int64_t capacity, int64_t stride,
                            int64_t tokens, int64_t width,
                            const double* values) {
  kda_buffer_t buffer =
      buffer_of((size_t)(capacity * stride) * sg_dtype_bytes(dtype));
  for (int64_t t = 0; t < tokens; ++t) {
    put(&buffer, dtype, t * stride, values + t * width, width);
  }
  return buffer;
}

static void make_tables(kda_run_t* run) {
  const kda_case_t* test = &run->test;
  const sg_batch_capacity_t* capacity = &run->args.capacity;
  const size_t sequences = (size_t)capacity->sequences;
  run->counts = buffer_of(sizeof(sg_batch_counts_t));
  run->query_start_loc = buffer_of(sizeof(int32_t) * (sequences + 1));
  run->computed_lens = buffer_of(sizeof(int32_t) * sequences);
  run->slots = buffer_of(sizeof(int32_t) * sequences);
  run->chunk_indices =
      buffer_of(sizeof(int32_t) * 2 * (size_t)capacity->chunks);
  run->chunk_offsets = buffer_of(sizeof(int64_t) * (sequences + 1));

  int32_t* loc = run->query_start_loc.data;
  int64_t* offsets = run->chunk_offsets.data;
  int32_t* indices = run->chunk_indices.data;
  const int32_t decodes = kda_case_decodes(test);
  const int32_t size = test->geometry.chunk_size;
  loc[0] = 0;
  offsets[0] = 0;
  for (int32_t n = 0; n < test->sequence_count; ++n) {
    const int32_t chunks = n < decodes ? 0 : (test->lens[n] + size - 1) / size;
    for (int32_t i = 0; i < chunks; ++i) {
      indices[2 * (offsets[n] + i)] = n;
      indices[2 * (offsets[n] + i) + 1] = i;
    }
    loc[n + 1] = loc[n] + test->lens[n];
    offsets[n + 1] = offsets[n] + chunks;
    ((int32_t*)run->computed_lens.data)[n] = test->computed[n];
    ((int32_t*)run->slots.data)[n] = test->slots[n];
  }
  *(sg_batch_counts_t*)run->counts.data = (sg_batch_counts_t){
      .sequence_count = test->sequence_count,
      .token_count = loc[test->sequence_count],
      .decode_count = decodes,
      .chunk_count = (int32_t)offsets[test->sequence_count],
      .error_code = test->error_code,
      .error_sequence = -1,
  };
  if (test->error_code != 0) {
    const kda_buffer_t* tables[] = {&run->query_start_loc, &run->computed_lens,
                                    &run->slots, &run->chunk_indices,
                                    &run->chunk_offsets};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); ++i) {
      memset(tables[i]->data, 0x7f, tables[i]->bytes);
    }
  }
  run->args.tables = (sg_batch_tables_t){
      .counts = run->counts.data,
      .query_start_loc = run->query_start_loc.data,
      .computed_lens = run->computed_lens.data,
      .slots = run->slots.data,
      .chunk_indices = run->chunk_indices.data,
      .chunk_offsets = run->chunk_offsets.data,
  };
}

static void make_tensors(kda_run_t* run, const kda_inputs_t* inputs) {
  const kda_case_t* test = &run->test;
  const sg_kda_geometry_t* geometry = &test->geometry;
  const sg_dtype_t dtype = geometry->activation_dtype;
  const sg_dtype_t gate_dtype =
      geometry->gate_kind == SG_GATE_GIVEN ? SG_DTYPE_FP32 : dtype;
  const sg_dtype_t beta_dtype =
      geometry->beta_kind == SG_BETA_GIVEN ? SG_DTYPE_FP32 : dtype;
  const int64_t tokens = kda_case_tokens(test);
  const int64_t capacity = run->args.capacity.tokens;
  const int64_t heads = geometry->value_heads;
  const int64_t keys = (int64_t)geometry->heads * geometry->key_dim;
  const int64_t gates = heads * geometry->key_dim;
  const int64_t values = heads * geometry->value_dim;
  const int64_t padding = test->row_padding;
  run->q = rows_of(dtype, capacity, keys + padding, tokens, keys, inputs->q);
  run->k =
      rows_of(dtype, capacity, keys + 2 * padding, tokens, keys, inputs->k);
  run->v =
      rows_of(dtype, capacity, values + 3 * padding, tokens, values, inputs->v);
  run->raw_g = rows_of(gate_dtype, capacity, gates + padding, tokens, gates,
                       inputs->raw_g);
  run->raw_beta = rows_of(beta_dtype, capacity, heads + padding, tokens, heads,
                          inputs->raw_beta);
  run->o = buffer_of((size_t)(capacity * (values + 2 * padding)) *
                     sg_dtype_bytes(dtype));
  run->a_log = rows_of(SG_DTYPE_FP32, 1, heads, 1, heads, inputs->a_log);
  run->dt_bias = rows_of(SG_DTYPE_FP32, 1, gates, 1, gates, inputs->dt_bias);
  run->args.tensors = (sg_kda_tensors_t){
      .q = run->q.data,
      .k = run->k.data,
      .v = run->v.data,
      .raw_g = run->raw_g.data,
      .raw_beta = run->raw_beta.data,
      .a_log = run->a_log.data,
      .dt_bias = test->has_bias ? run->dt_bias.data : NULL,
      .o = run->o.data,
      .q_row_stride = keys + padding,
      .k_row_stride = keys + 2 * padding,
      .v_row_stride = values + 3 * padding,
      .g_row_stride = gates + padding,
      .beta_row_stride = heads + padding,
      .o_row_stride = values + 2 * padding,
  };
}

static void make_state(kda_run_t* run, const kda_inputs_t* inputs) {
  const kda_case_t* test = &run->test;
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t elements =
      (int64_t)geometry->value_heads * geometry->value_dim * geometry->key_dim;
  const int64_t stride = elements + test->slot_padding;
  run->state = buffer_of(sg_dtype_bytes(geometry->state_dtype) *
                         (size_t)(test->slot_count * stride));
  run->initial_state = buffer_of(run->state.bytes);
  for (int32_t n = 0; n < test->sequence_count; ++n) {
    if (test->slots[n] < 0 || test->computed[n] == 0) continue;
    put(&run->state, geometry->state_dtype, test->slots[n] * stride,
        inputs->states + n * elements, elements);
  }
  memcpy(run->initial_state.data, run->state.data, run->state.bytes);
  run->args.tensors.state = run->state.data;
  run->args.tensors.state_slot_stride = stride;
}

void kda_run_initialize(const kda_case_t* test, const kda_inputs_t* inputs,
                        kda_run_t* out_run) {
  memset(out_run, 0, sizeof(*out_run));
  out_run->test = *test;
  const int32_t tokens = kda_case_tokens(test) + test->spare_tokens;
  const int32_t sequences = test->sequence_count + test->spare_sequences;
  sg_kda_args_t* args = &out_run->args;
  args->geometry = &out_run->test.geometry;
  args->capacity = (sg_batch_capacity_t){
      .tokens = tokens,
      .sequences = sequences,
      .chunks = (int32_t)sg_chunk_capacity(tokens, sequences,
                                           test->geometry.chunk_size),
  };
  args->null_slot = test->null_slot;
  args->zero_tail = test->zero_tail;
  make_tables(out_run);
  make_tensors(out_run, inputs);
  make_state(out_run, inputs);
  size_t workspace_bytes;
  assert_ok(sg_kda_chunk_workspace_bytes(args->geometry, &kda_host_target,
                                         &args->capacity, &workspace_bytes));
  out_run->workspace = buffer_of(workspace_bytes);
  args->workspace = out_run->workspace.data;
}

void kda_run_buffers(kda_run_t* run, kda_buffer_t* out_buffers[]) {
  kda_buffer_t* buffers[KDA_RUN_BUFFERS] = {
      &run->counts,
      &run->query_start_loc,
      &run->computed_lens,
      &run->slots,
      &run->chunk_indices,
      &run->chunk_offsets,
      &run->q,
      &run->k,
      &run->v,
      &run->raw_g,
      &run->raw_beta,
      &run->a_log,
      &run->dt_bias,
      &run->o,
      &run->state,
      &run->initial_state,
      &run->workspace,
  };
  memcpy(out_buffers, buffers, sizeof(buffers));
}

void kda_run_deinitialize(kda_run_t* run) {
  kda_buffer_t* buffers[KDA_RUN_BUFFERS];
  kda_run_buffers(run, buffers);
  for (size_t i = 0; i < KDA_RUN_BUFFERS; ++i) release(buffers[i]);
}

static double element_of(const kda_buffer_t* buffer, sg_dtype_t dtype,
                         int64_t offset) {
  switch (dtype) {
    case SG_DTYPE_BF16:
      return sg_float_from_bf16(((const uint16_t*)buffer->data)[offset]);
    case SG_DTYPE_FP16:
      return sg_float_from_fp16(((const uint16_t*)buffer->data)[offset]);
    default:
      return ((const float*)buffer->data)[offset];
  }
}

double kda_run_output(const kda_run_t* run, int64_t token, int64_t head,
                      int64_t v) {
  const sg_kda_geometry_t* geometry = &run->test.geometry;
  const int64_t offset =
      token * run->args.tensors.o_row_stride + head * geometry->value_dim + v;
  return element_of(&run->o, geometry->activation_dtype, offset);
}

double kda_run_state(const kda_run_t* run, int32_t sequence, int64_t head,
                     int64_t v, int64_t k) {
  const sg_kda_geometry_t* geometry = &run->test.geometry;
  const int64_t offset =
      run->test.slots[sequence] * run->args.tensors.state_slot_stride +
      (head * geometry->value_dim + v) * geometry->key_dim + k;
  return element_of(&run->state, geometry->state_dtype, offset);
}
