// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of tiles of 16 x 16 over a wave. A tile's elements are spread
// over the lanes; lane element i stands at (sg_tile_row(i), sg_tile_column(i)),
// in sums and in operands alike, so that a sum becomes an operand without a
// lane giving anything to another. In memory an operand is packed: the elements
// of lane 0, then those of lane 1, and so on.

#ifndef STEPGRAPH_KERNELS_COMMON_DEVICE_TILE_H_
#define STEPGRAPH_KERNELS_COMMON_DEVICE_TILE_H_

#include "kernels/common/device_math.h"

enum { SG_TILE = 16, SG_TILE_ELEMENTS = 256 };

// Element types of operands: bf16 products are one pass of the matrix unit,
// fp32 products are as exact as fp32 arithmetic, give or take a factor of 4.
typedef struct sg_bf16_t {
  uint16_t bits;
} sg_bf16_t;

template <typename element_t>
struct sg_operand_t;

template <>
struct sg_operand_t<sg_bf16_t> {
  uint32_t pair[SG_TILE_VALUES / 2];
} __attribute__((aligned(SG_TILE_VALUES * 2)));

template <>
struct sg_operand_t<float> {
  float value[SG_TILE_VALUES];
} __attribute__((aligned(16)));

SG_DEVICE void sg_element_set(sg_bf16_t* element, float value) {
  element->bits = sg_bf16_of(value);
}
SG_DEVICE void sg_element_set(float* element, float value) { *element = value; }

SG_DEVICE sg_tile_t sg_tile_zero(void) {
  sg_tile_t tile;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) tile.value[i] = 0.0f;
  return tile;
}

SG_DEVICE void sg_operand_from(const sg_tile_t& tile,
                               sg_operand_t<sg_bf16_t>* out_operand) {
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES / 2; ++i) {
    out_operand->pair[i] =
        sg_bf16_pair_of(tile.value[2 * i], tile.value[2 * i + 1]);
  }
}
SG_DEVICE void sg_operand_from(const sg_tile_t& tile,
                               sg_operand_t<float>* out_operand) {
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    out_operand->value[i] = tile.value[i];
  }
}

// |packed| is the first element of a packed tile.
template <typename element_t>
SG_DEVICE sg_operand_t<element_t> sg_operand_load(const element_t* packed) {
  return *(const sg_operand_t<element_t>*)(packed + sg_lane() * SG_TILE_VALUES);
}

// sum[r][c] += sum over k of left[r][k] * right[c][k].
SG_DEVICE void sg_tile_multiply(sg_tile_t* sum,
                                const sg_operand_t<sg_bf16_t>& left,
                                const sg_operand_t<sg_bf16_t>& right) {
  sg_tile_multiply_bf16(sum, left.pair, right.pair);
}
SG_DEVICE void sg_tile_multiply(sg_tile_t* sum, const sg_operand_t<float>& left,
                                const sg_operand_t<float>& right) {
  sg_tile_multiply_fp32(sum, left.value, right.value);
}

// SG_TILE_RUN neighbours in a row, as they lie in memory of fp32 and of 16
// bits.
typedef struct sg_run_t {
  float value[SG_TILE_RUN];
} __attribute__((aligned(SG_TILE_RUN * 4))) sg_run_t;
typedef struct sg_half_run_t {
  uint32_t pair[SG_TILE_RUN / 2];
} __attribute__((aligned(SG_TILE_RUN * 2))) sg_half_run_t;

// Stores a run of activations as one word; |offset| is aligned to it.
SG_DEVICE void sg_run_store(int32_t dtype, void* tensor, int64_t offset,
                            const sg_run_t& run) {
  if (dtype == SG_DTYPE_FP32) {
    *(sg_run_t*)((float*)tensor + offset) = run;
    return;
  }
  sg_half_run_t half;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_RUN; i += 2) {
    const float low = run.value[i], high = run.value[i + 1];
    half.pair[i / 2] = dtype == SG_DTYPE_BF16
                           ? sg_bf16_pair_of(low, high)
                           : (uint32_t)sg_fp16_of(high) << 16 | sg_fp16_of(low);
  }
  *(sg_half_run_t*)((uint16_t*)tensor + offset) = half;
}

#endif  // STEPGRAPH_KERNELS_COMMON_DEVICE_TILE_H_
