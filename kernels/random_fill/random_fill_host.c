// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "kernels/random_fill/random_fill.h"
#include "runtime/hip/host_kernel.h"

typedef struct row_key_t {
  uint32_t first;
  uint32_t second;
} row_key_t;

static row_key_t key_of_row(uint64_t seed, int64_t row) {
  uint64_t x = seed + (uint64_t)row * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return (row_key_t){.first = (uint32_t)x, .second = (uint32_t)(x >> 32)};
}

// z * step + offset. Free of branches and calls, so that the loops below become
// vector code.
static inline float value_at(const sg_random_fill_params_t* p, row_key_t key,
                             uint32_t column) {
  uint32_t h = column * 0x9e3779b1u + key.first;
  h ^= h >> 16;
  h *= 0x21f0aaadu;
  h ^= h >> 15;
  h *= 0xd35a2d97u;
  h ^= h >> 15;
  h ^= key.second;
  uint32_t pairs = (h & 0x00ff00ffu) + ((h >> 8) & 0x00ff00ffu);
  int32_t z = (int32_t)((pairs & 0xffffu) + (pairs >> 16)) - 510;
  return (float)z * p->step + p->offset;
}

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static void fill_fp32(const sg_random_fill_params_t* p, row_key_t key,
                      uint32_t first, uint32_t end, float* row) {
  for (uint32_t i = first; i < end; ++i) {
    row[i] = value_at(p, key, i);
  }
}

static void fill_bf16(const sg_random_fill_params_t* p, row_key_t key,
                      uint32_t first, uint32_t end, uint16_t* row) {
  for (uint32_t i = first; i < end; ++i) {
    uint32_t bits = bits_of(value_at(p, key, i));
    row[i] = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
}

static void fill_fp16(const sg_random_fill_params_t* p, row_key_t key,
                      uint32_t first, uint32_t end, uint16_t* row) {
  for (uint32_t i = first; i < end; ++i) {
    uint32_t bits = bits_of(value_at(p, key, i));
    uint32_t magnitude = bits & 0x7fffffffu;
    float absolute;
    memcpy(&absolute, &magnitude, sizeof(absolute));
    // Below 2^-14 the result is subnormal: adding 0.5 leaves, in the low bits,
    // the value in units of 2^-24, rounded by the addition.
    uint32_t subnormal = bits_of(absolute + 0.5f) - 0x3f000000u;
    uint32_t normal =
        (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
    half = magnitude >= (143u << 23) ? 0x7c00u : half;
    row[i] = (uint16_t)(half | ((bits >> 16) & 0x8000u));
  }
}

static void run_block(const void* params, const sg_host_block_t* block) {
  const sg_random_fill_params_t* p = params;
  uint32_t column_tiles =
      (uint32_t)(((int64_t)p->row_elements + p->columns_per_block - 1) /
                 p->columns_per_block);
  int64_t first = (int64_t)(block->index % column_tiles) * p->columns_per_block;
  int64_t end = first + p->columns_per_block;
  if (end > p->row_elements) end = p->row_elements;
  int64_t row = (int64_t)(block->index / column_tiles) * p->rows_per_block;
  int64_t row_end = row + p->rows_per_block;
  if (row_end > p->rows) row_end = p->rows;
  for (; row < row_end; ++row) {
    row_key_t key = key_of_row(p->seed, row);
    int64_t offset = row * p->row_stride;
    switch ((sg_dtype_t)p->dtype) {
      case SG_DTYPE_FP32:
        fill_fp32(p, key, (uint32_t)first, (uint32_t)end,
                  (float*)p->data + offset);
        break;
      case SG_DTYPE_BF16:
        fill_bf16(p, key, (uint32_t)first, (uint32_t)end,
                  (uint16_t*)p->data + offset);
        break;
      case SG_DTYPE_FP16:
        fill_fp16(p, key, (uint32_t)first, (uint32_t)end,
                  (uint16_t*)p->data + offset);
        break;
    }
  }
}

const void* random_fill_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "random_fill",
      .params_bytes = sizeof(sg_random_fill_params_t),
      .run_block = run_block,
  };
  return &kernel;
}
