// SPDX-License-Identifier: Apache-2.0

#include "tests/kernels/kda_check.h"

#include <math.h>
#include <string.h>
#include "tests/check.h"

typedef struct error_sum_t {
  double difference;
  double expected;
} error_sum_t;

static void add_error(error_sum_t* sum, double actual, double expected) {
  const double difference = actual - expected;
  sum->difference +=
      isfinite(actual) ? difference * difference : (double)INFINITY;
  sum->expected += expected * expected;
}

static double relative_error(error_sum_t sum) {
  if (sum.difference == 0.0) return 0.0;
  return sqrt(sum.difference / sum.expected);
}

static error_sum_t state_error(const kda_run_t* run,
                               const kda_expected_t* expected) {
  const sg_kda_geometry_t* geometry = &run->test.geometry;
  error_sum_t sum = {0};
  const double* state = expected->states;
  for (int32_t n = 0; n < run->test.sequence_count; ++n) {
    const bool live = kda_case_is_live(&run->test, n);
    for (int64_t h = 0; h < geometry->value_heads; ++h) {
      for (int64_t v = 0; v < geometry->value_dim; ++v) {
        for (int64_t k = 0; k < geometry->key_dim; ++k, ++state) {
          if (live) add_error(&sum, kda_run_state(run, n, h, v, k), *state);
        }
      }
    }
  }
  return sum;
}

kda_errors_t kda_errors_of(const kda_run_t* run,
                           const kda_expected_t* expected) {
  const sg_kda_geometry_t* geometry = &run->test.geometry;
  error_sum_t sum = {0};
  const double* o = expected->o;
  for (int64_t t = 0; t < kda_case_tokens(&run->test); ++t) {
    for (int64_t h = 0; h < geometry->value_heads; ++h) {
      for (int64_t v = 0; v < geometry->value_dim; ++v, ++o) {
        add_error(&sum, kda_run_output(run, t, h, v), *o);
      }
    }
  }
  return (kda_errors_t){
      .o = relative_error(sum),
      .state = relative_error(state_error(run, expected)),
  };
}

static bool is_live_slot(const kda_case_t* test, int32_t slot) {
  for (int32_t n = 0; n < test->sequence_count; ++n) {
    if (test->slots[n] == slot && kda_case_is_live(test, n)) return true;
  }
  return false;
}

static void check_states_untouched(const kda_run_t* run) {
  const kda_case_t* test = &run->test;
  const size_t element = sg_dtype_bytes(test->geometry.state_dtype);
  const size_t stride = element * (size_t)run->args.tensors.state_slot_stride;
  const size_t used = stride - element * (size_t)test->slot_padding;
  for (int32_t slot = 0; slot < test->slot_count; ++slot) {
    const bool live = test->error_code == 0 && is_live_slot(test, slot);
    const size_t first = (size_t)slot * stride + (live ? used : 0);
    assert_memory_equal((const char*)run->state.data + first,
                        (const char*)run->initial_state.data + first,
                        stride - (live ? used : 0));
  }
}

static void check_bytes(const unsigned char* bytes, size_t count,
                        unsigned char value) {
  for (size_t i = 0; i < count; ++i) assert_int_equal(bytes[i], value);
}

// Whether row |token| belongs to a sequence with a slot.
static bool is_live_row(const kda_case_t* test, int64_t token) {
  int64_t end = 0;
  for (int32_t n = 0; n < test->sequence_count; ++n) {
    end += test->lens[n];
    if (token < end) return kda_case_is_live(test, n);
  }
  return false;
}

static void check_outputs_untouched(const kda_run_t* run) {
  const kda_case_t* test = &run->test;
  const sg_kda_geometry_t* geometry = &test->geometry;
  const size_t bytes = sg_dtype_bytes(geometry->activation_dtype);
  const size_t width =
      bytes * (size_t)(geometry->value_heads * geometry->value_dim);
  const size_t stride = bytes * (size_t)run->args.tensors.o_row_stride;
  const unsigned char* row = run->o.data;
  for (int64_t t = 0; t < run->args.capacity.tokens; ++t, row += stride) {
    const bool beyond = t >= kda_case_tokens(test);
    const bool zeroed = test->error_code != 0 || (beyond && test->zero_tail) ||
                        (!beyond && !is_live_row(test, t));
    if (zeroed) {
      check_bytes(row, width, 0);
    } else if (beyond) {
      check_bytes(row, width, 0xff);
    }
    check_bytes(row + width, stride - width, 0xff);
  }
}

