// SPDX-License-Identifier: Apache-2.0
//
// gated_norm against the formula in double precision. Rows have gaps and there
// are rows beyond the tokens; what may not be read holds NaN, what may not be
// written is compared bit for bit.

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gated_norm/configure.h"
#include "kernels/gated_norm/gated_norm_host.h"
#include "tests/check.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/run_blocks.h"

enum {
  CAPACITY = 61,
  TOKENS = 47,
  HEADS = 5,
  DIM_MAX = 256,
  // Rows of the three tensors are of different lengths.
  O_GAP = 16,
  GATE_GAP = 3,
  Y_GAP = 8,
  STRIDE_MAX = HEADS * DIM_MAX + 16,
  ELEMENTS = CAPACITY * STRIDE_MAX,
};

typedef struct fixture_t {
  sg_kda_geometry_t geometry;
  sg_batch_counts_t counts;
  float weight[DIM_MAX];
  // Room for fp32; |y| starts with a pattern of its own.
  char o[ELEMENTS * 4];
  char gate[ELEMENTS * 4];
  char y[ELEMENTS * 4];
} fixture_t;

static fixture_t* fixture_create(sg_dtype_t dtype, int32_t dim) {
  fixture_t* f = calloc(1, sizeof(*f));
  assert_non_null(f);
  f->geometry = (sg_kda_geometry_t){.heads = 1,
                                    .value_heads = HEADS,
                                    .key_dim = 32,
                                    .value_dim = dim,
                                    .conv_width = 4,
                                    .chunk_size = 64,
                                    .scale = 0.125f,
                                    .activation_dtype = dtype,
                                    .norm_epsilon = 1e-5f};
  f->counts.token_count = TOKENS;
  uint64_t seed = 23;
  for (int32_t i = 0; i < dim; ++i) f->weight[i] = (float)random_unit(&seed);
  activation_fill(dtype, f->o, ELEMENTS, NAN);
  activation_fill(dtype, f->gate, ELEMENTS, NAN);
  memset(f->y, 0x5a, sizeof(f->y));
  const int64_t width = (int64_t)HEADS * dim;
  for (int64_t t = 0; t < TOKENS; ++t) {
    // From rows whose mean of squares is below epsilon to large ones.
    const double scale = pow(10.0, (double)(t % 7) - 4.0);
    for (int64_t i = 0; i < width; ++i) {
      activation_set(dtype, f->o, t * (width + O_GAP) + i,
                     scale * random_unit(&seed));
      activation_set(dtype, f->gate, t * (width + GATE_GAP) + i,
                     8 * random_unit(&seed));
    }
  }
  return f;
}

static sg_gated_norm_args_t args_of(fixture_t* f) {
  const int64_t width = (int64_t)HEADS * f->geometry.value_dim;
  return (sg_gated_norm_args_t){
      .geometry = &f->geometry,
      .capacity = {.tokens = CAPACITY},
      .counts = &f->counts,
      .o = f->o,
      .gate = f->gate,
      .weight = f->weight,
      .y = f->y,
      .o_row_stride = width + O_GAP,
      .gate_row_stride = width + GATE_GAP,
      .y_row_stride = width + Y_GAP,
  };
}

static const sg_target_t* host_target(void) {
  const sg_target_t* target;
  assert_ok(sg_target_find("host", &target));
  return target;
}

static void run_on(const sg_gated_norm_args_t* args,
                   const sg_host_kernel_t* kernel) {
  sg_gated_norm_plan_t plan;
  assert_ok(sg__gated_norm_configure(host_target(), 0, args, &plan));
  run_blocks(kernel, &plan.params, plan.launch.grid, BLOCKS_BACKWARD);
}

static void run(const sg_gated_norm_args_t* args) {
  run_on(args, gated_norm_handle());
}

static void check_row(const fixture_t* f, const char* o, int64_t o_first,
                      int64_t gate_first, const char* y, int64_t y_first) {
  const sg_dtype_t dtype = f->geometry.activation_dtype;
  const int32_t dim = f->geometry.value_dim;
  double squares = 0.0;
  for (int32_t i = 0; i < dim; ++i) {
    squares += pow(activation_get(dtype, o, o_first + i), 2);
  }
  const double factor =
      1.0 / sqrt(squares / dim + (double)f->geometry.norm_epsilon);
  for (int32_t i = 0; i < dim; ++i) {
    const double gate = activation_get(dtype, f->gate, gate_first + i);
    const double expected = activation_get(dtype, o, o_first + i) * factor *
                            (double)f->weight[i] / (1.0 + exp(-gate));
    const double found = activation_get(dtype, y, y_first + i);
    if (!(fabs(found - expected) <= activation_tolerance(dtype, expected))) {
      fail_msg("%s dim %d element %d: %.9g, not %.9g", sg_dtype_name(dtype),
               dim, i, found, expected);
    }
  }
}

