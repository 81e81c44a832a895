// SPDX-License-Identifier: Apache-2.0
//
// A state pool of more than 2^31 elements: the last slot must compute, bit for
// bit, what the first slot of a small pool does. Needs about 9 GB of device
// memory and is skipped where there is less.

#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "kernels/random_fill/random_fill.h"
#include "tests/kernels/device_tensor.h"

enum {
  HEADS = 128,
  DIM = 128,
  // Elements of a slot: 2^21, so that slot 1024 starts at 2^31.
  SLOT_ELEMENTS = HEADS * DIM * DIM,
  SEQUENCES = 2,
  // One decode and one prefill.
  PREFILL_TOKENS = 70,
  TOKENS = 1 + PREFILL_TOKENS,
  CHUNKS = 2,
};

typedef struct layer_t {
  sg_enqueue_t where;
  sg_kda_geometry_t geometry;
  sg_kda_args_t args;
  void* workspace;
  device_tensor_t counts, loc, computed, indices, offsets;
  device_tensor_t q, k, v, g, beta, a_log, bias, o;
} layer_t;

static void fill(const layer_t* layer, void* data, sg_dtype_t dtype,
                 int64_t elements, uint64_t seed) {
  assert_ok(sg_random_fill_enqueue(
      &layer->where, &(sg_random_fill_args_t){.data = data,
                                              .dtype = dtype,
                                              .rows = 1,
                                              .row_elements = elements,
                                              .row_stride = elements,
                                              .seed = seed,
                                              .scale = 1.0f}));
}

static device_tensor_t random_tensor(const layer_t* layer, sg_dtype_t dtype,
                                     int64_t elements, uint64_t seed) {
  device_tensor_t tensor =
      device_tensor_create((size_t)elements * sg_dtype_bytes(dtype));
  fill(layer, tensor.device, dtype, elements, seed);
  return tensor;
}

static device_tensor_t table(const void* values, size_t bytes) {
  device_tensor_t tensor = device_tensor_create(bytes);
  memcpy(tensor.host, values, bytes);
  device_tensor_upload(&tensor);
  return tensor;
}

static void make_tables(layer_t* layer) {
  const sg_batch_counts_t counts = {.sequence_count = SEQUENCES,
                                    .token_count = TOKENS,
                                    .decode_count = 1,
                                    .chunk_count = CHUNKS,
                                    .error_sequence = -1};
  const int32_t loc[SEQUENCES + 1] = {0, 1, TOKENS};
  const int32_t computed[SEQUENCES] = {7, 9};
  const int32_t indices[CHUNKS][2] = {{1, 0}, {1, 1}};
  const int64_t offsets[SEQUENCES + 1] = {0, 0, CHUNKS};
  layer->counts = table(&counts, sizeof(counts));
  layer->loc = table(loc, sizeof(loc));
  layer->computed = table(computed, sizeof(computed));
  layer->indices = table(indices, sizeof(indices));
  layer->offsets = table(offsets, sizeof(offsets));
  layer->args.tables = (sg_batch_tables_t){
      .counts = layer->counts.device,
      .query_start_loc = layer->loc.device,
      .computed_lens = layer->computed.device,
      .chunk_indices = layer->indices.device,
      .chunk_offsets = layer->offsets.device,
  };
}

static void make_tensors(layer_t* layer) {
  const int64_t row = (int64_t)HEADS * DIM;
  layer->q = random_tensor(layer, SG_DTYPE_BF16, TOKENS * row, 1);
  layer->k = random_tensor(layer, SG_DTYPE_BF16, TOKENS * row, 2);
  layer->v = random_tensor(layer, SG_DTYPE_BF16, TOKENS * row, 3);
  layer->g = random_tensor(layer, SG_DTYPE_BF16, TOKENS * row, 4);
  layer->beta = random_tensor(layer, SG_DTYPE_BF16, TOKENS * HEADS, 5);
  layer->a_log = random_tensor(layer, SG_DTYPE_FP32, HEADS, 6);
  layer->bias = random_tensor(layer, SG_DTYPE_FP32, row, 7);
  layer->o = device_tensor_create((size_t)(TOKENS * row) * 2);
  layer->args.tensors = (sg_kda_tensors_t){
      .q = layer->q.device,
      .k = layer->k.device,
      .v = layer->v.device,
      .raw_g = layer->g.device,
      .raw_beta = layer->beta.device,
      .a_log = layer->a_log.device,
      .dt_bias = layer->bias.device,
      .o = layer->o.device,
      .q_row_stride = row,
      .k_row_stride = row,
      .v_row_stride = row,
      .g_row_stride = row,
      .beta_row_stride = HEADS,
      .o_row_stride = row,
      .state_slot_stride = SLOT_ELEMENTS,
  };
}

