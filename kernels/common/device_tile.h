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

// Types of elements in memory. Products of fp16 operands are one pass of the
// matrix unit: elements from memory are exact in it, sums that become operands
// have at least as many bits as fp16 and the range of fp32. Products of fp32
// operands are as exact as fp32 arithmetic, give or take a factor of 4.
typedef struct sg_fp16_t {
  uint16_t bits;
} sg_fp16_t;

template <typename element_t>
struct sg_operand_t {
  float value[SG_TILE_VALUES];
} __attribute__((aligned(16)));

SG_DEVICE void sg_element_set(sg_fp16_t* element, float value) {
  element->bits = sg_fp16_of(value);
}
SG_DEVICE void sg_element_set(float* element, float value) { *element = value; }

SG_DEVICE sg_tile_t sg_tile_zero(void) {
  sg_tile_t tile;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) tile.value[i] = 0.0f;
  return tile;
}

SG_DEVICE void sg_operand_from(const sg_tile_t& tile,
                               sg_operand_t<sg_fp16_t>* out_operand) {
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    out_operand->value[i] = sg_tile_round(tile.value[i]);
  }
}
SG_DEVICE void sg_operand_from(const sg_tile_t& tile,
                               sg_operand_t<float>* out_operand) {
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    out_operand->value[i] = tile.value[i];
  }
}

// A lane's elements of a packed tile of fp16.
typedef struct sg_half_tile_t {
  uint32_t pair[SG_TILE_VALUES / 2];
} __attribute__((aligned(SG_TILE_VALUES * 2))) sg_half_tile_t;

// |packed| is the first element of a packed tile.
SG_DEVICE sg_operand_t<float> sg_operand_load(const float* packed) {
  return *(const sg_operand_t<float>*)(packed + sg_lane() * SG_TILE_VALUES);
}
SG_DEVICE sg_operand_t<sg_fp16_t> sg_operand_load(const sg_fp16_t* packed) {
  const sg_half_tile_t half =
      *(const sg_half_tile_t*)(packed + sg_lane() * SG_TILE_VALUES);
  sg_operand_t<sg_fp16_t> operand;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES / 2; ++i) {
    operand.value[2 * i] = sg_float_of_fp16((uint16_t)half.pair[i]);
    operand.value[2 * i + 1] = sg_float_of_fp16((uint16_t)(half.pair[i] >> 16));
  }
  return operand;
}

// sum[r][c] += sum over k of left[r][k] * right[c][k].
SG_DEVICE void sg_tile_multiply(sg_tile_t* sum,
                                const sg_operand_t<sg_fp16_t>& left,
                                const sg_operand_t<sg_fp16_t>& right) {
  sg_tile_multiply_rounded(sum, left.value, right.value);
}
SG_DEVICE void sg_tile_multiply(sg_tile_t* sum, const sg_operand_t<float>& left,
                                const sg_operand_t<float>& right) {
  sg_tile_multiply_fp32(sum, left.value, right.value);
}

// The same for a sum over a whole sequence, which is rounded to nearest: what a
// matrix unit may cut off instead would add up.
SG_DEVICE void sg_tile_accumulate(sg_tile_t* sum,
                                  const sg_operand_t<sg_fp16_t>& left,
                                  const sg_operand_t<sg_fp16_t>& right) {
  sg_tile_accumulate_rounded(sum, left.value, right.value);
}
SG_DEVICE void sg_tile_accumulate(sg_tile_t* sum,
                                  const sg_operand_t<float>& left,
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
