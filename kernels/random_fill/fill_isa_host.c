// SPDX-License-Identifier: Apache-2.0
//
// random_fill on the host. Compiled once for each instruction set.

#include "kernels/common/host_convert.h"
#include "kernels/common/host_symbol.h"
#include "kernels/random_fill/params.h"
#include "runtime/base/dtype.h"
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

static void fill_fp32(const sg_random_fill_params_t* p, row_key_t key,
                      uint32_t first, uint32_t end, float* row) {
  for (uint32_t i = first; i < end; ++i) {
    row[i] = value_at(p, key, i);
  }
}

static void fill_bf16(const sg_random_fill_params_t* p, row_key_t key,
                      uint32_t first, uint32_t end, uint16_t* row) {
  for (uint32_t i = first; i < end; ++i) {
    row[i] = sg_bf16_from_float(value_at(p, key, i));
  }
}

static void fill_fp16(const sg_random_fill_params_t* p, row_key_t key,
                      uint32_t first, uint32_t end, uint16_t* row) {
  for (uint32_t i = first; i < end; ++i) {
    row[i] = sg_fp16_from_float(value_at(p, key, i));
  }
}

void SG_HOST_SYMBOL(sg__random_fill_run)(const void* params,
                                         const sg_host_block_t* block);

void SG_HOST_SYMBOL(sg__random_fill_run)(const void* params,
                                         const sg_host_block_t* block) {
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