static void layer_initialize(layer_t* layer) {
  memset(layer, 0, sizeof(*layer));
  layer->where = device_stream_create();
  layer->geometry = (sg_kda_geometry_t){.heads = HEADS,
                                        .value_heads = HEADS,
                                        .key_dim = DIM,
                                        .value_dim = DIM,
                                        .conv_width = 4,
                                        .chunk_size = 64,
                                        .gate_kind = SG_GATE_LOWER_BOUND,
                                        .gate_lower_bound = -5.0f,
                                        .qk_l2norm = true,
                                        .scale = 0.088f,
                                        .activation_dtype = SG_DTYPE_BF16,
                                        .norm_epsilon = 1e-5f};
  layer->args = (sg_kda_args_t){
      .geometry = &layer->geometry,
      .capacity = {.tokens = TOKENS, .sequences = SEQUENCES, .chunks = 0},
      .null_slot = -1,
  };
  layer->args.capacity.chunks =
      (int32_t)sg_chunk_capacity(TOKENS, SEQUENCES, 64);
  make_tables(layer);
  make_tensors(layer);
  size_t bytes;
  assert_ok(sg_kda_chunk_workspace_bytes(&layer->geometry, layer->where.target,
                                         &layer->args.capacity, &bytes));
  assert_hip(hipMalloc(&layer->workspace, bytes));
  layer->args.workspace = layer->workspace;
}

static void layer_deinitialize(layer_t* layer) {
  device_tensor_t* tensors[] = {
      &layer->counts,  &layer->loc,  &layer->computed, &layer->indices,
      &layer->offsets, &layer->q,    &layer->k,        &layer->v,
      &layer->g,       &layer->beta, &layer->a_log,    &layer->bias,
      &layer->o};
  for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); ++i) {
    device_tensor_destroy(tensors[i]);
  }
  assert_hip(hipFree(layer->workspace));
  device_stream_destroy(&layer->where);
}

// Runs the step on slots |first| and first + 1 of a pool; the outputs and the
// two slots come back.
static void run_on_slots(layer_t* layer, int32_t first, void* out_outputs,
                         void* out_states) {
  const size_t slot_bytes = sizeof(float) * SLOT_ELEMENTS;
  const int32_t slots[SEQUENCES] = {first, first + 1};
  device_tensor_t slot_table = table(slots, sizeof(slots));
  char* pool;
  assert_hip(hipMalloc((void**)&pool, slot_bytes * (size_t)(first + 2)));
  char* states = pool + slot_bytes * (size_t)first;
  fill(layer, states, SG_DTYPE_FP32, (int64_t)2 * SLOT_ELEMENTS, 8);
  layer->args.tables.slots = slot_table.device;
  layer->args.tensors.state = pool;
  assert_ok(sg_kda_recurrent_enqueue(&layer->where, &layer->args));
  assert_ok(sg_kda_chunk_enqueue(&layer->where, &layer->args));
  assert_hip(hipStreamSynchronize(layer->where.stream));
  assert_hip(hipMemcpy(out_outputs, layer->o.device, layer->o.bytes,
                       hipMemcpyDeviceToHost));
  assert_hip(
      hipMemcpy(out_states, states, 2 * slot_bytes, hipMemcpyDeviceToHost));
  assert_hip(hipFree(pool));
  device_tensor_destroy(&slot_table);
}

static void test_slots_beyond_2_31_elements(void** state) {
  (void)state;
  layer_t layer;
  layer_initialize(&layer);
  size_t free_bytes, total_bytes;
  assert_hip(hipMemGetInfo(&free_bytes, &total_bytes));
  if (free_bytes < (size_t)12 << 30) skip();
  const size_t state_bytes = sizeof(float) * 2 * SLOT_ELEMENTS;
  char* outputs = malloc(2 * layer.o.bytes);
  char* states = malloc(2 * state_bytes);
  assert_non_null(outputs);
  assert_non_null(states);
  run_on_slots(&layer, 0, outputs, states);
  run_on_slots(&layer, 1024, outputs + layer.o.bytes, states + state_bytes);
  assert_memory_equal(outputs, outputs + layer.o.bytes, layer.o.bytes);
  assert_memory_equal(states, states + state_bytes, state_bytes);
  free(outputs);
  free(states);
  layer_deinitialize(&layer);
}

int main(void) {
  device_require();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_slots_beyond_2_31_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
