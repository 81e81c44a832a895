// SPDX-License-Identifier: Apache-2.0
//
// short_conv over several steps, in steps with errors, at other capacities, and
// its launcher.

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/short_conv/configure.h"
#include "kernels/short_conv/short_conv_host.h"
#include "tests/check.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/run_blocks.h"

enum {
  TOKENS = 40,
  TOKEN_CAPACITY = 200,
  CHANNELS = 3 * 32,
  SLOTS = 3,
  SLOT = 2,
  WIDTH_MAX = 4,
  CANARY = 0x5a,
};

// One sequence in slot 2 of a pool of three, bf16.
typedef struct fixture_t {
  sg_kda_geometry_t geometry;
  sg_batch_counts_t counts;
  int32_t query_start_loc[8];
  int32_t computed_lens[8];
  int32_t slots[8];
  float weight[CHANNELS * WIDTH_MAX];
  uint16_t x[TOKEN_CAPACITY][CHANNELS];
  uint16_t y[TOKEN_CAPACITY][CHANNELS];
  uint16_t cache[SLOTS][(WIDTH_MAX - 1) * CHANNELS];
} fixture_t;

static void fixture_initialize(fixture_t* f, int32_t width) {
  memset(f, 0, sizeof(*f));
  f->geometry = (sg_kda_geometry_t){.heads = 1,
                                    .value_heads = 1,
                                    .key_dim = 32,
                                    .value_dim = 32,
                                    .conv_width = width,
                                    .chunk_size = 64,
                                    .scale = 0.125f,
                                    .activation_dtype = SG_DTYPE_BF16,
                                    .norm_epsilon = 1e-5f};
  f->counts.sequence_count = 1;
  f->counts.token_count = TOKENS;
  f->query_start_loc[1] = TOKENS;
  f->slots[0] = SLOT;
  uint64_t seed = 5;
  for (int32_t i = 0; i < CHANNELS * WIDTH_MAX; ++i) {
    f->weight[i] = (float)random_unit(&seed);
  }
  activation_fill(SG_DTYPE_BF16, f->x, TOKEN_CAPACITY * CHANNELS, NAN);
  for (int64_t i = 0; i < TOKENS * CHANNELS; ++i) {
    activation_set(SG_DTYPE_BF16, f->x, i, 2 * random_unit(&seed));
  }
  memset(f->y, CANARY, sizeof(f->y));
  activation_fill(SG_DTYPE_BF16, f->cache, sizeof(f->cache) / 2, NAN);
}

static sg_short_conv_args_t args_of(fixture_t* f) {
  return (sg_short_conv_args_t){
      .geometry = &f->geometry,
      .capacity = {.tokens = TOKENS, .sequences = 1},
      .tables = {.counts = &f->counts,
                 .query_start_loc = f->query_start_loc,
                 .computed_lens = f->computed_lens,
                 .slots = f->slots},
      .x = f->x,
      .weight = f->weight,
      .cache = f->cache,
      .y = f->y,
      .x_row_stride = CHANNELS,
      .y_row_stride = CHANNELS,
      .cache_slot_stride = (WIDTH_MAX - 1) * CHANNELS,
      .null_slot = -1,
  };
}

static const sg_target_t* target_named(const char* name) {
  const sg_target_t* target;
  assert_ok(sg_target_find(name, &target));
  return target;
}

static void run(const sg_short_conv_args_t* args) {
  sg_short_conv_plan_t plan;
  assert_ok(sg__short_conv_configure(target_named("host"), 0, args, &plan));
  run_blocks(short_conv_handle(), &plan.params, plan.launch.grid,
             BLOCKS_FORWARD);
}

// Runs tokens |first| to |end| - 1 as a step of their own.
static void run_step(fixture_t* f, int32_t first, int32_t end) {
  f->counts.token_count = end - first;
  f->query_start_loc[1] = end - first;
  f->computed_lens[0] = first;
  sg_short_conv_args_t args = args_of(f);
  args.capacity.tokens = end - first;
  args.x = f->x[first];
  args.y = f->y[first];
  run(&args);
}

static void assert_same_results(const fixture_t* a, const fixture_t* b) {
  assert_memory_equal(a->y, b->y, sizeof(a->y));
  assert_memory_equal(a->cache, b->cache, sizeof(a->cache));
}

static void test_short_conv_split_anywhere_equals_one_shot(void** state) {
  (void)state;
  static fixture_t whole;
  static fixture_t split;
  for (int32_t width = 2; width <= WIDTH_MAX; ++width) {
    fixture_initialize(&whole, width);
    run_step(&whole, 0, TOKENS);
    for (int32_t at = 0; at <= TOKENS; ++at) {
      fixture_initialize(&split, width);
      run_step(&split, 0, at);
      run_step(&split, at, TOKENS);
      assert_same_results(&split, &whole);
    }
  }
}

