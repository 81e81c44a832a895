// SPDX-License-Identifier: Apache-2.0
//
// The instructions of AMX and AVX-512 BF16 that the kernels use, in C, as
// Intel's manual describes them (volume 2, TDPBF16PS and VCVTNE2PS2BF16).
// Compared with an Emerald Rapids: the same bits in 1.5 million sums and 6.4
// million conversions of random numbers of every kind, NaNs of other bits
// apart.
//
// Included ahead of a kernel's source, in place of the compiler's own. Tiles
// that are used before they are configured, or configured in another way than
// the kernels do, end the program.

#ifndef STEPGRAPH_TESTS_KERNELS_AMX_IN_C_H_
#define STEPGRAPH_TESTS_KERNELS_AMX_IN_C_H_

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/host_math.h"

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_WORDS = 16, AMX_ROW_BYTES = 64 };

// Rows of 32-bit words: a number of fp32, or two of bf16, the first one low.
typedef uint32_t amx_tile_t[AMX_ROWS][AMX_WORDS];

static _Thread_local struct {
  bool is_configured;
  amx_tile_t tile[AMX_TILES];
} amx_unit;

// Both sets of instructions take what is too small to be normal for zero.
static inline float amx_flush(float value) {
  const uint32_t bits = sg_float_bits(value);
  return sg_float_from_bits((bits & 0x7f800000) == 0 ? bits & 0x80000000
                                                     : bits);
}

static inline float amx_widen(uint32_t bf16) {
  return amx_flush(sg_float_from_bits(bf16 << 16));
}

// To the nearest, ties to even; NaNs stay NaNs.
static inline uint16_t amx_narrow(float value) {
  const uint32_t bits = sg_float_bits(amx_flush(value));
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline __m512bh amx_narrow_two(__m512 upper, __m512 lower) {
  float from[32];
  uint16_t to[32];
  memcpy(from, &lower, sizeof(lower));
  memcpy(from + 16, &upper, sizeof(upper));
  for (int i = 0; i < 32; ++i) to[i] = amx_narrow(from[i]);
  __m512bh result;
  memcpy(&result, to, sizeof(result));
  return result;
}

// Tiles that hold what nobody has put there.
static inline void amx_poison(void) {
  memset(amx_unit.tile, 0xff, sizeof(amx_unit.tile));
}

// Takes palette 1 with all eight tiles whole, the one that kernels ask for.
static inline void amx_configure(const void* memory) {
  const uint8_t* config = memory;
  bool is_known = config[0] == 1;
  for (int i = 1; i < 16; ++i) is_known = is_known && config[i] == 0;
  for (int i = 0; i < 16; ++i) {
    uint16_t row_bytes;
    memcpy(&row_bytes, config + 16 + 2 * i, sizeof(row_bytes));
    is_known = is_known && row_bytes == (i < AMX_TILES ? AMX_ROW_BYTES : 0) &&
               config[48 + i] == (i < AMX_TILES ? AMX_ROWS : 0);
  }
  if (!is_known) abort();
  amx_unit.is_configured = true;
  amx_poison();
}

static inline void amx_release(void) {
  amx_unit.is_configured = false;
  amx_poison();
}

static inline uint32_t (*amx_tile(int index))[AMX_WORDS] {
  if (!amx_unit.is_configured) abort();
  return amx_unit.tile[index];
}

static inline void amx_load(int to, const void* memory, int64_t stride_bytes) {
  for (int r = 0; r < AMX_ROWS; ++r) {
    memcpy(amx_tile(to)[r], (const char*)memory + r * stride_bytes,
           AMX_ROW_BYTES);
  }
}

static inline void amx_store(int from, void* memory, int64_t stride_bytes) {
  for (int r = 0; r < AMX_ROWS; ++r) {
    memcpy((char*)memory + r * stride_bytes, amx_tile(from)[r], AMX_ROW_BYTES);
  }
}

static inline void amx_zero(int to) {
  memset(amx_tile(to), 0, sizeof(amx_tile_t));
}

// The compiler's options let it contract, to one rounding as in the processor.
static inline float amx_add_product(float sum, uint32_t left, uint32_t right) {
  return amx_flush(sum + amx_widen(left) * amx_widen(right));
}

// First and second numbers of the pairs are summed apart.
static inline void amx_multiply_add(int to, int left, int right) {
  uint32_t(*sums)[AMX_WORDS] = amx_tile(to);
  for (int m = 0; m < AMX_ROWS; ++m) {
    float first[AMX_WORDS] = {0}, second[AMX_WORDS] = {0};
    for (int k = 0; k < AMX_WORDS; ++k) {
      const uint32_t x = amx_tile(left)[m][k];
      for (int n = 0; n < AMX_WORDS; ++n) {
        const uint32_t y = amx_tile(right)[k][n];
        first[n] = amx_add_product(first[n], x & 0xffff, y & 0xffff);
        second[n] = amx_add_product(second[n], x >> 16, y >> 16);
      }
    }
    for (int n = 0; n < AMX_WORDS; ++n) {
      const float product = amx_flush(first[n] + second[n]);
      const float before = amx_flush(sg_float_from_bits(sums[m][n]));
      sums[m][n] = sg_float_bits(amx_flush(before + product));
    }
  }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadconfig(memory) amx_configure(memory)
#define _tile_release() amx_release()
#define _tile_loadd(to, memory, stride) amx_load(to, memory, stride)
#define _tile_stored(from, memory, stride) amx_store(from, memory, stride)
#define _tile_zero(to) amx_zero(to)
#define _tile_dpbf16ps(to, left, right) amx_multiply_add(to, left, right)
#define _mm512_cvtne2ps_pbh(upper, lower) amx_narrow_two(upper, lower)

#endif  // STEPGRAPH_TESTS_KERNELS_AMX_IN_C_H_
