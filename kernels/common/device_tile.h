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
// matrix unit; sums become such operands by rounding, within the range of fp16.
// Products of fp32 operands are as exact as fp32 arithmetic, give or take a
// factor of 4.
typedef struct sg_fp16_t {
  uint16_t bits;
} sg_fp16_t;

SG_DEVICE void sg_element_set(sg_fp16_t* element, float value) {
  element->bits = sg_fp16_of(value);
}
SG_DEVICE void sg_element_set(float* element, float value) { *element = value; }

// Four elements that lie together.
SG_DEVICE void sg_quad_set(sg_fp16_t* elements, const float values[4]) {
  typedef struct words_t {
    uint32_t pair[2];
  } __attribute__((aligned(8))) words_t;
  *(words_t*)elements = {{sg_fp16_pair_of(values[0], values[1]),
                          sg_fp16_pair_of(values[2], values[3])}};
}
SG_DEVICE void sg_quad_set(float* elements, const float values[4]) {
  const sg_float4_t quad = {values[0], values[1], values[2], values[3]};
  *(sg_float4_t*)elements = quad;
}

SG_DEVICE sg_tile_t sg_tile_zero(void) {
  sg_tile_t tile;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) tile.value[i] = 0.0f;
  return tile;
}

// Adds up sums of the same products.
template <int32_t COUNT>
SG_DEVICE sg_tile_t sg_tile_total(const sg_tile_t sums[COUNT]) {
  sg_tile_t total = sums[0];
#pragma unroll
  for (int32_t j = 1; j < COUNT; ++j) {
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
      total.value[i] += sums[j].value[i];
    }
  }
  return total;
}

// Left operands of fp16 are made of sums, right ones come from memory; those of
// fp32 are either.
template <typename element_t>
struct sg_left_t;
template <>
struct sg_left_t<sg_fp16_t> {
  uint32_t pair[SG_TILE_VALUES / 2];
};
template <>
struct sg_left_t<float> {
  float value[SG_TILE_VALUES];
};
template <typename element_t>
struct sg_right_t;
template <>
struct sg_right_t<sg_fp16_t> {
  uint32_t pair[SG_TILE_VALUES / 2];
} __attribute__((aligned(SG_TILE_VALUES * 2)));
template <>
struct sg_right_t<float> {
  float value[SG_TILE_VALUES];
};

SG_DEVICE void sg_left_from(const sg_tile_t& tile,
                            sg_left_t<sg_fp16_t>* out_left) {
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; i += 2) {
    out_left->pair[i / 2] = sg_fp16_pair_of(tile.value[i], tile.value[i + 1]);
  }
}
SG_DEVICE void sg_left_from(const sg_tile_t& tile, sg_left_t<float>* out_left) {
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    out_left->value[i] = tile.value[i];
  }
}

// A lane's elements of a packed tile, as they are in memory.
template <typename element_t>
struct sg_packed_t {
  element_t element[SG_TILE_VALUES];
} __attribute__((aligned(SG_TILE_VALUES * sizeof(element_t) < 16
                             ? SG_TILE_VALUES * sizeof(element_t)
                             : 16)));

// |packed| is the first element of a packed tile.
SG_DEVICE sg_right_t<sg_fp16_t> sg_right_load(const sg_fp16_t* packed) {
  return *(const sg_right_t<sg_fp16_t>*)(packed + sg_lane() * SG_TILE_VALUES);
}
SG_DEVICE sg_right_t<float> sg_right_load(const float* packed) {
  const sg_packed_t<float> elements =
      *(const sg_packed_t<float>*)(packed + sg_lane() * SG_TILE_VALUES);
  sg_right_t<float> right;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    right.value[i] = elements.element[sg_tile_packed(i)];
  }
  return right;
}
SG_DEVICE sg_left_t<float> sg_left_load(const float* packed) {
  const sg_right_t<float> right = sg_right_load(packed);
  sg_left_t<float> left;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) left.value[i] = right.value[i];
  return left;
}

// sum[r][c] += sum over k of left[r][k] * right[c][k].
SG_DEVICE void sg_tile_multiply(sg_tile_t* sum,
                                const sg_left_t<sg_fp16_t>& left,
                                const sg_right_t<sg_fp16_t>& right) {
  sg_tile_multiply_fp16(sum, left.pair, right.pair);
}
SG_DEVICE void sg_tile_multiply(sg_tile_t* sum, const sg_left_t<float>& left,
                                const sg_right_t<float>& right) {
  sg_tile_multiply_fp32(sum, left.value, right.value);
}

// The same with left operands that need the range of fp32 and no more than the
// bits of |element_t|.
SG_DEVICE void sg_tile_multiply_wide(sg_tile_t* sum, const sg_tile_t& left,
                                     const sg_right_t<sg_fp16_t>& right) {
  float a[SG_TILE_VALUES], b[SG_TILE_VALUES];
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    const int32_t at = sg_tile_packed(i);
    a[i] = sg_tile_round(left.value[i]);
    b[i] = sg_float_of_fp16((uint16_t)(right.pair[at / 2] >> at % 2 * 16));
  }
  sg_tile_multiply_rounded(sum, a, b);
}
SG_DEVICE void sg_tile_multiply_wide(sg_tile_t* sum, const sg_tile_t& left,
                                     const sg_right_t<float>& right) {
  sg_tile_multiply_fp32(sum, left.value, right.value);
}

// SG_TILE_RUN neighbours in a row, as they lie in memory of fp32 and of bf16.
typedef struct sg_run_t {
  float value[SG_TILE_RUN];
} __attribute__((aligned(SG_TILE_RUN * 4))) sg_run_t;
typedef struct sg_bf16_run_t {
  uint32_t pair[SG_TILE_RUN / 2];
} __attribute__((aligned(SG_TILE_RUN * 2))) sg_bf16_run_t;

// A run of a tensor of fp32 or bf16; |offset| is a multiple of SG_TILE_RUN.
SG_DEVICE sg_run_t sg_run_load(int32_t dtype, const void* tensor,
                               int64_t offset) {
  if (dtype == SG_DTYPE_FP32) {
    return *(const sg_run_t*)((const float*)tensor + offset);
  }
  const sg_bf16_run_t narrow =
      *(const sg_bf16_run_t*)((const uint16_t*)tensor + offset);
  sg_run_t run;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_RUN; i += 2) {
    run.value[i] = sg_bf16_pair_low(narrow.pair[i / 2]);
    run.value[i + 1] = sg_bf16_pair_high(narrow.pair[i / 2]);
  }
  return run;
}

SG_DEVICE void sg_run_store(int32_t dtype, void* tensor, int64_t offset,
                            const sg_run_t& run) {
  if (dtype == SG_DTYPE_FP32) {
    *(sg_run_t*)((float*)tensor + offset) = run;
    return;
  }
  sg_bf16_run_t narrow;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_RUN; i += 2) {
    narrow.pair[i / 2] = sg_bf16_pair_of(run.value[i], run.value[i + 1]);
  }
  *(sg_bf16_run_t*)((uint16_t*)tensor + offset) = narrow;
}

#endif  // STEPGRAPH_KERNELS_COMMON_DEVICE_TILE_H_
