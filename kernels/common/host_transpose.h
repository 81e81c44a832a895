// SPDX-License-Identifier: Apache-2.0
//
// Transposes of host kernels, by blocks: of 16 x 16 floats in vectors of 16,
// of 4 x 4 in narrower vectors and in plain C.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_TRANSPOSE_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_TRANSPOSE_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/common/host_vector.h"

// Rows and columns of a block.
enum { SG_TRANSPOSE_BLOCK = SG_VECTOR_FLOATS == 16 ? 16 : 4 };

#if SG_VECTOR_BYTES == 64

// Lanes of |a| (0 to 15) and |b| (16 to 31), alternating, from the lower or
// from the upper halves.
#if defined(__clang__)
#define SG_ZIP_LOW(a, b)                                                     \
  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, \
                          22, 7, 23)
#define SG_ZIP_HIGH(a, b)                                                     \
  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, \
                          14, 30, 15, 31)
#else
typedef int32_t sg_vector_index_t __attribute__((vector_size(SG_VECTOR_BYTES)));
#define SG_ZIP_LOW(a, b)                                                      \
  __builtin_shuffle(a, b,                                                     \
                    (sg_vector_index_t){0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, \
                                        21, 6, 22, 7, 23})
#define SG_ZIP_HIGH(a, b)                                                     \
  __builtin_shuffle(a, b,                                                     \
                    (sg_vector_index_t){8, 24, 9, 25, 10, 26, 11, 27, 12, 28, \
                                        13, 29, 14, 30, 15, 31})
#endif

// One step of zipping row i with row i + 8 moves the highest bit of a row's
// number into the lowest of its lanes'; four such steps transpose.
static inline void sg_zip_16x16(const sg_vector_t source[16],
                                sg_vector_t target[16]) {
#pragma GCC unroll 8
  for (int32_t i = 0; i < 8; ++i) {
    target[2 * i] = SG_ZIP_LOW(source[i], source[i + 8]);
    target[2 * i + 1] = SG_ZIP_HIGH(source[i], source[i + 8]);
  }
}

static inline void sg_transpose_block(const float* source, ptrdiff_t source_row,
                                      float* target, ptrdiff_t target_row) {
  sg_vector_t a[16], b[16];
#pragma GCC unroll 16
  for (int32_t i = 0; i < 16; ++i)
    a[i] = sg_vector_load(source + i * source_row);
  sg_zip_16x16(a, b);
  sg_zip_16x16(b, a);
  sg_zip_16x16(a, b);
  sg_zip_16x16(b, a);
#pragma GCC unroll 16
  for (int32_t i = 0; i < 16; ++i)
    sg_vector_store(target + i * target_row, a[i]);
}

#elif SG_HOST_HAS_EXTENSIONS

typedef float sg_quad_t __attribute__((vector_size(16)));
typedef float sg_quad_unaligned_t
    __attribute__((vector_size(16), aligned(4), may_alias));

// Lanes of |a| (0 to 3) and |b| (4 to 7).
#if defined(__clang__)
#define SG_QUAD_SHUFFLE(a, b, i, j, k, l) \
  __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int32_t sg_quad_index_t __attribute__((vector_size(16)));
#define SG_QUAD_SHUFFLE(a, b, i, j, k, l) \
  __builtin_shuffle(a, b, (sg_quad_index_t){i, j, k, l})
#endif

static inline void sg_transpose_block(const float* source, ptrdiff_t source_row,
                                      float* target, ptrdiff_t target_row) {
  const sg_quad_t a = *(const sg_quad_unaligned_t*)source;
  const sg_quad_t b = *(const sg_quad_unaligned_t*)(source + source_row);
  const sg_quad_t c = *(const sg_quad_unaligned_t*)(source + 2 * source_row);
  const sg_quad_t d = *(const sg_quad_unaligned_t*)(source + 3 * source_row);
  const sg_quad_t ab_low = SG_QUAD_SHUFFLE(a, b, 0, 4, 1, 5);
  const sg_quad_t cd_low = SG_QUAD_SHUFFLE(c, d, 0, 4, 1, 5);
  const sg_quad_t ab_high = SG_QUAD_SHUFFLE(a, b, 2, 6, 3, 7);
  const sg_quad_t cd_high = SG_QUAD_SHUFFLE(c, d, 2, 6, 3, 7);
  *(sg_quad_unaligned_t*)target = SG_QUAD_SHUFFLE(ab_low, cd_low, 0, 1, 4, 5);
  *(sg_quad_unaligned_t*)(target + target_row) =
      SG_QUAD_SHUFFLE(ab_low, cd_low, 2, 3, 6, 7);
  *(sg_quad_unaligned_t*)(target + 2 * target_row) =
      SG_QUAD_SHUFFLE(ab_high, cd_high, 0, 1, 4, 5);
  *(sg_quad_unaligned_t*)(target + 3 * target_row) =
      SG_QUAD_SHUFFLE(ab_high, cd_high, 2, 3, 6, 7);
}

#else

static inline void sg_transpose_block(const float* source, ptrdiff_t source_row,
                                      float* target, ptrdiff_t target_row) {
  for (int32_t i = 0; i < 4; ++i) {
    for (int32_t j = 0; j < 4; ++j) {
      target[j * target_row + i] = source[i * source_row + j];
    }
  }
}

#endif

// target[j][i] = source[i][j] for |rows| x |columns| of the source, multiples
// of a block's; strides are in elements.
static inline void sg_transpose(const float* restrict source,
                                ptrdiff_t source_row, float* restrict target,
                                ptrdiff_t target_row, int32_t rows,
                                int32_t columns) {
  for (int32_t j = 0; j < columns; j += SG_TRANSPOSE_BLOCK) {
    for (int32_t i = 0; i < rows; i += SG_TRANSPOSE_BLOCK) {
      const float* from = source + i * source_row + j;
      float* to = target + j * target_row + i;
      sg_transpose_block(from, source_row, to, target_row);
    }
  }
}

// sums[i] = the sum of row i of |lanes|, for 16 rows of 16, all in the same
// order.
static inline void sg_sum_rows(const float lanes[16][16],
                               float* restrict sums) {
  float columns[16][16];
  sg_transpose(&lanes[0][0], 16, &columns[0][0], 16, 16, 16);
  for (int32_t width = 8; width > 0; width /= 2) {
    for (int32_t i = 0; i < width; ++i) {
      for (int32_t j = 0; j < 16; ++j) columns[i][j] += columns[i + width][j];
    }
  }
  memcpy(sums, columns[0], sizeof(columns[0]));
}

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_TRANSPOSE_H_
