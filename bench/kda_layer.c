// SPDX-License-Identifier: Apache-2.0

#include "bench/kda_layer.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "kernels/random_fill/random_fill.h"
#include "runtime/hip/error.h"

int32_t bench_case_tokens_of(const bench_case_t* shape, int32_t sequence) {
  return shape->lens != NULL ? shape->lens[sequence] : shape->tokens;
}

int32_t bench_case_tokens_before(const bench_case_t* shape, int32_t sequence) {
  int32_t tokens = 0;
  for (int32_t n = 0; n < sequence; ++n) {
    tokens += bench_case_tokens_of(shape, n);
  }
  return tokens;
}

int32_t bench_case_tokens(const bench_case_t* shape) {
  return bench_case_tokens_before(shape, shape->sequences);
}

bool bench_case_is_decode(const bench_case_t* shape) {
  return shape->tokens == 1;
}

static sg_batch_capacity_t capacity_of(const kda_layer_t* layer) {
  const bench_case_t* shape = &layer->shape;
  const int32_t tokens = bench_case_tokens(shape) + shape->spare_tokens;
  const int32_t sequences = shape->sequences + shape->spare_sequences;
  return (sg_batch_capacity_t){
      .tokens = tokens,
      .sequences = sequences,
      .chunks = (int32_t)sg_chunk_capacity(tokens, sequences,
                                           layer->geometry.chunk_size),
  };
}

static sg_status_t allocate(kda_layer_t* layer) {
  const size_t heads = (size_t)layer->shape.heads;
  const size_t rows = (size_t)layer->args.capacity.tokens * heads;
  const size_t sequences = (size_t)layer->args.capacity.sequences;
  const size_t chunks = (size_t)layer->args.capacity.chunks;
  size_t* bytes = layer->bytes;
  bytes[BENCH_Q] = bytes[BENCH_K] = bytes[BENCH_V] = 2 * rows * BENCH_DIM;
  bytes[BENCH_RAW_G] = bytes[BENCH_O] = 2 * rows * BENCH_DIM;
  bytes[BENCH_RAW_BETA] = 2 * rows;
  bytes[BENCH_A_LOG] = 4 * heads;
  bytes[BENCH_DT_BIAS] = 4 * heads * BENCH_DIM;
  bytes[BENCH_STATE] = 4 * sequences * heads * BENCH_DIM * BENCH_DIM;
  bytes[BENCH_COUNTS] = sizeof(sg_batch_counts_t);
  bytes[BENCH_QUERY_START_LOC] = 4 * (sequences + 1);
  bytes[BENCH_COMPUTED_LENS] = bytes[BENCH_SLOTS] = 4 * sequences;
  bytes[BENCH_CHUNK_INDICES] = 8 * chunks;
  bytes[BENCH_CHUNK_OFFSETS] = 8 * (sequences + 1);
  SG_RETURN_IF_ERROR(sg_kda_chunk_workspace_bytes(
      &layer->geometry, layer->where.target, &layer->args.capacity,
      &bytes[BENCH_WORKSPACE]));
  for (int32_t i = 0; i < BENCH_BUFFER_COUNT; ++i) {
    SG_RETURN_IF_HIP_ERROR(hipMalloc, &layer->buffers[i], bytes[i]);
  }
  return sg_status_ok();
}

