// SPDX-License-Identifier: Apache-2.0
//
// The members that the params of every KDA kernel start with. Plain C for host
// and device code.

#ifndef STEPGRAPH_KERNELS_COMMON_KDA_PARAMS_H_
#define STEPGRAPH_KERNELS_COMMON_KDA_PARAMS_H_

#include <assert.h>
#include <stdint.h>

#include "runtime/base/batch_layout.h"

// Tensors and tables are those of kda_args.h and batch_tables.h.
typedef struct sg_kda_params_t {
  const sg_batch_counts_t* counts;
  const int32_t* query_start_loc;
  const int32_t* computed_lens;
  const int32_t* slots;
  const void* q;
  const void* k;
  const void* v;
  const void* raw_g;
  const void* raw_beta;
  const float* a_log;
  const float* dt_bias;
  void* o;
  void* state;
  int64_t q_row_stride;
  int64_t k_row_stride;
  int64_t v_row_stride;
  int64_t g_row_stride;
  int64_t beta_row_stride;
  int64_t o_row_stride;
  int64_t state_slot_stride;
  int32_t heads;
  int32_t value_heads;
  int32_t key_dim;
  int32_t value_dim;
  int32_t gate_kind;         // sg_gate_kind_t
  int32_t beta_kind;         // sg_beta_kind_t
  int32_t qk_l2norm;         // 0 or 1
  int32_t activation_dtype;  // sg_dtype_t
  int32_t null_slot;
  int32_t token_capacity;
  int32_t zero_tail;       // 0 or 1
  int32_t zeroes_outputs;  // 0 or 1
  int32_t state_dtype;     // SG_DTYPE_FP32 or SG_DTYPE_BF16
  int32_t reserved;        // 0
  float scale;
  float gate_lower_bound;
} sg_kda_params_t;

static_assert(sizeof(sg_kda_params_t) == 224, "no padding");

// Largest key_dim and value_dim; both are multiples of 16.
enum { SG_KDA_DIM_MIN = 32, SG_KDA_DIM_MAX = 256, SG_KDA_DIM_STEP = 16 };

#endif  // STEPGRAPH_KERNELS_COMMON_KDA_PARAMS_H_
