// SPDX-License-Identifier: Apache-2.0
//
// short_conv and gated_norm on a stream, against their formulas in double
// precision. What may not be read holds NaN.

#include <math.h>
#include <stdbool.h>

#include "kernels/gated_norm/gated_norm.h"
#include "kernels/short_conv/short_conv.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/device_tensor.h"

enum { SPARE_TOKENS = 5, GAP = 8 };

static sg_kda_geometry_t geometry_of(sg_dtype_t dtype) {
  return (sg_kda_geometry_t){.heads = 2,
                             .value_heads = 4,
                             .key_dim = 48,
                             .value_dim = 32,
                             .conv_width = 4,
                             .chunk_size = 64,
                             .scale = 0.125f,
                             .activation_dtype = dtype,
                             .norm_epsilon = 1e-5f};
}

// |rows| random rows of |width| elements, |stride| apart, and spare ones.
static device_tensor_t random_rows(sg_dtype_t dtype, int64_t rows,
                                   int64_t width, int64_t stride,
                                   uint64_t seed) {
  device_tensor_t tensor = device_tensor_create(
      (size_t)((rows + SPARE_TOKENS) * stride) * sg_dtype_bytes(dtype));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      activation_set(dtype, tensor.host, r * stride + c,
                     3.0 * random_unit(&seed));
    }
  }
  device_tensor_upload(&tensor);
  return tensor;
}

static void assert_close(sg_dtype_t dtype, double actual, double expected) {
  // Sums of up to 256 products and a few elementary functions of fp32.
  const double tolerance =
      4.0 * activation_tolerance(dtype, expected) + 1e-6 * fabs(expected);
  if (!(fabs(actual - expected) <= tolerance + 1e-30)) {
    fail_msg("%.9g instead of %.9g", actual, expected);
  }
}

static void assert_bytes(const void* memory, size_t first, size_t count,
                         unsigned char value) {
  for (size_t i = 0; i < count; ++i) {
    assert_int_equal(((const unsigned char*)memory)[first + i], value);
  }
}

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// --- gated_norm ---

typedef struct norm_run_t {
  sg_gated_norm_args_t args;
  sg_kda_geometry_t geometry;
  device_tensor_t counts, o, gate, weight, y;
  int64_t tokens;
} norm_run_t;

static void norm_run_initialize(sg_dtype_t dtype, int32_t dim,
                                int32_t error_code, norm_run_t* r) {
  memset(r, 0, sizeof(*r));
  r->tokens = 37;
  r->geometry = geometry_of(dtype);
  r->geometry.value_dim = dim;
  const int64_t width = r->geometry.value_heads * (int64_t)dim;
  r->counts = device_tensor_create(sizeof(sg_batch_counts_t));
  *(sg_batch_counts_t*)r->counts.host = (sg_batch_counts_t){
      .token_count = (int32_t)r->tokens, .error_code = error_code};
  device_tensor_upload(&r->counts);
  r->o = random_rows(dtype, r->tokens, width, width + GAP, 1);
  r->gate = random_rows(dtype, r->tokens, width, width, 2);
  r->weight = random_rows(SG_DTYPE_FP32, 1, dim, dim, 3);
  r->y = device_tensor_create(r->o.bytes);
  device_tensor_upload(&r->y);
  r->args = (sg_gated_norm_args_t){
      .geometry = &r->geometry,
      .capacity = {.tokens = (int32_t)r->tokens + SPARE_TOKENS},
      .counts = r->counts.device,
      .o = r->o.device,
      .gate = r->gate.device,
      .weight = r->weight.device,
      .y = r->y.device,
      .o_row_stride = width + GAP,
      .gate_row_stride = width,
      .y_row_stride = width + GAP,
  };
}

static void norm_run_deinitialize(norm_run_t* r) {
  device_tensor_destroy(&r->counts);
  device_tensor_destroy(&r->o);
  device_tensor_destroy(&r->gate);
  device_tensor_destroy(&r->weight);
  device_tensor_destroy(&r->y);
}

static void norm_run(norm_run_t* r) {
  const sg_enqueue_t where = device_stream_create();
  assert_ok(sg_gated_norm_enqueue(&where, &r->args));
  assert_hip(hipStreamSynchronize(where.stream));
  device_tensor_download(&r->y);
  device_stream_destroy(&where);
}

static void check_norm_row(const norm_run_t* r, int64_t token, int64_t head) {
  const sg_dtype_t dtype = r->geometry.activation_dtype;
  const int64_t dim = r->geometry.value_dim;
  const int64_t o = token * r->args.o_row_stride + head * dim;
  const int64_t gate = token * r->args.gate_row_stride + head * dim;
  double squares = 0.0;
  for (int64_t c = 0; c < dim; ++c) {
    const double x = activation_get(dtype, r->o.host, o + c);
    squares += x * x;
  }
  const double norm = sqrt(squares / (double)dim + 1e-5);
  for (int64_t c = 0; c < dim; ++c) {
    const double expected =
        activation_get(dtype, r->o.host, o + c) / norm *
        (double)((const float*)r->weight.host)[c] *
        sigmoid(activation_get(dtype, r->gate.host, gate + c));
    assert_close(dtype, activation_get(dtype, r->y.host, o + c), expected);
  }
}

