// SPDX-License-Identifier: Apache-2.0
//
// Vectors of host kernels, as wide as the instruction set that the including
// file is compiled for. The vector types of GCC and Clang are an extension,
// taken on purpose: loops over plain arrays do not keep a tile of accumulators
// in registers, and everything else here stays independent of the processor.
//
// Kernels load vectors, store them, sum their lanes, set them to {0} and use
// the operators + - * and their assignments on vectors and on a float with a
// vector. All of that means the same for a float alone, and to compilers
// without the extension a vector is one: of a single lane, in plain C11.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_VECTOR_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_VECTOR_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/common/host_compiler.h"

#if !SG_HOST_HAS_EXTENSIONS
#define SG_VECTOR_BYTES 4
#elif defined(__AVX512F__)
#define SG_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SG_VECTOR_BYTES 32
#else
#define SG_VECTOR_BYTES 16
#endif

enum {
  SG_VECTOR_FLOATS = SG_VECTOR_BYTES / 4,
  // A tile of SG_TILE_ROWS x 2 accumulators, its two columns and one
  // broadcast fit the registers, and hide the latency of a multiply-add.
  // Single lanes make a tile of the same size as the narrowest vectors do.
  SG_TILE_ROWS = SG_VECTOR_FLOATS == 16 ? 8 : 4,
  SG_TILE_VECTORS = SG_VECTOR_FLOATS == 1 ? 8 : 2,
  SG_TILE_COLUMNS = SG_TILE_VECTORS * SG_VECTOR_FLOATS,
};

#if SG_HOST_HAS_EXTENSIONS

typedef float sg_vector_t __attribute__((vector_size(SG_VECTOR_BYTES)));
typedef float sg_vector_unaligned_t
    __attribute__((vector_size(SG_VECTOR_BYTES), aligned(4), may_alias));

static inline sg_vector_t sg_vector_load(const float* source) {
  return *(const sg_vector_unaligned_t*)source;
}

static inline void sg_vector_store(float* target, sg_vector_t value) {
  *(sg_vector_unaligned_t*)target = value;
}

#else

typedef float sg_vector_t;

static inline sg_vector_t sg_vector_load(const float* source) {
  return *source;
}

static inline void sg_vector_store(float* target, sg_vector_t value) {
  *target = value;
}

#endif

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
  sg_vector_t sum[VECTORS] = {0};
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
// b[d * b_row + j], with j over |vectors| vectors of columns. The
// strides of |a| and |vectors| should be constants.
static SG_ALWAYS_INLINE void sg_tile_multiply(
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

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_VECTOR_H_