static void test_short_conv_token_by_token_equals_one_shot(void** state) {
  (void)state;
  static fixture_t whole;
  static fixture_t steps;
  for (int32_t width = 2; width <= WIDTH_MAX; ++width) {
    fixture_initialize(&whole, width);
    run_step(&whole, 0, TOKENS);
    fixture_initialize(&steps, width);
    for (int32_t t = 0; t < TOKENS; ++t) run_step(&steps, t, t + 1);
    assert_same_results(&steps, &whole);
  }
}

static void test_short_conv_later_tokens_change_nothing_before(void** state) {
  (void)state;
  static fixture_t a;
  static fixture_t b;
  fixture_initialize(&a, 4);
  fixture_initialize(&b, 4);
  activation_fill(SG_DTYPE_BF16, b.x[TOKENS / 2], TOKENS / 2 * CHANNELS, NAN);
  run_step(&a, 0, TOKENS);
  run_step(&b, 0, TOKENS);
  assert_memory_equal(a.y, b.y, TOKENS / 2 * sizeof(a.y[0]));
}

static void test_short_conv_capacity_does_not_matter(void** state) {
  (void)state;
  static fixture_t exact;
  static fixture_t large;
  fixture_initialize(&exact, 4);
  fixture_initialize(&large, 4);
  sg_short_conv_args_t args = args_of(&exact);
  run(&args);
  args = args_of(&large);
  args.capacity =
      (sg_batch_capacity_t){.tokens = TOKEN_CAPACITY, .sequences = 7};
  // Tables beyond the counts may hold anything.
  for (int32_t n = 1; n < 7; ++n) {
    large.query_start_loc[n + 1] = 1000000;
    large.computed_lens[n] = -7;
    large.slots[n] = 1 << 30;
  }
  run(&args);
  assert_same_results(&exact, &large);
}

static void test_short_conv_step_with_error_changes_nothing(void** state) {
  (void)state;
  static fixture_t f;
  static fixture_t before;
  fixture_initialize(&f, 4);
  f.counts.error_code = SG_STEP_ERROR_SLOT_DUPLICATE;
  before = f;
  sg_short_conv_args_t args = args_of(&f);
  run(&args);
  assert_memory_equal(&f, &before, sizeof(f));
}

static void test_short_conv_nothing_to_do(void** state) {
  (void)state;
  static fixture_t f;
  static fixture_t before;
  fixture_initialize(&f, 4);
  f.counts = (sg_batch_counts_t){0};
  f.query_start_loc[1] = 0;
  before = f;
  sg_short_conv_args_t args = args_of(&f);
  run(&args);
  assert_memory_equal(&f, &before, sizeof(f));
  args.capacity = (sg_batch_capacity_t){0};
  run(&args);
  assert_memory_equal(&f, &before, sizeof(f));
}

static void test_short_conv_enqueued_on_a_stream(void** state) {
  (void)state;
  static fixture_t f;
  static fixture_t expected;
  fixture_initialize(&expected, 4);
  run_step(&expected, 0, TOKENS);
  fixture_initialize(&f, 4);
  const sg_short_conv_args_t args = args_of(&f);
  sg_enqueue_t where = {.target = target_named("host")};
  assert_hip(hipStreamCreate(&where.stream));
  assert_ok(sg_short_conv_enqueue(&where, &args));
  assert_hip(hipStreamSynchronize(where.stream));
  assert_hip(hipStreamDestroy(where.stream));
  assert_same_results(&f, &expected);
}

// The pool seems to begin 12 GiB before the one slot that is there.
static void test_short_conv_offsets_are_64_bit(void** state) {
  (void)state;
  static fixture_t f;
  static fixture_t expected;
  fixture_initialize(&expected, 4);
  run_step(&expected, 0, TOKENS);
  fixture_initialize(&f, 4);
  sg_short_conv_args_t args = args_of(&f);
  args.cache_slot_stride = ((int64_t)3 << 30) + 16;
  const uint64_t skipped = (uint64_t)args.cache_slot_stride * SLOT * 2;
  args.cache = (void*)((uintptr_t)f.cache[SLOT] - (uintptr_t)skipped);
  run(&args);
  assert_memory_equal(f.y, expected.y, sizeof(f.y));
  assert_memory_equal(f.cache, expected.cache, sizeof(f.cache));
}

