// SPDX-License-Identifier: Apache-2.0
//
// The layer against the recurrence in double precision, some heads and tokens
// of it.

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kda_layer.h"
#include "kernels/common/host_convert.h"
#include "runtime/hip/error.h"
#include "tests/kernels/kda_recurrence.h"

enum {
  CHECKED_TOKENS = 256,
  STATE_FLOATS = BENCH_DIM * BENCH_DIM,
};

// Half a unit in the last place of bf16 is 2e-3 of a number. The state is fp32
// and rounded once a token; AMX's products are off by 2^-17 in the mean, those
// of GPUs have operands of 11 bits.
#define OUTPUT_TOLERANCE 5e-3
#define HOST_STATE_TOLERANCE 1e-4
#define DEVICE_STATE_TOLERANCE 2e-3

// Elements of a token's row, which has all heads.
static size_t width_of(const kda_layer_t* layer) {
  return (size_t)layer->shape.heads * BENCH_DIM;
}

// Rows of one sequence as they are in device memory, and its states.
typedef struct rows_t {
  int32_t tokens;
  uint16_t* q;
  uint16_t* k;
  uint16_t* v;
  uint16_t* raw_g;
  uint16_t* raw_beta;
  float* a_log;
  float* dt_bias;
  float* states;
} rows_t;

static sg_status_t download(const kda_layer_t* layer, int32_t buffer,
                            size_t first_byte, size_t bytes, void** out_data) {
  *out_data = malloc(bytes);
  if (*out_data == NULL) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "%zu bytes to check", bytes);
  }
  SG_RETURN_IF_HIP_ERROR(hipMemcpy, *out_data,
                         (const char*)layer->buffers[buffer] + first_byte,
                         bytes, hipMemcpyDeviceToHost);
  return sg_status_ok();
}

static sg_status_t download_rows(const kda_layer_t* layer, int32_t sequence,
                                 rows_t* out_rows) {
  memset(out_rows, 0, sizeof(*out_rows));
  const int32_t all = bench_case_tokens_of(&layer->shape, sequence);
  out_rows->tokens = all < CHECKED_TOKENS ? all : CHECKED_TOKENS;
  const size_t first =
      (size_t)bench_case_tokens_before(&layer->shape, sequence);
  const size_t count = (size_t)out_rows->tokens;
  const size_t heads = (size_t)layer->shape.heads;
  const size_t row_bytes = 2 * width_of(layer);
  const size_t state_bytes = sizeof(float) * heads * STATE_FLOATS;
  const struct {
    int32_t buffer;
    size_t first_byte;
    size_t bytes;
    void** target;
  } parts[] = {
      {BENCH_Q, first * row_bytes, count * row_bytes, (void**)&out_rows->q},
      {BENCH_K, first * row_bytes, count * row_bytes, (void**)&out_rows->k},
      {BENCH_V, first * row_bytes, count * row_bytes, (void**)&out_rows->v},
      {BENCH_RAW_G, first * row_bytes, count * row_bytes,
       (void**)&out_rows->raw_g},
      {BENCH_RAW_BETA, first * 2 * heads, count * 2 * heads,
       (void**)&out_rows->raw_beta},
      {BENCH_A_LOG, 0, layer->bytes[BENCH_A_LOG], (void**)&out_rows->a_log},
      {BENCH_DT_BIAS, 0, layer->bytes[BENCH_DT_BIAS],
       (void**)&out_rows->dt_bias},
      {BENCH_STATE, (size_t)sequence * state_bytes, state_bytes,
       (void**)&out_rows->states},
  };
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    SG_RETURN_IF_ERROR(download(layer, parts[i].buffer, parts[i].first_byte,
                                parts[i].bytes, parts[i].target));
  }
  return sg_status_ok();
}

static void release_rows(rows_t* rows) {
  free(rows->q);
  free(rows->k);
  free(rows->v);
  free(rows->raw_g);
  free(rows->raw_beta);
  free(rows->a_log);
  free(rows->dt_bias);
  free(rows->states);
}

// |width| elements of each token's row, from element |first| on.
static double* widen(const uint16_t* rows, int32_t tokens, int32_t row_width,
                     int32_t first, int32_t width) {
  double* wide = malloc(sizeof(double) * (size_t)tokens * (size_t)width);
  for (int32_t t = 0; wide != NULL && t < tokens; ++t) {
    for (int32_t i = 0; i < width; ++i) {
      wide[t * width + i] = (double)sg_float_from_bf16(
          rows[(size_t)t * (size_t)row_width + (size_t)(first + i)]);
    }
  }
  return wide;
}

static double* widen_floats(const float* source, int32_t count) {
  double* wide = malloc(sizeof(double) * (size_t)count);
  for (int32_t i = 0; wide != NULL && i < count; ++i) wide[i] = source[i];
  return wide;
}

