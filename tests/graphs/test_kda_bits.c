// SPDX-License-Identifier: Apache-2.0
//
// What must not change a bit of a whole layer's outputs, states and caches: the
// capacity that a step runs in, the sequences beside one, repetition, and what
// stands in padding and scratch. And what may change the last bits only: where
// a prefill is split.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/graphs/kda_fixture.h"

// A copy of all pools and outputs.
typedef struct results_t {
  size_t count;
  unsigned char** buffers;
} results_t;

static bool is_result(const sg_buffer_spec_t* spec) {
  return spec->role == SG_BUFFER_POOL || spec->role == SG_BUFFER_OUTPUT;
}

static results_t take_results(const kda_fixture_t* f) {
  results_t results = {f->program->buffer_count, NULL};
  results.buffers = calloc(results.count, sizeof(*results.buffers));
  assert_non_null(results.buffers);
  for (size_t i = 0; i < results.count; ++i) {
    const sg_buffer_spec_t* spec = &f->program->buffers[i];
    if (!is_result(spec)) continue;
    results.buffers[i] = malloc(spec->bytes);
    assert_non_null(results.buffers[i]);
    assert_hip(hipMemcpy(results.buffers[i], f->device[i], spec->bytes,
                         hipMemcpyDeviceToHost));
  }
  return results;
}

static void put_results(const kda_fixture_t* f, const results_t* results) {
  for (size_t i = 0; i < results->count; ++i) {
    if (results->buffers[i] == NULL) continue;
    device_upload(f->device[i], results->buffers[i],
                  f->program->buffers[i].bytes);
  }
}

static void free_results(results_t* results) {
  for (size_t i = 0; i < results->count; ++i) free(results->buffers[i]);
  free(results->buffers);
}

static void check_same(const kda_fixture_t* f, const results_t* expected,
                       const results_t* found, const char* what) {
  for (size_t i = 0; i < expected->count; ++i) {
    const sg_buffer_spec_t* spec = &f->program->buffers[i];
    if (expected->buffers[i] == NULL) continue;
    if (memcmp(expected->buffers[i], found->buffers[i], spec->bytes) != 0) {
      fail_msg("%s: %s differs", what, spec->name);
    }
  }
}

// Steps of one server: prefills, then decodes among prefills, then decodes.
enum { STEPS = 3, N = 6 };

typedef struct step_t {
  int32_t lens[N];
  int32_t computed[N];
} step_t;

static const step_t steps[STEPS] = {
    {{70, 64, 2, 0, 130, 1}, {0, 0, 0, 0, 0, 0}},
    {{1, 1, 33, 40, 1, 17}, {70, 64, 2, 0, 130, 1}},
    {{1, 1, 1, 1, 1, 1}, {71, 65, 35, 40, 131, 18}},
};
static const int32_t slots[N] = {7, 1, 9, 2, -1, 4};

static sg_batch_t batch_of(const step_t* step) {
  return (sg_batch_t){N, step->lens, step->computed, slots};
}

static int32_t tokens_of(const step_t* step) {
  int32_t tokens = 0;
  for (int n = 0; n < N; ++n) tokens += step->lens[n];
  return tokens;
}

static sg_shape_t exact_shapes[] = {{"prefill-267", SG_PHASE_PREFILL, 267, N},
                                    {"mixed-93", SG_PHASE_MIXED, 93, N},
                                    {"decode-6", SG_PHASE_DECODE, N, N}};
static sg_shape_t larger_shapes[] = {{"mixed-300", SG_PHASE_MIXED, 300, N + 1},
                                     {"decode-9", SG_PHASE_DECODE, 9, 12}};
static sg_shape_t largest_shapes[] = {
    {"mixed-320", SG_PHASE_MIXED, KDA_MAX_TOKENS, KDA_MAX_SEQUENCES}};

static kda_fixture_options_t whole_layer(sg_shape_t* shapes, size_t count) {
  kda_fixture_options_t options = kda_fixture_defaults();
  options.with_conv = true;
  options.with_norm = true;
  options.shapes = shapes;
  options.shape_count = count;
  return options;
}

