// SPDX-License-Identifier: Apache-2.0
//
// random_fill: seeded random numbers of about normal distribution, the same
// bits on every flavour. For tools and tests that need inputs of a realistic
// scale without sending them to the device.
//
//   key        = two words: low and high half of splitmix64's output for
//                seed + row * 0x9e3779b97f4a7c15
//   h          = mix(column * 0x9e3779b1 + key0) xor key1      modulo 2^32
//   z          = the sum of the four bytes of h, less 510
//   data[row, column] = z * step + offset           in fp32, then narrowed
//
// with mix(x): x ^= x >> 16; x *= 0x21f0aaad; x ^= x >> 15; x *= 0xd35a2d97;
// x ^= x >> 15. A sum of four uniform numbers is near normal: its deviation is
// SG_RANDOM_DEVIATION, and no value lies beyond 3.46 deviations.
//
// z has at most 9 significant bits and step has 14, so that z * step is exact
// and the addition rounds once: whether a compiler contracts the two into one
// operation makes no difference. Narrowing rounds to nearest, ties to even.
//
// Constraints
//   grid    row tiles times column tiles; any block size
//   rows    row_stride elements apart; elements between row_elements and
//           row_stride are left alone
//   types   fp32, bf16, fp16

#ifndef STEPGRAPH_KERNELS_RANDOM_FILL_PARAMS_H_
#define STEPGRAPH_KERNELS_RANDOM_FILL_PARAMS_H_

#include <stdint.h>

// Standard deviation of z: sqrt(4 (256^2 - 1) / 12).
#define SG_RANDOM_DEVIATION 147.80054f

typedef struct sg_random_fill_params_t {
  void* data;
  uint64_t seed;
  int64_t rows;
  int64_t row_stride;  // elements
  int32_t row_elements;
  int32_t dtype;  // sg_dtype_t
  // What one block fills. Blocks number column tiles first.
  int32_t rows_per_block;
  int32_t columns_per_block;
  float step;
  float offset;
} sg_random_fill_params_t;

#endif  // STEPGRAPH_KERNELS_RANDOM_FILL_PARAMS_H_