// silu(-3e38) is 0 and silu(3e38) is 3e38; a NaN stays one.
static void test_short_conv_extreme_inputs(void** state) {
  (void)state;
  static fixture_t f;
  fixture_initialize(&f, 4);
  for (int32_t i = 0; i < CHANNELS * WIDTH_MAX; ++i) {
    f.weight[i] = i % WIDTH_MAX == WIDTH_MAX - 1 ? 1.0f : 0.0f;
  }
  activation_set(SG_DTYPE_BF16, f.x, 0, -3e38);
  activation_set(SG_DTYPE_BF16, f.x, 1, 3e38);
  activation_set(SG_DTYPE_BF16, f.x, 2, NAN);
  run_step(&f, 0, 1);
  assert_true(fabs(activation_get(SG_DTYPE_BF16, f.y, 0)) < 1e-30);
  assert_true(activation_get(SG_DTYPE_BF16, f.y, 1) > 2.9e38);
  assert_true(isnan(activation_get(SG_DTYPE_BF16, f.y, 2)));
}

static void test_short_conv_grid_covers_the_capacity(void** state) {
  (void)state;
  static fixture_t f;
  fixture_initialize(&f, 4);
  f.geometry.heads = 32;
  f.geometry.value_heads = 32;
  f.geometry.key_dim = 128;
  f.geometry.value_dim = 128;
  sg_short_conv_args_t args = args_of(&f);
  args.capacity.tokens = 8192;
  args.x_row_stride = 12288;
  args.y_row_stride = 12288;
  args.cache_slot_stride = 3 * 12288;
  sg_short_conv_plan_t plan;
  assert_ok(sg__short_conv_configure(target_named("host"), 3, &args, &plan));
  assert_int_equal(plan.params.channels, 12288);
  const int64_t tokens = (int64_t)plan.launch.grid /
                         (12288 / plan.params.channel_tile) *
                         plan.params.token_tile;
  assert_int_equal(tokens, 8192);
  assert_int_equal(plan.launch.layer, 3);
  assert_string_equal(plan.launch.kernel->op, "short_conv");
}

static void assert_refused(const sg_short_conv_args_t* args,
                           const char* target_name, sg_status_code_t code,
                           const char* message) {
  sg_short_conv_plan_t plan;
  const sg_status_t status =
      sg__short_conv_configure(target_named(target_name), 0, args, &plan);
  assert_string_equal(status.message, message);
  assert_int_equal(status.code, code);
}

static void test_short_conv_refuses_bad_arguments(void** state) {
  (void)state;
  static fixture_t f;
  fixture_initialize(&f, 4);
  const sg_short_conv_args_t good = args_of(&f);
  sg_short_conv_args_t args = good;
  args.weight = NULL;
  assert_refused(&args, "host", SG_STATUS_INVALID_ARGUMENT,
                 "short_conv: weight is NULL");
  args = good;
  args.y = f.x;
  assert_refused(&args, "host", SG_STATUS_INVALID_ARGUMENT,
                 "short_conv: y is x, expected another buffer");
  args = good;
  args.capacity.tokens = -1;
  assert_refused(&args, "host", SG_STATUS_INVALID_ARGUMENT,
                 "short_conv: capacity of -1 tokens and 1 sequences");
  args = good;
  args.cache_slot_stride = 287;
  assert_refused(&args, "host", SG_STATUS_INVALID_ARGUMENT,
                 "short_conv: cache_slot_stride is 287, expected at least 288");
  args = good;
  f.geometry.conv_width = 5;
  assert_refused(&args, "host", SG_STATUS_UNSUPPORTED,
                 "short_conv: width 5, supported are 2 to 4");
  f.geometry.conv_width = 1;
  assert_refused(&args, "host", SG_STATUS_UNSUPPORTED,
                 "short_conv: width 1, supported are 2 to 4");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_short_conv_split_anywhere_equals_one_shot),
      cmocka_unit_test(test_short_conv_token_by_token_equals_one_shot),
      cmocka_unit_test(test_short_conv_later_tokens_change_nothing_before),
      cmocka_unit_test(test_short_conv_capacity_does_not_matter),
      cmocka_unit_test(test_short_conv_step_with_error_changes_nothing),
      cmocka_unit_test(test_short_conv_nothing_to_do),
      cmocka_unit_test(test_short_conv_enqueued_on_a_stream),
      cmocka_unit_test(test_short_conv_offsets_are_64_bit),
      cmocka_unit_test(test_short_conv_extreme_inputs),
      cmocka_unit_test(test_short_conv_grid_covers_the_capacity),
      cmocka_unit_test(test_short_conv_refuses_bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