// Runs the steps with equal inputs and keeps what each left behind.
static void run_all(kda_fixture_t* f, results_t out_results[STEPS]) {
  for (int i = 0; i < STEPS; ++i) {
    const sg_batch_t batch = batch_of(&steps[i]);
    sg_step_report_t report;
    kda_fixture_new_inputs(f);
    kda_fixture_run(f, &batch, &report);
    assert_int_equal(report.shape_index < 0, f->options.always_eager);
    out_results[i] = take_results(f);
  }
}

static void check_capacities(sg_dtype_t dtype) {
  kda_fixture_options_t variants[] = {
      whole_layer(exact_shapes, 3), whole_layer(larger_shapes, 2),
      whole_layer(largest_shapes, 1), whole_layer(exact_shapes, 3)};
  variants[3].always_eager = true;
  results_t expected[STEPS];
  for (size_t v = 0; v < sizeof(variants) / sizeof(variants[0]); ++v) {
    variants[v].geometry.activation_dtype = dtype;
    kda_fixture_t f;
    kda_fixture_set_up(&f, &variants[v]);
    results_t found[STEPS];
    run_all(&f, v == 0 ? expected : found);
    for (int i = 0; v > 0 && i < STEPS; ++i) {
      check_same(&f, &expected[i], &found[i], variants[v].shapes[0].name);
      free_results(&found[i]);
    }
    kda_fixture_tear_down(&f);
  }
  for (int i = 0; i < STEPS; ++i) free_results(&expected[i]);
}

static void test_capacity_changes_no_bit(void** state) {
  (void)state;
  check_capacities(SG_DTYPE_FP32);
  check_capacities(SG_DTYPE_BF16);
}

// The fixture after its first step, with the inputs of the second.
static void set_up_second_step(kda_fixture_t* f) {
  kda_fixture_options_t options = whole_layer(largest_shapes, 1);
  kda_fixture_set_up(f, &options);
  const sg_batch_t first = batch_of(&steps[0]);
  kda_fixture_run(f, &first, NULL);
  kda_fixture_new_inputs(f);
}

// Rows |first_row| on of a buffer against rows 0 on of another copy.
static void check_rows(const kda_fixture_t* f, size_t buffer,
                       const results_t* together, int32_t first_row,
                       const results_t* alone, int32_t alone_row,
                       int32_t count) {
  const sg_buffer_spec_t* spec = &f->program->buffers[buffer];
  const size_t stride = spec->stride_bytes;
  if (memcmp(together->buffers[buffer] + (size_t)first_row * stride,
             alone->buffers[buffer] + (size_t)alone_row * stride,
             (size_t)count * stride) != 0) {
    fail_msg("%s: %d rows from %d differ alone", spec->name, count, first_row);
  }
}

// Sequence |n| of the second step, whose inputs begin at |first_row|, behind
// |ahead| empty sequences.
static void check_alone(kda_fixture_t* f, int n, int32_t first_row,
                        int32_t ahead, const results_t* before,
                        const results_t* together) {
  const step_t* step = &steps[1];
  const int32_t lens[2] = {ahead == 0 ? step->lens[n] : 0, step->lens[n]};
  const int32_t computed[2] = {step->computed[n], step->computed[n]};
  const int32_t where[2] = {ahead == 0 ? slots[n] : -1, slots[n]};
  const sg_batch_t batch = {1 + ahead, lens, computed, where};
  put_results(f, before);
  kda_fixture_clear_inputs(f, 0xff);
  kda_fixture_place_inputs(f, first_row, step->lens[n], 0);
  kda_fixture_run(f, &batch, NULL);
  results_t alone = take_results(f);
  for (size_t i = 0; i < alone.count; ++i) {
    if (alone.buffers[i] == NULL) continue;
    if (f->program->buffers[i].role == SG_BUFFER_OUTPUT) {
      check_rows(f, i, together, first_row, &alone, 0, step->lens[n]);
    } else if (slots[n] >= 0) {
      check_rows(f, i, together, slots[n], &alone, slots[n], 1);
    }
  }
  free_results(&alone);
}