// Checks the rows of the tokens, and that nothing else of y has changed.
static void check_results(const fixture_t* f, const sg_gated_norm_args_t* args,
                          const char* o_before, const char* y_before) {
  const size_t element = sg_dtype_bytes(f->geometry.activation_dtype);
  const int32_t dim = f->geometry.value_dim;
  const char* y = args->y;
  char* expected = malloc(sizeof(f->y));
  assert_non_null(expected);
  memcpy(expected, y_before, sizeof(f->y));
  for (int64_t t = 0; t < f->counts.token_count; ++t) {
    for (int64_t head = 0; head < HEADS; ++head) {
      const int64_t y_first = t * args->y_row_stride + head * dim;
      check_row(f, o_before, t * args->o_row_stride + head * dim,
                t * args->gate_row_stride + head * dim, y, y_first);
      const size_t at = element * (size_t)y_first;
      memcpy(expected + at, y + at, element * (size_t)dim);
    }
  }
  assert_memory_equal(y, expected, sizeof(f->y));
  free(expected);
}

static void test_gated_norm_matches_formula(void** state) {
  (void)state;
  const sg_dtype_t dtypes[] = {SG_DTYPE_FP32, SG_DTYPE_BF16, SG_DTYPE_FP16};
  const int32_t dims[] = {32, 48, 128, 256};
  for (size_t i = 0; i < 3 * 4; ++i) {
    fixture_t* f = fixture_create(dtypes[i / 4], dims[i % 4]);
    fixture_t* before = fixture_create(dtypes[i / 4], dims[i % 4]);
    const sg_gated_norm_args_t args = args_of(f);
    run(&args);
    check_results(f, &args, before->o, before->y);
    assert_memory_equal(f->o, before->o, sizeof(f->o));
    free(f);
    free(before);
  }
}

static void test_gated_norm_in_place(void** state) {
  (void)state;
  fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
  fixture_t* before = fixture_create(SG_DTYPE_BF16, 128);
  sg_gated_norm_args_t args = args_of(f);
  args.y = f->o;
  args.y_row_stride = args.o_row_stride;
  run(&args);
  check_results(f, &args, before->o, before->o);
  free(f);
  free(before);
}

static void test_gated_norm_every_instruction_set(void** state) {
  (void)state;
  for (int32_t i = 0; i < SG_HOST_ISA_COUNT; ++i) {
    if (!sg__host_isa_available((sg_host_isa_t)i)) continue;
    fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
    fixture_t* before = fixture_create(SG_DTYPE_BF16, 128);
    const sg_gated_norm_args_t args = args_of(f);
    run_on(&args, sg__gated_norm_variant((sg_host_isa_t)i));
    check_results(f, &args, before->o, before->y);
    free(f);
    free(before);
  }
}

static void test_gated_norm_enqueued_on_a_stream(void** state) {
  (void)state;
  fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
  fixture_t* before = fixture_create(SG_DTYPE_BF16, 128);
  const sg_gated_norm_args_t args = args_of(f);
  sg_enqueue_t where = {.target = host_target()};
  assert_hip(hipStreamCreate(&where.stream));
  assert_ok(sg_gated_norm_enqueue(&where, &args));
  assert_hip(hipStreamSynchronize(where.stream));
  assert_hip(hipStreamDestroy(where.stream));
  check_results(f, &args, before->o, before->y);
  free(f);
  free(before);
}

// As the KDA ops leave the rows of sequences without a slot, whatever the gate.
static void test_gated_norm_zero_rows_stay_zero(void** state) {
  (void)state;
  fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
  const double gates[] = {0.0, 1e30, -1e30, INFINITY, -INFINITY, NAN};
  for (int64_t i = 0; i < 128; ++i) {
    activation_set(SG_DTYPE_BF16, f->o, i, 0.0);
    activation_set(SG_DTYPE_BF16, f->gate, i, gates[i % 6]);
  }
  const sg_gated_norm_args_t args = args_of(f);
  run(&args);
  for (int64_t i = 0; i < 128; ++i) {
    assert_true(activation_get(SG_DTYPE_BF16, f->y, i) == 0.0);
  }
  free(f);
}

