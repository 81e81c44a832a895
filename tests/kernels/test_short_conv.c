// SPDX-License-Identifier: Apache-2.0
//
// short_conv against the formula in double precision. Every tensor lies in a
// larger one: rows and slots have gaps, and there are rows, sequences and slots
// beyond those of the batch. What the op may read holds numbers; everything
// else of its inputs holds NaN, and everything that it may not write is
// compared bit for bit.

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/short_conv/configure.h"
#include "kernels/short_conv/short_conv_host.h"
#include "tests/check.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/run_blocks.h"

enum {
  MAX_SEQUENCES = 12,
  TOKEN_CAPACITY = 128,
  SLOTS = 12,
  NULL_SLOT = 9,
  CHANNELS = 2 * 2 * 64 + 2 * 48,  // more than one strip, the last one shorter
  ROW_STRIDE = CHANNELS + 16,
  MAX_WIDTH = 4,
  SLOT_STRIDE = CHANNELS * (MAX_WIDTH - 1) + 16,
};

typedef struct batch_t {
  int32_t sequence_count;
  int32_t lens[MAX_SEQUENCES];
  int32_t computed[MAX_SEQUENCES];
  int32_t slots[MAX_SEQUENCES];
} batch_t;

static const batch_t batches[] = {
    // Decodes, empties of all kinds, sequences shorter than the history, both
    // fresh and resumed, sequences without a slot, a longer prefill.
    {12,
     {1, 1, 0, 1, 2, 3, 2, 1, 0, 41, 2, 0},
     {7, 3, 5, 9, 0, 0, 8, 0, 0, 64, 3, 2},
     {3, 11, 2, -1, 4, 0, 5, 6, 7, 8, NULL_SLOT, 1}},
    {1, {100}, {0}, {2}},
    {1, {1}, {0}, {0}},
    {3, {0, 0, 0}, {0, 4, 0}, {1, 2, 3}},
    {4, {0, 33, 0, 31}, {0, 1, 0, 0}, {1, 2, 3, 10}},
};
enum { BATCH_COUNT = sizeof(batches) / sizeof(batches[0]) };

// Tensors of one call.
typedef struct fixture_t {
  sg_dtype_t dtype;
  int32_t width;
  const batch_t* batch;
  sg_batch_counts_t counts;
  int32_t query_start_loc[MAX_SEQUENCES + 1];
  sg_kda_geometry_t geometry;
  float weight[CHANNELS * MAX_WIDTH];
  char* x;
  char* y;
  char* cache;
  size_t row_tensor_bytes;
  size_t cache_bytes;
} fixture_t;

static bool has_slot(const batch_t* batch, int32_t n) {
  return batch->slots[n] >= 0 && batch->slots[n] != NULL_SLOT;
}

static void fill_row(fixture_t* f, void* tensor, int64_t first,
                     uint64_t* seed) {
  for (int64_t d = 0; d < CHANNELS; ++d) {
    activation_set(f->dtype, tensor, first + d, 3 * random_unit(seed));
  }
}

// Numbers in the rows of sequences with a slot and in the slots of resumed
// ones, NaN elsewhere.
static void fill_inputs(fixture_t* f) {
  uint64_t seed = 17;
  activation_fill(f->dtype, f->x, TOKEN_CAPACITY * ROW_STRIDE, NAN);
  activation_fill(f->dtype, f->y, TOKEN_CAPACITY * ROW_STRIDE, NAN);
  activation_fill(f->dtype, f->cache, SLOTS * SLOT_STRIDE, NAN);
  for (int32_t i = 0; i < CHANNELS * f->width; ++i) {
    f->weight[i] = (float)random_unit(&seed);
  }
  for (int32_t n = 0; n < f->batch->sequence_count; ++n) {
    if (!has_slot(f->batch, n)) continue;
    for (int64_t t = f->query_start_loc[n]; t < f->query_start_loc[n + 1];
         ++t) {
      fill_row(f, f->x, t * ROW_STRIDE, &seed);
    }
    if (f->batch->computed[n] == 0) continue;
    for (int64_t i = 0; i < f->width - 1; ++i) {
      fill_row(f, f->cache, f->batch->slots[n] * SLOT_STRIDE + i * CHANNELS,
               &seed);
    }
  }
}