static void test_mixed_step_equals_its_sequences_alone(void** state) {
  (void)state;
  kda_fixture_t f;
  set_up_second_step(&f);
  results_t before = take_results(&f);
  const sg_batch_t batch = batch_of(&steps[1]);
  kda_fixture_run(&f, &batch, NULL);
  results_t together = take_results(&f);
  int32_t row = 0;
  for (int n = 0; n < N; ++n) {
    // The first two are decodes. The others are prefills, also one of a single
    // token, which behind an empty sequence is no decode.
    check_alone(&f, n, row, n < 2 ? 0 : 1, &before, &together);
    row += steps[1].lens[n];
  }
  free_results(&before);
  free_results(&together);
  kda_fixture_tear_down(&f);
}

static void test_repeats_are_equal(void** state) {
  (void)state;
  kda_fixture_t f;
  set_up_second_step(&f);
  results_t before = take_results(&f);
  const sg_batch_t batch = batch_of(&steps[1]);
  kda_fixture_run(&f, &batch, NULL);
  results_t expected = take_results(&f);
  for (int i = 0; i < 200; ++i) {
    put_results(&f, &before);
    kda_fixture_run(&f, &batch, NULL);
    results_t found = take_results(&f);
    check_same(&f, &expected, &found, "a repetition");
    free_results(&found);
  }
  free_results(&before);
  free_results(&expected);
  kda_fixture_tear_down(&f);
}

// Sets every byte of the arena's scratch. The slots' stamps are not scratch:
// they are kept from step to step.
static void set_scratch(const kda_fixture_t* f, int byte) {
  size_t count;
  sg_executor_regions(f->executor, 0, NULL, &count);
  sg_memory_region_t* regions = calloc(count, sizeof(*regions));
  assert_non_null(regions);
  sg_executor_regions(f->executor, count, regions, &count);
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    for (size_t r = 0; r < f->program->arena_region_count; ++r) {
      const char* name = f->program->arena_regions[r].name;
      if (strcmp(regions[i].name, name) != 0) continue;
      ++found;
      if (strcmp(name, "slot_stamps") == 0) continue;
      device_fill((void*)regions[i].base, byte, regions[i].bytes);
    }
  }
  assert_int_equal(found, f->program->arena_region_count);
  free(regions);
}

static void test_padding_and_scratch_change_no_bit(void** state) {
  (void)state;
  kda_fixture_t f;
  kda_fixture_options_t options = whole_layer(largest_shapes, 1);
  kda_fixture_set_up(&f, &options);
  results_t before = take_results(&f);
  results_t expected[STEPS];
  // 0xff bytes are NaN in every float format.
  static const int bytes[] = {0x00, 0xff};
  for (int fill = 0; fill < 2; ++fill) {
    put_results(&f, &before);
    for (int i = 0; i < STEPS; ++i) {
      const sg_batch_t batch = batch_of(&steps[i]);
      kda_fixture_clear_inputs(&f, bytes[fill]);
      kda_fixture_place_inputs(&f, 20 * i, tokens_of(&steps[i]), 0);
      set_scratch(&f, bytes[fill]);
      kda_fixture_run(&f, &batch, NULL);
      results_t found = take_results(&f);
      if (fill == 0) {
        expected[i] = found;
        continue;
      }
      check_same(&f, &expected[i], &found, "NaN in padding and scratch");
      free_results(&found);
      free_results(&expected[i]);
    }
  }
  free_results(&before);
  kda_fixture_tear_down(&f);
}

static double distance(const float* expected, const float* found,
                       size_t count) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < count; ++i) {
    difference += pow((double)found[i] - (double)expected[i], 2);
    norm += pow((double)expected[i], 2);
  }
  return sqrt(difference / norm);
}

enum { PROMPT = 130 };

// Runs tokens |first| to |first + count| of the prompt in |slot| and copies
// their outputs.
static void run_part(kda_fixture_t* f, int32_t first, int32_t count,
                     int32_t slot, float* o) {
  const sg_buffer_spec_t* spec = kda_fixture_spec(f, 0, SG_KDA_BUFFER_O);
  const sg_batch_t batch = {1, &count, &first, &slot};
  kda_fixture_clear_inputs(f, 0xff);
  kda_fixture_place_inputs(f, first, count, 0);
  kda_fixture_run(f, &batch, NULL);
  kda_fixture_read(f, 0, SG_KDA_BUFFER_O,
                   o + (size_t)first * spec->row_bytes / sizeof(float),
                   (size_t)count * spec->row_bytes);
}