static void test_gated_norm_formula(void** state) {
  (void)state;
  const int32_t dims[] = {32, 48, 128, 256};
  for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_FP16; ++dtype) {
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); ++i) {
      norm_run_t r;
      norm_run_initialize((sg_dtype_t)dtype, dims[i], 0, &r);
      norm_run(&r);
      for (int64_t t = 0; t < r.tokens; ++t) {
        for (int64_t h = 0; h < r.geometry.value_heads; ++h) {
          check_norm_row(&r, t, h);
        }
      }
      const size_t row = (size_t)r.args.y_row_stride *
                         sg_dtype_bytes(r.geometry.activation_dtype);
      assert_bytes(r.y.host, (size_t)r.tokens * row, SPARE_TOKENS * row, 0xff);
      norm_run_deinitialize(&r);
    }
  }
}

static void test_gated_norm_error_zeroes_all_rows(void** state) {
  (void)state;
  norm_run_t r;
  norm_run_initialize(SG_DTYPE_BF16, 64, SG_STEP_ERROR_PHASE, &r);
  norm_run(&r);
  const size_t row = (size_t)r.args.y_row_stride * 2;
  for (size_t t = 0; t < (size_t)r.tokens + SPARE_TOKENS; ++t) {
    assert_bytes(r.y.host, t * row, row - GAP * 2, 0);
    assert_bytes(r.y.host, (t + 1) * row - GAP * 2, GAP * 2, 0xff);
  }
  norm_run_deinitialize(&r);
}

// --- short_conv ---

enum { SEQUENCES = 8, SLOTS = SEQUENCES + 1 };

static const int32_t conv_lens[SEQUENCES] = {1, 1, 0, 13, 2, 1, 40, 3};
static const int32_t conv_computed[SEQUENCES] = {9, 2, 7, 0, 5, 0, 4, 0};
static const int32_t conv_slots[SEQUENCES] = {3, 8, 1, 2, 0, -1, 5, 7};

typedef struct conv_run_t {
  sg_short_conv_args_t args;
  sg_kda_geometry_t geometry;
  device_tensor_t counts, loc, computed, slots, x, weight, cache, y;
  void* cache_before;
  int64_t channels, tokens;
} conv_run_t;

static device_tensor_t integers(const int32_t* values, size_t count) {
  device_tensor_t tensor = device_tensor_create(count * sizeof(int32_t));
  memcpy(tensor.host, values, tensor.bytes);
  device_tensor_upload(&tensor);
  return tensor;
}

static void conv_run_initialize(sg_dtype_t dtype, int32_t width,
                                int32_t error_code, conv_run_t* r) {
  memset(r, 0, sizeof(*r));
  r->geometry = geometry_of(dtype);
  r->geometry.conv_width = width;
  r->channels = sg_short_conv_channels(&r->geometry);
  int32_t loc[SEQUENCES + 1] = {0};
  for (int32_t n = 0; n < SEQUENCES; ++n) loc[n + 1] = loc[n] + conv_lens[n];
  r->tokens = loc[SEQUENCES];
  r->counts = device_tensor_create(sizeof(sg_batch_counts_t));
  *(sg_batch_counts_t*)r->counts.host =
      (sg_batch_counts_t){.sequence_count = SEQUENCES,
                          .token_count = (int32_t)r->tokens,
                          .decode_count = 2,
                          .error_code = error_code};
  device_tensor_upload(&r->counts);
  r->loc = integers(loc, SEQUENCES + 1);
  r->computed = integers(conv_computed, SEQUENCES);
  r->slots = integers(conv_slots, SEQUENCES);
  const int64_t stride = r->channels + GAP;
  r->x = random_rows(dtype, r->tokens, r->channels, stride, 5);
  r->weight = random_rows(SG_DTYPE_FP32, 1, r->channels * width,
                          r->channels * width, 6);
  r->cache = random_rows(dtype, SLOTS, (width - 1) * r->channels,
                         (width - 1) * r->channels + GAP, 7);
  r->cache_before = malloc(r->cache.bytes);
  memcpy(r->cache_before, r->cache.host, r->cache.bytes);
  r->y = device_tensor_create(r->x.bytes);
  device_tensor_upload(&r->y);
  r->args = (sg_short_conv_args_t){
      .geometry = &r->geometry,
      .capacity = {.tokens = (int32_t)r->tokens + SPARE_TOKENS,
                   .sequences = SEQUENCES},
      .tables = {.counts = r->counts.device,
                 .query_start_loc = r->loc.device,
                 .computed_lens = r->computed.device,
                 .slots = r->slots.device},
      .x = r->x.device,
      .weight = r->weight.device,
      .cache = r->cache.device,
      .y = r->y.device,
      .x_row_stride = stride,
      .y_row_stride = stride,
      .cache_slot_stride = (width - 1) * r->channels + GAP,
      .null_slot = 0,
  };
}