// What the recurrence makes of one head, as a case with that head alone.
static sg_status_t expect(const kda_layer_t* layer, const rows_t* rows,
                          int32_t head, kda_expected_t* out_expected) {
  const int32_t heads = layer->shape.heads;
  const int32_t width = heads * BENCH_DIM;
  const int32_t first = head * BENCH_DIM;
  kda_case_t test = {
      .geometry = layer->geometry,
      .sequence_count = 1,
      .lens = {rows->tokens},
      .computed = {1},
      .null_slot = -1,
  };
  test.geometry.heads = test.geometry.value_heads = 1;
  kda_inputs_t inputs = {
      .q = widen(rows->q, rows->tokens, width, first, BENCH_DIM),
      .k = widen(rows->k, rows->tokens, width, first, BENCH_DIM),
      .v = widen(rows->v, rows->tokens, width, first, BENCH_DIM),
      .raw_g = widen(rows->raw_g, rows->tokens, width, first, BENCH_DIM),
      .raw_beta = widen(rows->raw_beta, rows->tokens, heads, head, 1),
      .a_log = widen_floats(rows->a_log + head, 1),
      .dt_bias = widen_floats(rows->dt_bias + first, BENCH_DIM),
      .states = widen_floats(rows->states + (ptrdiff_t)head * STATE_FLOATS,
                             STATE_FLOATS),
  };
  *out_expected = (kda_expected_t){0};
  const bool complete = inputs.q != NULL && inputs.k != NULL &&
                        inputs.v != NULL && inputs.raw_g != NULL &&
                        inputs.raw_beta != NULL && inputs.a_log != NULL &&
                        inputs.dt_bias != NULL && inputs.states != NULL;
  if (complete) kda_expected_initialize(&test, &inputs, out_expected);
  kda_inputs_deinitialize(&inputs);
  return out_expected->o != NULL && out_expected->states != NULL
             ? sg_status_ok()
             : sg_status_make(SG_STATUS_OUT_OF_MEMORY, "outputs to check");
}

typedef struct error_sum_t {
  double difference;
  double expected;
} error_sum_t;

static void add_error(error_sum_t* sum, double actual, double expected) {
  sum->difference += (actual - expected) * (actual - expected);
  sum->expected += expected * expected;
}

static sg_status_t check_error(const char* what, const kda_layer_t* layer,
                               int32_t sequence, int32_t head, error_sum_t sum,
                               double tolerance) {
  const double error = sqrt(sum.difference / sum.expected);
  // Also where it is not a number.
  if (!(error <= tolerance)) {
    return sg_status_make(SG_STATUS_MISMATCH,
                          "%s: %s of sequence %d, head %d: relative error "
                          "%.2e, at most %.0e",
                          layer->shape.name, what, sequence, head, error,
                          tolerance);
  }
  return sg_status_ok();
}

// |o| and |states| are those of the sequence.
static sg_status_t check_head(const kda_layer_t* layer, const rows_t* rows,
                              int32_t sequence, int32_t head, const uint16_t* o,
                              const float* states) {
  kda_expected_t expected;
  SG_RETURN_IF_ERROR(expect(layer, rows, head, &expected));
  assert(expected.o != NULL && expected.states != NULL);
  error_sum_t o_sum = {0}, state_sum = {0};
  const size_t width = width_of(layer);
  for (int32_t t = 0; t < rows->tokens; ++t) {
    for (int32_t i = 0; i < BENCH_DIM; ++i) {
      add_error(&o_sum,
                (double)sg_float_from_bf16(
                    o[(size_t)t * width + (size_t)(head * BENCH_DIM + i)]),
                expected.o[t * BENCH_DIM + i]);
    }
  }
  for (int32_t i = 0; i < STATE_FLOATS; ++i) {
    add_error(&state_sum, (double)states[head * STATE_FLOATS + i],
              expected.states[i]);
  }
  kda_expected_deinitialize(&expected);
  SG_RETURN_IF_ERROR(
      check_error("o", layer, sequence, head, o_sum, OUTPUT_TOLERANCE));
  // The recurrence has stopped short of the end.
  if (rows->tokens < bench_case_tokens_of(&layer->shape, sequence)) {
    return sg_status_ok();
  }
  const bool on_host = layer->where.target->flavour == SG_FLAVOUR_HOST;
  return check_error("state", layer, sequence, head, state_sum,
                     on_host ? HOST_STATE_TOLERANCE : DEVICE_STATE_TOLERANCE);
}

static sg_status_t check_sequence(const kda_layer_t* layer, int32_t sequence,
                                  const rows_t* before) {
  const int32_t heads = layer->shape.heads;
  const size_t first =
      (size_t)bench_case_tokens_before(&layer->shape, sequence);
  const size_t row_bytes = 2 * width_of(layer);
  const size_t state_bytes = sizeof(float) * (size_t)heads * STATE_FLOATS;
  void* o = NULL;
  void* states = NULL;
  sg_status_t status = download(layer, BENCH_O, first * row_bytes,
                                (size_t)before->tokens * row_bytes, &o);
  if (sg_status_is_ok(status)) {
    status = download(layer, BENCH_STATE, (size_t)sequence * state_bytes,
                      state_bytes, &states);
  }
  const int32_t checked[] = {0, heads - 1};
  for (int32_t i = 0; i < 2 && sg_status_is_ok(status); ++i) {
    status = check_head(layer, before, sequence, checked[i], o, states);
  }
  free(o);
  free(states);
  return status;
}

sg_status_t kda_layer_check(const kda_layer_t* layer) {
  const int32_t last = layer->shape.sequences - 1;
  rows_t first_rows, last_rows;
  sg_status_t status = download_rows(layer, 0, &first_rows);
  memset(&last_rows, 0, sizeof(last_rows));
  if (sg_status_is_ok(status)) status = download_rows(layer, last, &last_rows);
  if (sg_status_is_ok(status)) status = kda_layer_run(layer);
  if (sg_status_is_ok(status)) status = check_sequence(layer, 0, &first_rows);
  if (sg_status_is_ok(status)) status = check_sequence(layer, last, &last_rows);
  release_rows(&first_rows);
  release_rows(&last_rows);
  return status;
}