// Rounding of fp32 sums in another order.
static const double split_tolerance = 1e-5;

static void test_split_prefill_equals_one_shot(void** state) {
  (void)state;
  enum { WHOLE = 5, PARTS = 6 };
  kda_fixture_t f;
  kda_fixture_options_t options = whole_layer(largest_shapes, 1);
  options.layers = 1;
  kda_fixture_set_up(&f, &options);
  size_t row = kda_fixture_spec(&f, 0, SG_KDA_BUFFER_O)->row_bytes / 4;
  size_t slot = kda_fixture_spec(&f, 0, SG_KDA_BUFFER_STATE)->row_bytes / 4;
  size_t cache = kda_fixture_spec(&f, 0, SG_KDA_BUFFER_CONV_CACHE)->row_bytes;
  size_t state_index = (size_t)kda_fixture_index(&f, 0, SG_KDA_BUFFER_STATE);
  size_t cache_index =
      (size_t)kda_fixture_index(&f, 0, SG_KDA_BUFFER_CONV_CACHE);
  float* expected = malloc(PROMPT * row * sizeof(float));
  float* found = malloc(PROMPT * row * sizeof(float));
  assert_true(expected != NULL && found != NULL);
  run_part(&f, 0, PROMPT, WHOLE, expected);
  for (int32_t split = 1; split < PROMPT; ++split) {
    run_part(&f, 0, split, PARTS, found);
    run_part(&f, split, PROMPT - split, PARTS, found);
    results_t results = take_results(&f);
    const float* states = (const float*)(void*)results.buffers[state_index];
    const unsigned char* caches = results.buffers[cache_index];
    double o_error = distance(expected, found, PROMPT * row);
    double state_error =
        distance(states + WHOLE * slot, states + PARTS * slot, slot);
    // Written so that NaN fails.
    if (!(o_error <= split_tolerance && state_error <= split_tolerance)) {
      fail_msg("split at %d: o off by %g, state by %g", split, o_error,
               state_error);
    }
    assert_memory_equal(caches + WHOLE * cache, caches + PARTS * cache, cache);
    free_results(&results);
  }
  free(expected);
  free(found);
  kda_fixture_tear_down(&f);
}

// Rows from the batch's tokens to the capacity of the shape.
static void check_tail_is_zero(const kda_fixture_t* f, int32_t tokens,
                               int32_t capacity) {
  const sg_buffer_spec_t* spec = kda_fixture_spec(f, 0, SG_KDA_BUFFER_O);
  results_t results = take_results(f);
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    int index = kda_fixture_index(f, layer, SG_KDA_BUFFER_O);
    const unsigned char* o = results.buffers[index];
    for (size_t i = (size_t)tokens * spec->stride_bytes;
         i < (size_t)capacity * spec->stride_bytes; ++i) {
      assert_int_equal(o[i], 0);
    }
  }
  free_results(&results);
}

static void test_zero_tail_reaches_the_capacity(void** state) {
  (void)state;
  for (int norm = 0; norm < 2; ++norm) {
    kda_fixture_options_t options = whole_layer(larger_shapes, 2);
    options.with_norm = norm == 1;
    options.zero_tail = true;
    kda_fixture_t f;
    kda_fixture_set_up(&f, &options);
    results_t before = take_results(&f);
    static const int32_t capacities[STEPS] = {300, 300, 9};
    for (int i = 0; i < STEPS; ++i) {
      const sg_batch_t batch = batch_of(&steps[i]);
      put_results(&f, &before);
      kda_fixture_run(&f, &batch, NULL);
      check_tail_is_zero(&f, tokens_of(&steps[i]), capacities[i]);
    }
    free_results(&before);
    kda_fixture_tear_down(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_capacity_changes_no_bit),
      cmocka_unit_test(test_mixed_step_equals_its_sequences_alone),
      cmocka_unit_test(test_repeats_are_equal),
      cmocka_unit_test(test_padding_and_scratch_change_no_bit),
      cmocka_unit_test(test_split_prefill_equals_one_shot),
      cmocka_unit_test(test_zero_tail_reaches_the_capacity),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
