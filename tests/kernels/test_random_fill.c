// SPDX-License-Identifier: Apache-2.0
//
// random_fill on the device, element by element against the formula of its
// params.h computed in double precision, where nothing is rounded before the
// end.

#include "kernels/random_fill/random_fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= x >> 15;
  x *= 0xd35a2d97u;
  return x ^ (x >> 15);
}

static int expected_z(uint64_t seed, uint64_t row, uint32_t column) {
  uint64_t key = seed + row * 0x9e3779b97f4a7c15u;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  key ^= key >> 31;
  const uint32_t h =
      mix(column * 0x9e3779b1u + (uint32_t)key) ^ (uint32_t)(key >> 32);
  return (int)((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)) - 510;
}

// |value| with |bits| significant bits, to nearest, ties to even.
static double round_to(double value, int bits) {
  int exponent;
  const double fraction = frexp(value, &exponent);
  return ldexp(nearbyint(ldexp(fraction, bits)), exponent - bits);
}

static double decode(sg_dtype_t dtype, const void* data, size_t index) {
  if (dtype == SG_DTYPE_FP32) return ((const float*)data)[index];
  const uint16_t half = ((const uint16_t*)data)[index];
  if (dtype == SG_DTYPE_BF16) {
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  const int exponent = half >> 10 & 31;
  const double fraction = half & 1023;
  const double magnitude = exponent == 0
                               ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

static double narrow(sg_dtype_t dtype, double value) {
  const double single = round_to(value, 24);
  if (dtype == SG_DTYPE_FP32) return single;
  if (dtype == SG_DTYPE_BF16) return round_to(single, 8);
  // Below 2^-14 half precision has a fixed step.
  if (fabs(single) < 0x1p-14) return ldexp(nearbyint(ldexp(single, 24)), -24);
  return round_to(single, 11);
}

enum { POISON = 0xee };

// Fills a poisoned tensor on the device and brings it back.
static unsigned char* fill(const sg_random_fill_args_t* args, size_t bytes) {
  const sg_target_t* target;
  assert_ok(sg_target_of_device(0, &target));
  hipStream_t stream;
  assert_hip(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  void* data;
  assert_hip(hipMalloc(&data, bytes));
  assert_hip(hipMemsetAsync(data, POISON, bytes, stream));
  sg_random_fill_args_t placed = *args;
  placed.data = data;
  const sg_enqueue_t where = {.stream = stream, .target = target, .layer = -1};
  assert_ok(sg_random_fill_enqueue(&where, &placed));
  assert_hip(hipStreamSynchronize(stream));
  unsigned char* copy = malloc(bytes);
  assert_non_null(copy);
  assert_hip(hipMemcpy(copy, data, bytes, hipMemcpyDeviceToHost));
  assert_hip(hipFree(data));
  assert_hip(hipStreamDestroy(stream));
  return copy;
}

static void check_tensor(const sg_random_fill_args_t* args) {
  const size_t element_bytes = sg_dtype_bytes(args->dtype);
  const size_t bytes = (size_t)(args->rows * args->row_stride) * element_bytes;
  unsigned char* data = fill(args, bytes);
  const double step = round_to((double)(args->scale / SG_RANDOM_DEVIATION), 14);
  for (int64_t row = 0; row < args->rows; ++row) {
    for (int64_t i = 0; i < args->row_stride; ++i) {
      const size_t index = (size_t)(row * args->row_stride + i);
      if (i >= args->row_elements) {
        assert_int_equal(data[index * element_bytes], POISON);
        continue;
      }
      const int z = expected_z(args->seed, (uint64_t)row, (uint32_t)i);
      const double expected =
          narrow(args->dtype, z * step + (double)args->offset);
      const double found = decode(args->dtype, data, index);
      if (found != expected) {
        fail_msg("%s [%lld, %lld]: expected %.17g, found %.17g",
                 sg_dtype_name(args->dtype), (long long)row, (long long)i,
                 expected, found);
      }
    }
  }
  free(data);
}

static void test_elements_are_the_formula(void** state) {
  (void)state;
  // Short rows share a block, long ones take several.
  static const int64_t shapes[][3] = {{1, 1, 1},         {5, 2, 2},
                                      {37, 130, 160},    {3, 16384, 16384},
                                      {2, 40001, 40010}, {9000, 2, 3}};
  static const float scales[][2] = {
      {1, 0}, {0.7f, 1.96f}, {1.3f, -4.6f}, {1e-6f, 0}, {0, 0.25f}};
  for (int dtype = SG_DTYPE_FP32; dtype <= SG_DTYPE_FP16; ++dtype) {
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
      const float* scale = scales[(i + (size_t)dtype) % 5];
      const sg_random_fill_args_t args = {.dtype = (sg_dtype_t)dtype,
                                          .rows = shapes[i][0],
                                          .row_elements = shapes[i][1],
                                          .row_stride = shapes[i][2],
                                          .seed = 0x123456789abcdef + i,
                                          .scale = scale[0],
                                          .offset = scale[1]};
      check_tensor(&args);
    }
  }
}

// A sum of four uniform numbers has mean 0, variance 1 and kurtosis 2.7. With
// N = 2^20 samples their standard errors are below 0.001, 0.0013 and 0.004;
// the bounds are five of them.
static void test_distribution(void** state) {
  (void)state;
  const int64_t rows = 64, columns = 16384;
  const sg_random_fill_args_t args = {.dtype = SG_DTYPE_FP32,
                                      .rows = rows,
                                      .row_elements = columns,
                                      .row_stride = columns,
                                      .seed = 5,
                                      .scale = 1};
  const size_t count = (size_t)(rows * columns);
  unsigned char* data = fill(&args, count * sizeof(float));
  double mean = 0, square = 0, fourth = 0, next = 0, below = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = decode(SG_DTYPE_FP32, data, i);
    mean += x;
    square += x * x;
    fourth += x * x * x * x;
    if (i > 0) next += x * decode(SG_DTYPE_FP32, data, i - 1);
    if (i >= (size_t)columns) {
      below += x * decode(SG_DTYPE_FP32, data, i - (size_t)columns);
    }
  }
  free(data);
  const double n = (double)count;
  assert_true(fabs(mean / n) < 0.005);
  assert_true(fabs(square / n - 1) < 0.0065);
  assert_true(fabs(fourth / n - 2.7) < 0.02);
  // Neighbours in a row and a column are not correlated.
  assert_true(fabs(next / n) < 0.005);
  assert_true(fabs(below / n) < 0.005);
}

static sg_status_t enqueue(int64_t rows, int64_t row_elements, int64_t stride,
                           float scale, float offset) {
  const sg_target_t* target;
  assert_ok(sg_target_of_device(0, &target));
  const sg_enqueue_t where = {.target = target};
  const sg_random_fill_args_t args = {.rows = rows,
                                      .row_elements = row_elements,
                                      .row_stride = stride,
                                      .scale = scale,
                                      .offset = offset};
  return sg_random_fill_enqueue(&where, &args);
}

static void test_bad_arguments(void** state) {
  (void)state;
  assert_ok(enqueue(0, 5, 5, 1, 0));
  assert_ok(enqueue(5, 0, 0, 1, 0));
  assert_code(enqueue(-1, 5, 5, 1, 0), SG_STATUS_INVALID_ARGUMENT);
  assert_code(enqueue(1, -5, 5, 1, 0), SG_STATUS_INVALID_ARGUMENT);
  assert_code(enqueue(1, 5, 4, 1, 0), SG_STATUS_INVALID_ARGUMENT);
  assert_code(enqueue(1, (int64_t)1 << 31, (int64_t)1 << 31, 1, 0),
              SG_STATUS_INVALID_ARGUMENT);
  assert_code(enqueue(1, 5, 5, NAN, 0), SG_STATUS_INVALID_ARGUMENT);
  assert_code(enqueue(1, 5, 5, 1, INFINITY), SG_STATUS_INVALID_ARGUMENT);
}

int main(void) {
  int device_count;
  if (hipGetDeviceCount(&device_count) != hipSuccess || device_count == 0) {
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_elements_are_the_formula),
      cmocka_unit_test(test_distribution),
      cmocka_unit_test(test_bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