static fixture_t* fixture_create(sg_dtype_t dtype, int32_t width,
                                 const batch_t* batch) {
  fixture_t* f = calloc(1, sizeof(*f));
  assert_non_null(f);
  f->dtype = dtype;
  f->width = width;
  f->batch = batch;
  f->geometry = (sg_kda_geometry_t){.heads = 2,
                                    .value_heads = 2,
                                    .key_dim = 64,
                                    .value_dim = 48,
                                    .conv_width = width,
                                    .chunk_size = 64,
                                    .scale = 0.125f,
                                    .activation_dtype = dtype,
                                    .norm_epsilon = 1e-5f};
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    f->query_start_loc[n + 1] = f->query_start_loc[n] + batch->lens[n];
  }
  f->counts.sequence_count = batch->sequence_count;
  f->counts.token_count = f->query_start_loc[batch->sequence_count];
  f->row_tensor_bytes = sg_dtype_bytes(dtype) * TOKEN_CAPACITY * ROW_STRIDE;
  f->cache_bytes = sg_dtype_bytes(dtype) * SLOTS * SLOT_STRIDE;
  f->x = malloc(f->row_tensor_bytes);
  f->y = malloc(f->row_tensor_bytes);
  f->cache = malloc(f->cache_bytes);
  assert_true(f->x != NULL && f->y != NULL && f->cache != NULL);
  fill_inputs(f);
  return f;
}

static void fixture_destroy(fixture_t* f) {
  free(f->x);
  free(f->y);
  free(f->cache);
  free(f);
}

static sg_short_conv_args_t args_of(fixture_t* f) {
  return (sg_short_conv_args_t){
      .geometry = &f->geometry,
      .capacity = {.tokens = f->counts.token_count,
                   .sequences = f->batch->sequence_count},
      .tables = {.counts = &f->counts,
                 .query_start_loc = f->query_start_loc,
                 .computed_lens = f->batch->computed,
                 .slots = f->batch->slots},
      .x = f->x,
      .weight = f->weight,
      .cache = f->cache,
      .y = f->y,
      .x_row_stride = ROW_STRIDE,
      .y_row_stride = ROW_STRIDE,
      .cache_slot_stride = SLOT_STRIDE,
      .null_slot = NULL_SLOT,
  };
}

static const sg_target_t* host_target(void) {
  const sg_target_t* target;
  assert_ok(sg_target_find("host", &target));
  return target;
}

typedef struct tiles_t {
  int32_t tokens;
  int32_t channels;
} tiles_t;

// Runs the op; tiles of 0 are those of the launcher.
static void run(const sg_short_conv_args_t* args, tiles_t tiles,
                sg_host_isa_t isa, block_order_t order) {
  sg_short_conv_plan_t plan;
  assert_ok(sg__short_conv_configure(host_target(), 0, args, &plan));
  sg_short_conv_params_t* p = &plan.params;
  uint32_t grid = plan.launch.grid;
  if (tiles.tokens > 0) {
    p->token_tile = tiles.tokens;
    p->channel_tile = tiles.channels;
    grid =
        (uint32_t)((args->capacity.tokens + tiles.tokens - 1) / tiles.tokens *
                   ((p->channels + tiles.channels - 1) / tiles.channels));
  }
  run_blocks(sg__short_conv_variant(isa), p, grid, order);
}

// Input |position| of sequence |n|, counted from its first token of this call;
// below 0 it is history. Returns where in |*tensor| it stands, or -1 for zeros.
static int64_t input_at(const fixture_t* f, const char* cache, int32_t n,
                        int64_t position, const char** tensor) {
  *tensor = f->x;
  if (position >= 0) return (f->query_start_loc[n] + position) * ROW_STRIDE;
  *tensor = cache;
  if (f->batch->computed[n] == 0) return -1;
  return f->batch->slots[n] * SLOT_STRIDE +
         (f->width - 1 + position) * CHANNELS;
}

static double input_value(const fixture_t* f, const char* cache, int32_t n,
                          int64_t position, int64_t channel) {
  const char* tensor;
  const int64_t offset = input_at(f, cache, n, position, &tensor);
  return offset < 0 ? 0.0 : activation_get(f->dtype, tensor, offset + channel);
}

// Checks one output; its error grows with the terms that may cancel.
static void check_output(const fixture_t* f, const char* cache, int32_t n,
                         int64_t position, int64_t d) {
  double sum = 0.0;
  double magnitude = 0.0;
  for (int64_t i = 0; i < f->width; ++i) {
    const double term =
        (double)f->weight[d * f->width + i] *
        input_value(f, cache, n, position - f->width + 1 + i, d);
    sum += term;
    magnitude += fabs(term);
  }
  const double expected = sum / (1.0 + exp(-sum));
  const int64_t index = (f->query_start_loc[n] + position) * ROW_STRIDE + d;
  const double found = activation_get(f->dtype, f->y, index);
  const double tolerance =
      activation_tolerance(f->dtype, expected) + magnitude * f->width * 0x1p-24;
  if (!(fabs(found - expected) <= tolerance)) {
    fail_msg("%s width %d sequence %d position %d channel %d: %.9g, not %.9g",
             sg_dtype_name(f->dtype), f->width, n, (int)position, (int)d, found,
             expected);
  }
}