// Realistic scales: gates from hardly any decay to the lower bound.
static sg_status_t fill(const kda_layer_t* layer) {
  static const struct {
    int32_t buffer;
    sg_dtype_t dtype;
    float scale;
  } tensors[] = {
      {BENCH_Q, SG_DTYPE_BF16, 1.0f},        {BENCH_K, SG_DTYPE_BF16, 1.0f},
      {BENCH_V, SG_DTYPE_BF16, 1.0f},        {BENCH_RAW_G, SG_DTYPE_BF16, 1.0f},
      {BENCH_RAW_BETA, SG_DTYPE_BF16, 1.0f}, {BENCH_A_LOG, SG_DTYPE_FP32, 0.5f},
      {BENCH_DT_BIAS, SG_DTYPE_FP32, 1.0f},  {BENCH_STATE, SG_DTYPE_FP32, 1.0f},
  };
  for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); ++i) {
    const int32_t buffer = tensors[i].buffer;
    // Rows of one head, so that none has 2^31 elements.
    const int64_t elements =
        (int64_t)(layer->bytes[buffer] / sg_dtype_bytes(tensors[i].dtype));
    const int64_t width = elements % BENCH_DIM == 0 ? BENCH_DIM : elements;
    const sg_random_fill_args_t fill_args = {
        .data = layer->buffers[buffer],
        .dtype = tensors[i].dtype,
        .rows = elements / width,
        .row_elements = width,
        .row_stride = width,
        .seed = (uint64_t)i + 1,
        .scale = tensors[i].scale,
    };
    SG_RETURN_IF_ERROR(sg_random_fill_enqueue(&layer->where, &fill_args));
  }
  return sg_status_from_hip(hipStreamSynchronize(layer->where.stream),
                            "hipStreamSynchronize");
}

static sg_status_t upload(const kda_layer_t* layer, int32_t buffer,
                          const void* data) {
  SG_RETURN_IF_HIP_ERROR(hipMemcpy, layer->buffers[buffer], data,
                         layer->bytes[buffer], hipMemcpyHostToDevice);
  // A copy from pageable memory may be under way yet; the layer's stream would
  // not wait for it.
  return sg_status_from_hip(hipStreamSynchronize(NULL), "hipStreamSynchronize");
}

// |loc|, |lens|, |computed|, |slots| have room for the capacity's sequences and
// one more.
static sg_status_t upload_tables(const kda_layer_t* layer, int32_t* loc,
                                 int32_t* lens, int32_t* computed,
                                 int32_t* slots, int32_t* chunk_indices,
                                 int64_t* chunk_offsets) {
  const bench_case_t* shape = &layer->shape;
  loc[0] = 0;
  for (int32_t n = 0; n < shape->sequences; ++n) {
    lens[n] = bench_case_tokens_of(shape, n);
    loc[n + 1] = loc[n] + lens[n];
    computed[n] = 1;
    slots[n] = n;
  }
  const int32_t chunks = sg_chunk_tables_build(lens, computed, shape->sequences,
                                               layer->geometry.chunk_size,
                                               chunk_indices, chunk_offsets);
  const sg_batch_counts_t counts = {
      .sequence_count = shape->sequences,
      .token_count = bench_case_tokens(shape),
      .decode_count = bench_case_is_decode(shape) ? shape->sequences : 0,
      .chunk_count = chunks,
      .error_sequence = -1,
  };
  SG_RETURN_IF_ERROR(upload(layer, BENCH_COUNTS, &counts));
  SG_RETURN_IF_ERROR(upload(layer, BENCH_QUERY_START_LOC, loc));
  SG_RETURN_IF_ERROR(upload(layer, BENCH_COMPUTED_LENS, computed));
  SG_RETURN_IF_ERROR(upload(layer, BENCH_SLOTS, slots));
  SG_RETURN_IF_ERROR(upload(layer, BENCH_CHUNK_INDICES, chunk_indices));
  return upload(layer, BENCH_CHUNK_OFFSETS, chunk_offsets);
}

static sg_status_t make_tables(const kda_layer_t* layer) {
  const size_t entries = (size_t)layer->args.capacity.sequences + 1;
  int32_t* words = calloc(4 * entries, sizeof(int32_t));
  int32_t* indices = calloc(1, layer->bytes[BENCH_CHUNK_INDICES] + 1);
  int64_t* offsets = calloc(entries, sizeof(int64_t));
  sg_status_t status = sg_status_make(SG_STATUS_OUT_OF_MEMORY, "tables");
  if (words != NULL && indices != NULL && offsets != NULL) {
    status = upload_tables(layer, words, words + entries, words + 2 * entries,
                           words + 3 * entries, indices, offsets);
  }
  free(words);
  free(indices);
  free(offsets);
  return status;
}

