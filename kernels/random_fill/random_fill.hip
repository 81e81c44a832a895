// SPDX-License-Identifier: Apache-2.0
//
// random_fill on a GPU: threads side by side along a row.

#include "kernels/common/device_math.h"
#include "kernels/random_fill/params.h"

enum { THREADS = 256 };

typedef struct row_key_t {
  uint32_t first;
  uint32_t second;
} row_key_t;

SG_DEVICE row_key_t key_of_row(uint64_t seed, int64_t row) {
  uint64_t x = seed + (uint64_t)row * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return row_key_t{(uint32_t)x, (uint32_t)(x >> 32)};
}

// z * step + offset.
SG_DEVICE float value_at(const sg_random_fill_params_t* p, row_key_t key,
                         uint32_t column) {
  uint32_t h = column * 0x9e3779b1u + key.first;
  h ^= h >> 16;
  h *= 0x21f0aaadu;
  h ^= h >> 15;
  h *= 0xd35a2d97u;
  h ^= h >> 15;
  h ^= key.second;
  const uint32_t pairs = (h & 0x00ff00ffu) + ((h >> 8) & 0x00ff00ffu);
  const int32_t z = (int32_t)((pairs & 0xffffu) + (pairs >> 16)) - 510;
  return (float)z * p->step + p->offset;
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 1)
    random_fill(sg_random_fill_params_t params) {
  const sg_random_fill_params_t* p = &params;
  const uint32_t column_tiles =
      (uint32_t)(((int64_t)p->row_elements + p->columns_per_block - 1) /
                 p->columns_per_block);
  const int64_t first =
      (int64_t)(sg_block() % column_tiles) * p->columns_per_block;
  int64_t end = first + p->columns_per_block;
  end = end < p->row_elements ? end : p->row_elements;
  int64_t row = (int64_t)(sg_block() / column_tiles) * p->rows_per_block;
  int64_t row_end = row + p->rows_per_block;
  row_end = row_end < p->rows ? row_end : p->rows;
  // One index over rows and columns keeps all threads busy in short rows too.
  const int64_t width = end - first;
  const int64_t count = (row_end - row) * width;
  for (int64_t i = sg_thread(); i < count; i += THREADS) {
    const int64_t r = row + i / width;
    const int64_t column = first + i % width;
    sg_store_element(p->dtype, p->data, r * p->row_stride + column,
                     value_at(p, key_of_row(p->seed, r), (uint32_t)column));
  }
}

extern "C" const void* random_fill_handle(void) {
  return sg_kernel_handle(random_fill);
}