// Checks y and the cache after a run that began with |y_before| and
// |cache_before|.
static void check_results(const fixture_t* f, const char* y_before,
                          const char* cache_before) {
  const size_t element = sg_dtype_bytes(f->dtype);
  const size_t row_bytes = element * CHANNELS;
  char* y = malloc(f->row_tensor_bytes);
  char* cache = malloc(f->cache_bytes);
  assert_true(y != NULL && cache != NULL);
  memcpy(y, y_before, f->row_tensor_bytes);
  memcpy(cache, cache_before, f->cache_bytes);
  for (int32_t n = 0; n < f->batch->sequence_count; ++n) {
    const int64_t length = f->batch->lens[n];
    for (int64_t t = 0; t < length; ++t) {
      const size_t at =
          element * (size_t)((f->query_start_loc[n] + t) * ROW_STRIDE);
      memset(y + at, 0, row_bytes);
      if (!has_slot(f->batch, n)) continue;
      // Numbers are checked by value; then only the rest is left to compare.
      for (int64_t d = 0; d < CHANNELS; ++d) {
        check_output(f, cache_before, n, t, d);
      }
      memcpy(y + at, f->y + at, row_bytes);
    }
    if (length == 0 || !has_slot(f->batch, n)) continue;
    for (int64_t i = 0; i < f->width - 1; ++i) {
      const char* tensor;
      const int64_t source =
          input_at(f, cache_before, n, length - f->width + 1 + i, &tensor);
      char* target =
          cache +
          element * (size_t)(f->batch->slots[n] * SLOT_STRIDE + i * CHANNELS);
      memset(target, 0, row_bytes);
      if (source >= 0)
        memcpy(target, tensor + element * (size_t)source, row_bytes);
    }
  }
  assert_memory_equal(f->y, y, f->row_tensor_bytes);
  assert_memory_equal(f->cache, cache, f->cache_bytes);
  free(y);
  free(cache);
}

static char* copy_of(const char* bytes, size_t count) {
  char* copy = malloc(count);
  assert_non_null(copy);
  memcpy(copy, bytes, count);
  return copy;
}

static void check_case(sg_dtype_t dtype, int32_t width, const batch_t* batch,
                       tiles_t tiles, sg_host_isa_t isa, block_order_t order) {
  fixture_t* f = fixture_create(dtype, width, batch);
  char* y_before = copy_of(f->y, f->row_tensor_bytes);
  char* cache_before = copy_of(f->cache, f->cache_bytes);
  const sg_short_conv_args_t args = args_of(f);
  run(&args, tiles, isa, order);
  check_results(f, y_before, cache_before);
  free(y_before);
  free(cache_before);
  fixture_destroy(f);
}

static void test_short_conv_matches_formula(void** state) {
  (void)state;
  const sg_dtype_t dtypes[] = {SG_DTYPE_FP32, SG_DTYPE_BF16, SG_DTYPE_FP16};
  for (size_t i = 0; i < 3; ++i) {
    for (int32_t width = 2; width <= MAX_WIDTH; ++width) {
      for (size_t b = 0; b < BATCH_COUNT; ++b) {
        check_case(dtypes[i], width, &batches[b], (tiles_t){0},
                   sg__host_isa_best(), BLOCKS_FORWARD);
      }
    }
  }
}

// Tiles that cut sequences anywhere, also between their first rows, and blocks
// in either order: a block that read what another one writes would show.
static void test_short_conv_tiles_do_not_matter(void** state) {
  (void)state;
  for (int32_t width = 2; width <= MAX_WIDTH; ++width) {
    for (int32_t tokens = 1; tokens <= 7; ++tokens) {
      for (size_t b = 0; b < BATCH_COUNT; ++b) {
        const tiles_t tiles = {tokens, 16 * tokens};
        check_case(SG_DTYPE_BF16, width, &batches[b], tiles,
                   sg__host_isa_best(), BLOCKS_FORWARD);
        check_case(SG_DTYPE_BF16, width, &batches[b], tiles,
                   sg__host_isa_best(), BLOCKS_BACKWARD);
      }
    }
  }
}

static void test_short_conv_every_instruction_set(void** state) {
  (void)state;
  for (int32_t i = 0; i < SG_HOST_ISA_COUNT; ++i) {
    const sg_host_isa_t isa = (sg_host_isa_t)i;
    if (!sg__host_isa_available(isa)) continue;
    check_case(SG_DTYPE_BF16, 4, &batches[0], (tiles_t){0}, isa,
               BLOCKS_FORWARD);
    check_case(SG_DTYPE_FP16, 3, &batches[0], (tiles_t){0}, isa,
               BLOCKS_FORWARD);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_short_conv_matches_formula),
      cmocka_unit_test(test_short_conv_tiles_do_not_matter),
      cmocka_unit_test(test_short_conv_every_instruction_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
