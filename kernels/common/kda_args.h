// SPDX-License-Identifier: Apache-2.0
//
// What the ops of one KDA layer are called with. The formulas, per value head,
// with state S [key_dim, value_dim]:
//
//   qn = scale * q / sqrt(sum q^2 + 1e-6)   kn = k / sqrt(sum k^2 + 1e-6)
//   S <- diag(exp(g)) S                     decay first
//   d  = beta * (v - S^T kn)                prediction uses the decayed state
//   S <- S + kn d^T
//   o  = S^T qn                             output uses the updated state
//
// Source: Kimi Linear, arXiv 2510.26692, and flash-linear-attention's KDA ops.

#ifndef STEPGRAPH_KERNELS_COMMON_KDA_ARGS_H_
#define STEPGRAPH_KERNELS_COMMON_KDA_ARGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/common/batch_tables.h"
#include "runtime/base/kda_geometry.h"

// Device pointers of one layer. T is the token capacity. Row strides are in
// elements between tokens; within a row heads follow each other densely.
typedef struct sg_kda_tensors_t {
  const void* q;         // [T, heads, key_dim], activation dtype
  const void* k;         // [T, heads, key_dim], activation dtype
  const void* v;         // [T, value_heads, value_dim], activation dtype
  const void* raw_g;     // [T, value_heads, key_dim]; fp32 when gates are given
  const void* raw_beta;  // [T, value_heads]; fp32 when betas are given
  const float* a_log;    // [value_heads]; not read when gates are given
  const float* dt_bias;  // [value_heads, key_dim], or NULL for none
  void* o;               // [T, value_heads, value_dim], activation dtype
  // [slots, value_heads, value_dim, key_dim], state dtype, key_dim contiguous,
  // updated in place; slots are state_slot_stride elements apart.
  void* state;
  int64_t q_row_stride;
  int64_t k_row_stride;
  int64_t v_row_stride;
  int64_t g_row_stride;
  int64_t beta_row_stride;
  int64_t o_row_stride;
  int64_t state_slot_stride;
} sg_kda_tensors_t;

typedef struct sg_kda_args_t {
  const sg_kda_geometry_t* geometry;
  sg_batch_capacity_t capacity;
  sg_batch_tables_t tables;
  sg_kda_tensors_t tensors;
  // Slot that is never touched, besides those below 0; -1 for none.
  int32_t null_slot;
  // Whether output rows from the real token count to the capacity are set to
  // zero instead of being left alone.
  bool zero_tail;
  // Whether this op writes the zeros of rows that no sequence owns: those of
  // zero_tail, and all rows of a step with an error. Of the ops that share an
  // output one does.
  bool zeroes_outputs;
  // Device memory of at least the op's workspace_bytes; contents undefined.
  void* workspace;
} sg_kda_args_t;

#endif  // STEPGRAPH_KERNELS_COMMON_KDA_ARGS_H_