static void point_args(kda_layer_t* layer) {
  void** buffers = layer->buffers;
  const int64_t width = (int64_t)layer->shape.heads * BENCH_DIM;
  sg_kda_args_t* args = &layer->args;
  args->geometry = &layer->geometry;
  args->tables = (sg_batch_tables_t){
      .counts = buffers[BENCH_COUNTS],
      .query_start_loc = buffers[BENCH_QUERY_START_LOC],
      .computed_lens = buffers[BENCH_COMPUTED_LENS],
      .slots = buffers[BENCH_SLOTS],
      .chunk_indices = buffers[BENCH_CHUNK_INDICES],
      .chunk_offsets = buffers[BENCH_CHUNK_OFFSETS],
  };
  args->tensors = (sg_kda_tensors_t){
      .q = buffers[BENCH_Q],
      .k = buffers[BENCH_K],
      .v = buffers[BENCH_V],
      .raw_g = buffers[BENCH_RAW_G],
      .raw_beta = buffers[BENCH_RAW_BETA],
      .a_log = buffers[BENCH_A_LOG],
      .dt_bias = buffers[BENCH_DT_BIAS],
      .o = buffers[BENCH_O],
      .state = buffers[BENCH_STATE],
      .q_row_stride = width,
      .k_row_stride = width,
      .v_row_stride = width,
      .g_row_stride = width,
      .beta_row_stride = layer->shape.heads,
      .o_row_stride = width,
      .state_slot_stride = width * BENCH_DIM,
  };
  args->null_slot = -1;
  args->workspace = buffers[BENCH_WORKSPACE];
}

sg_status_t kda_layer_initialize(const bench_case_t* shape,
                                 kda_layer_t* out_layer) {
  memset(out_layer, 0, sizeof(*out_layer));
  out_layer->shape = *shape;
  out_layer->geometry = (sg_kda_geometry_t){
      .heads = shape->heads,
      .value_heads = shape->heads,
      .key_dim = BENCH_DIM,
      .value_dim = BENCH_DIM,
      .conv_width = 4,
      .chunk_size = 64,
      .gate_kind = SG_GATE_LOWER_BOUND,
      .gate_lower_bound = -5.0f,
      .beta_kind = SG_BETA_SIGMOID,
      .qk_l2norm = true,
      .scale = 0.08838834764831845f,
      .activation_dtype = SG_DTYPE_BF16,
      .state_dtype = SG_DTYPE_FP32,
      .norm_epsilon = 1e-5f,
  };
  SG_RETURN_IF_ERROR(
      sg_target_of_device(/*device=*/0, &out_layer->where.target));
  SG_RETURN_IF_HIP_ERROR(hipStreamCreateWithFlags, &out_layer->where.stream,
                         hipStreamNonBlocking);
  out_layer->args.capacity = capacity_of(out_layer);
  SG_RETURN_IF_ERROR(allocate(out_layer));
  point_args(out_layer);
  SG_RETURN_IF_ERROR(make_tables(out_layer));
  return fill(out_layer);
}

void kda_layer_deinitialize(kda_layer_t* layer) {
  for (int32_t i = 0; i < BENCH_BUFFER_COUNT; ++i) {
    (void)hipFree(layer->buffers[i]);
  }
  if (layer->where.stream != NULL) (void)hipStreamDestroy(layer->where.stream);
}

sg_status_t kda_layer_enqueue(const kda_layer_t* layer) {
  return bench_case_is_decode(&layer->shape)
             ? sg_kda_recurrent_enqueue(&layer->where, &layer->args)
             : sg_kda_chunk_enqueue(&layer->where, &layer->args);
}

sg_status_t kda_layer_run(const kda_layer_t* layer) {
  SG_RETURN_IF_ERROR(kda_layer_enqueue(layer));
  return sg_status_from_hip(hipStreamSynchronize(layer->where.stream),
                            "hipStreamSynchronize");
}