void kda_check_untouched(const kda_run_t* run) {
  check_states_untouched(run);
  check_outputs_untouched(run);
}

// Half a unit in the last place of bf16 is 2^-9 = 2e-3 of a number, of fp16
// 2^-12; nothing else is rounded to them. In fp32 sums of 256 products and of
// as many tokens as the state remembers give a few 1e-7 to 1e-6.
static double default_tolerance(sg_dtype_t dtype) {
  switch (dtype) {
    case SG_DTYPE_BF16:
      return 5e-3;
    case SG_DTYPE_FP16:
      return 6e-4;
    default:
      return 1e-5;
  }
}

// Rounding a state to bf16 is an error of up to 2^-8, uniform in a unit of
// 2^-7 of the power of 2 below each element: 1.7e-3 in the mean.
static double state_tolerance(const sg_kda_geometry_t* geometry) {
  return kda_run_state_tolerance(geometry->activation_dtype) +
         (geometry->state_dtype == SG_DTYPE_BF16 ? 2e-3 : 0.0);
}

kda_errors_t kda_check_step(const kda_case_t* test, double tolerance) {
  kda_inputs_t inputs;
  kda_expected_t expected;
  kda_run_t run;
  kda_inputs_initialize(test, &inputs);
  kda_expected_initialize(test, &inputs, &expected);
  kda_run_initialize(test, &inputs, &run);
  kda_run_step(&run);
  kda_check_untouched(&run);
  const kda_errors_t errors = kda_errors_of(&run, &expected);
  const sg_dtype_t dtype = test->geometry.activation_dtype;
  const double limit = tolerance > 0.0 ? tolerance : default_tolerance(dtype);
  const double state_limit =
      tolerance > 0.0 ? tolerance : state_tolerance(&test->geometry);
  if (!(errors.o <= limit) || !(errors.state <= state_limit)) {
    fail_msg("errors %.3e of o (limit %.1e), %.3e of the state (limit %.1e)",
             errors.o, limit, errors.state, state_limit);
  }
  kda_run_deinitialize(&run);
  kda_expected_deinitialize(&expected);
  kda_inputs_deinitialize(&inputs);
  return errors;
}

void kda_check_same_outputs(const kda_run_t* a, const kda_run_t* b,
                            int64_t tokens) {
  const sg_kda_geometry_t* geometry = &a->test.geometry;
  const size_t bytes = sg_dtype_bytes(geometry->activation_dtype);
  const size_t width =
      bytes * (size_t)(geometry->value_heads * geometry->value_dim);
  const size_t a_stride = bytes * (size_t)a->args.tensors.o_row_stride;
  const size_t b_stride = bytes * (size_t)b->args.tensors.o_row_stride;
  for (size_t t = 0; t < (size_t)tokens; ++t) {
    assert_memory_equal((const char*)a->o.data + t * a_stride,
                        (const char*)b->o.data + t * b_stride, width);
  }
}

void kda_check_same_states(const kda_run_t* a, const kda_run_t* b) {
  const size_t element = sg_dtype_bytes(a->test.geometry.state_dtype);
  const size_t a_stride = element * (size_t)a->args.tensors.state_slot_stride;
  const size_t b_stride = element * (size_t)b->args.tensors.state_slot_stride;
  for (int32_t n = 0; n < a->test.sequence_count; ++n) {
    if (!kda_case_is_live(&a->test, n)) continue;
    assert_memory_equal(
        (const char*)a->state.data + (size_t)a->test.slots[n] * a_stride,
        (const char*)b->state.data + (size_t)b->test.slots[n] * b_stride,
        a_stride - element * (size_t)a->test.slot_padding);
  }
}

void kda_check_same_steps(const kda_case_t* a, const kda_case_t* b) {
  kda_inputs_t inputs;
  kda_run_t run_a, run_b;
  kda_inputs_initialize(a, &inputs);
  kda_run_initialize(a, &inputs, &run_a);
  kda_run_initialize(b, &inputs, &run_b);
  kda_run_step(&run_a);
  kda_run_step(&run_b);
  kda_check_untouched(&run_a);
  kda_check_untouched(&run_b);
  kda_check_same_outputs(&run_a, &run_b, kda_case_tokens(a));
  kda_check_same_states(&run_a, &run_b);
  kda_run_deinitialize(&run_a);
  kda_run_deinitialize(&run_b);
  kda_inputs_deinitialize(&inputs);
}