// Whether the row of |token| in y is zero, and the gap behind it untouched.
static bool is_zero_row(const fixture_t* f, const sg_gated_norm_args_t* args,
                        int64_t token) {
  const uint16_t* row =
      (const uint16_t*)(const void*)f->y + token * args->y_row_stride;
  const int64_t width = args->y_row_stride - Y_GAP;
  for (int64_t i = 0; i < args->y_row_stride; ++i) {
    if (row[i] != (i < width ? 0 : 0x5a5a)) return false;
  }
  return true;
}

static void test_gated_norm_zero_tail(void** state) {
  (void)state;
  fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
  sg_gated_norm_args_t args = args_of(f);
  args.zero_tail = true;
  run(&args);
  assert_false(is_zero_row(f, &args, TOKENS - 1));
  for (int64_t t = TOKENS; t < CAPACITY; ++t) {
    assert_true(is_zero_row(f, &args, t));
  }
  free(f);
}

// The counts of a step with an error are not to be trusted.
static void test_gated_norm_step_with_error_is_zero(void** state) {
  (void)state;
  const int32_t counts[] = {0, TOKENS, -1, 1 << 30};
  for (size_t i = 0; i < 4; ++i) {
    fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
    f->counts.token_count = counts[i];
    f->counts.error_code = SG_STEP_ERROR_TOKEN_COUNT;
    const sg_gated_norm_args_t args = args_of(f);
    run(&args);
    for (int64_t t = 0; t < CAPACITY; ++t) {
      assert_true(is_zero_row(f, &args, t));
    }
    free(f);
  }
}

static void test_gated_norm_capacity_does_not_matter(void** state) {
  (void)state;
  fixture_t* exact = fixture_create(SG_DTYPE_BF16, 128);
  fixture_t* large = fixture_create(SG_DTYPE_BF16, 128);
  sg_gated_norm_args_t args = args_of(exact);
  args.capacity.tokens = TOKENS;
  run(&args);
  args = args_of(large);
  run(&args);
  assert_memory_equal(exact->y, large->y, sizeof(large->y));
  free(exact);
  free(large);
}

static void test_gated_norm_nothing_to_do(void** state) {
  (void)state;
  fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
  fixture_t* before = fixture_create(SG_DTYPE_BF16, 128);
  f->counts.token_count = 0;
  sg_gated_norm_args_t args = args_of(f);
  run(&args);
  args.capacity.tokens = 0;
  args.zero_tail = true;
  run(&args);
  assert_memory_equal(f->y, before->y, sizeof(f->y));
  free(f);
  free(before);
}

static void assert_refused(const sg_gated_norm_args_t* args,
                           sg_status_code_t code, const char* message) {
  sg_gated_norm_plan_t plan;
  const sg_status_t status =
      sg__gated_norm_configure(host_target(), 0, args, &plan);
  assert_string_equal(status.message, message);
  assert_int_equal(status.code, code);
}

static void test_gated_norm_refuses_bad_arguments(void** state) {
  (void)state;
  fixture_t* f = fixture_create(SG_DTYPE_BF16, 128);
  const sg_gated_norm_args_t good = args_of(f);
  sg_gated_norm_args_t args = good;
  args.gate = NULL;
  assert_refused(&args, SG_STATUS_INVALID_ARGUMENT, "gated_norm: gate is NULL");
  args = good;
  args.gate_row_stride = 639;
  assert_refused(&args, SG_STATUS_INVALID_ARGUMENT,
                 "gated_norm: gate_row_stride is 639, expected at least 640");
  args = good;
  args.y = f->o;
  assert_refused(&args, SG_STATUS_INVALID_ARGUMENT,
                 "gated_norm: y is o with y_row_stride 648, expected "
                 "o_row_stride 656");
  args = good;
  args.capacity.tokens = -2;
  assert_refused(&args, SG_STATUS_INVALID_ARGUMENT,
                 "gated_norm: capacity of -2 tokens");
  args = good;
  f->geometry.norm_epsilon = 0.0f;
  assert_refused(&args, SG_STATUS_INVALID_ARGUMENT,
                 "gated_norm: epsilon 0, expected a finite number above 0");
  free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gated_norm_matches_formula),
      cmocka_unit_test(test_gated_norm_in_place),
      cmocka_unit_test(test_gated_norm_every_instruction_set),
      cmocka_unit_test(test_gated_norm_enqueued_on_a_stream),
      cmocka_unit_test(test_gated_norm_zero_rows_stay_zero),
      cmocka_unit_test(test_gated_norm_zero_tail),
      cmocka_unit_test(test_gated_norm_step_with_error_is_zero),
      cmocka_unit_test(test_gated_norm_capacity_does_not_matter),
      cmocka_unit_test(test_gated_norm_nothing_to_do),
      cmocka_unit_test(test_gated_norm_refuses_bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
