// SPDX-License-Identifier: Apache-2.0
//
// Vectors of host kernels, as wide as the instruction set that the including
// file is compiled for. The vector types of GCC and Clang are an extension,
// taken on purpose: loops over plain arrays do not keep a tile of accumulators
// in registers, and everything else here stays independent of the processor.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_VECTOR_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_VECTOR_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define SG_VECTOR_BYTES 64
#define SG_TILE_ROWS 8
#elif defined(__AVX2__)
#define SG_VECTOR_BYTES 32
#define SG_TILE_ROWS 4
#else
#define SG_VECTOR_BYTES 16
#define SG_TILE_ROWS 4
#endif

enum {
  SG_VECTOR_FLOATS = SG_VECTOR_BYTES / 4,
  // A tile of SG_TILE_ROWS x 2 accumulators, its two columns and one
  // broadcast fit the registers, and hide the latency of a multiply-add.
  SG_TILE_VECTORS = 2,
  SG_TILE_COLUMNS = SG_TILE_VECTORS * SG_VECTOR_FLOATS,
  // Rows and columns that are transposed at once.
  SG_TRANSPOSE_FLOATS = SG_VECTOR_FLOATS == 16 ? 16 : 4,
};

typedef float sg_vector_t __attribute__((vector_size(SG_VECTOR_BYTES)));
typedef float sg_vector_unaligned_t
    __attribute__((vector_size(SG_VECTOR_BYTES), aligned(4), may_alias));

static inline sg_vector_t sg_vector_load(const float* source) {
  return *(const sg_vector_unaligned_t*)source;
}

static inline void sg_vector_store(float* target, sg_vector_t value) {
  *(sg_vector_unaligned_t*)target = value;
}

static inline sg_vector_t sg_vector_splat(float value) {
  sg_vector_t zero = {0};
  return zero + value;
}

// The sum of all lanes, pairwise.
static inline float sg_vector_sum(sg_vector_t value) {
  float lane[SG_VECTOR_FLOATS];
  sg_vector_store(lane, value);
#pragma GCC unroll 4
  for (int32_t width = SG_VECTOR_FLOATS / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
    for (int32_t i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return lane[0];
}

// Sum of a[i] * b[i]; |count| is a multiple of 16.
static inline float sg_dot(const float* a, const float* b, int32_t count) {
  sg_vector_t sum = {0};
  for (int32_t i = 0; i < count; i += SG_VECTOR_FLOATS) {
    sum += sg_vector_load(a + i) * sg_vector_load(b + i);
  }
  return sg_vector_sum(sum);
}

// The same, left as 16 partial sums, those of elements 16 apart.
static inline void sg_dot_lanes(const float* a, const float* b, int32_t count,
                                float lanes[16]) {
  enum { VECTORS = 16 / SG_VECTOR_FLOATS };
  sg_vector_t sum[VECTORS] = {{0}};
  for (int32_t i = 0; i < count; i += 16) {
#pragma GCC unroll 4
    for (int32_t j = 0; j < VECTORS; ++j) {
      const int32_t at = i + j * SG_VECTOR_FLOATS;
      sum[j] += sg_vector_load(a + at) * sg_vector_load(b + at);
    }
  }
#pragma GCC unroll 4
  for (int32_t j = 0; j < VECTORS; ++j) {
    sg_vector_store(lanes + j * SG_VECTOR_FLOATS, sum[j]);
  }
}

// sum[i][j] += sum over d < depth of a[i * a_row + d * a_depth] *
// b[d * b_row + j], with j over |vectors| (1 or 2) vectors of columns. The
// strides of |a| and |vectors| should be constants.
static inline __attribute__((always_inline)) void sg_tile_multiply(
    sg_vector_t sum[SG_TILE_ROWS][SG_TILE_VECTORS], int32_t vectors,
    int32_t depth, const float* restrict a, ptrdiff_t a_row, ptrdiff_t a_depth,
    const float* restrict b, ptrdiff_t b_row) {
  for (int32_t d = 0; d < depth; ++d) {
    sg_vector_t column[SG_TILE_VECTORS];
#pragma GCC unroll 2
    for (int32_t j = 0; j < vectors; ++j) {
      column[j] = sg_vector_load(b + j * SG_VECTOR_FLOATS);
    }
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 2
      for (int32_t j = 0; j < vectors; ++j) {
        sum[i][j] += a[i * a_row] * column[j];
      }
    }
    a += a_depth;
    b += b_row;
  }
}

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

static inline void sg_transpose_4x4(const float* source, ptrdiff_t source_row,
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

static inline void sg_transpose_16x16(const float* source, ptrdiff_t source_row,
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

#endif  // SG_VECTOR_BYTES == 64

// target[j][i] = source[i][j] for |rows| x |columns| of the source, multiples
// of what is transposed at once; strides are in elements.
static inline void sg_transpose(const float* restrict source,
                                ptrdiff_t source_row, float* restrict target,
                                ptrdiff_t target_row, int32_t rows,
                                int32_t columns) {
  for (int32_t j = 0; j < columns; j += SG_TRANSPOSE_FLOATS) {
    for (int32_t i = 0; i < rows; i += SG_TRANSPOSE_FLOATS) {
      const float* from = source + i * source_row + j;
      float* to = target + j * target_row + i;
#if SG_VECTOR_BYTES == 64
      sg_transpose_16x16(from, source_row, to, target_row);
#else
      sg_transpose_4x4(from, source_row, to, target_row);
#endif
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

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_VECTOR_H_