static void conv_run_deinitialize(conv_run_t* r) {
  device_tensor_t* tensors[] = {&r->counts, &r->loc,    &r->computed, &r->slots,
                                &r->x,      &r->weight, &r->cache,    &r->y};
  for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); ++i) {
    device_tensor_destroy(tensors[i]);
  }
  free(r->cache_before);
}

static void conv_run(conv_run_t* r) {
  const sg_enqueue_t where = device_stream_create();
  assert_ok(sg_short_conv_enqueue(&where, &r->args));
  assert_hip(hipStreamSynchronize(where.stream));
  device_tensor_download(&r->y);
  device_tensor_download(&r->cache);
  device_stream_destroy(&where);
}

// Input |position| of sequence |n|, which is history below 0.
static double conv_input(const conv_run_t* r, int32_t n, int64_t position,
                         int64_t channel) {
  const sg_dtype_t dtype = r->geometry.activation_dtype;
  if (position >= 0) {
    const int64_t token = ((const int32_t*)r->loc.host)[n] + position;
    return activation_get(dtype, r->x.host,
                          token * r->args.x_row_stride + channel);
  }
  if (conv_computed[n] == 0) return 0.0;
  const int64_t row = r->geometry.conv_width - 1 + position;
  return activation_get(
      dtype, r->cache_before,
      conv_slots[n] * r->args.cache_slot_stride + row * r->channels + channel);
}

static void check_conv_sequence(const conv_run_t* r, int32_t n) {
  const sg_dtype_t dtype = r->geometry.activation_dtype;
  const int32_t width = r->geometry.conv_width;
  const bool live = conv_slots[n] > 0;
  for (int64_t t = 0; t < conv_lens[n]; ++t) {
    const int64_t token = ((const int32_t*)r->loc.host)[n] + t;
    for (int64_t d = 0; d < r->channels; ++d) {
      double sum = 0.0, size = 0.0;
      for (int32_t i = 0; i < width && live; ++i) {
        const double term =
            (double)((const float*)r->weight.host)[d * width + i] *
            conv_input(r, n, t - width + 1 + i, d);
        sum += term;
        size += fabs(term);
      }
      const double expected = sum * sigmoid(sum);
      const double actual =
          activation_get(dtype, r->y.host, token * r->args.y_row_stride + d);
      // Terms may cancel: the sum's error is one of its terms' size.
      if (fabs(actual - expected) > 1e-6 * size) {
        assert_close(dtype, actual, expected);
      }
    }
  }
}

static void check_conv_cache(const conv_run_t* r, int32_t n) {
  const sg_dtype_t dtype = r->geometry.activation_dtype;
  const int32_t rows = r->geometry.conv_width - 1;
  if (conv_slots[n] <= 0 || conv_lens[n] == 0) return;
  for (int32_t i = 0; i < rows; ++i) {
    for (int64_t d = 0; d < r->channels; ++d) {
      const double actual = activation_get(
          dtype, r->cache.host,
          conv_slots[n] * r->args.cache_slot_stride + i * r->channels + d);
      const double expected = conv_input(r, n, conv_lens[n] - rows + i, d);
      if (actual != expected) fail_msg("%.9g not %.9g", actual, expected);
    }
  }
}

static void test_short_conv_formula(void** state) {
  (void)state;
  for (int32_t dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_FP16; ++dtype) {
    for (int32_t width = 2; width <= 4; ++width) {
      conv_run_t r;
      conv_run_initialize((sg_dtype_t)dtype, width, 0, &r);
      conv_run(&r);
      for (int32_t n = 0; n < SEQUENCES; ++n) {
        check_conv_sequence(&r, n);
        check_conv_cache(&r, n);
      }
      // Slots of empty sequences, of none, and the null slot.
      const int32_t untouched[] = {0, 1, 4, 6};
      const size_t slot = (size_t)r.args.cache_slot_stride *
                          sg_dtype_bytes(r.geometry.activation_dtype);
      for (size_t i = 0; i < 4; ++i) {
        const size_t first = (size_t)untouched[i] * slot;
        assert_memory_equal((char*)r.cache.host + first,
                            (char*)r.cache_before + first, slot);
      }
      conv_run_deinitialize(&r);
    }
  }
}

static void test_short_conv_error_writes_nothing(void** state) {
  (void)state;
  conv_run_t r;
  conv_run_initialize(SG_DTYPE_BF16, 4, SG_STEP_ERROR_PHASE, &r);
  conv_run(&r);
  assert_bytes(r.y.host, 0, r.y.bytes, 0xff);
  assert_memory_equal(r.cache.host, r.cache_before, r.cache.bytes);
  conv_run_deinitialize(&r);
}

int main(void) {
  device_require();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gated_norm_formula),
      cmocka_unit_test(test_gated_norm_error_zeroes_all_rows),
      cmocka_unit_test(test_short_conv_formula),
      cmocka_unit_test(test_short_conv_error_writes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
