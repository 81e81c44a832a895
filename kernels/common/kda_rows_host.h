// SPDX-License-Identifier: Apache-2.0
//
// Rows of one token and head as the host kernels of KDA read and write them:
// always as fp32, whatever the activations are, and activated. |count|, a
// key_dim or value_dim, is a multiple of 16.

#ifndef STEPGRAPH_KERNELS_COMMON_KDA_ROWS_HOST_H_
#define STEPGRAPH_KERNELS_COMMON_KDA_ROWS_HOST_H_

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/common/host_convert.h"
#include "kernels/common/host_math.h"
#include "kernels/common/host_vector.h"
#include "kernels/common/kda_params.h"
#include "runtime/base/dtype.h"
#include "runtime/base/kda_geometry.h"

// A token's base-2 log decay is at least this. 2^-64 of what was there before
// is nothing in fp32, and sums of sixteen such values keep their precision,
// which sums of -1000 would not.
#define SG_KDA_GATE_FLOOR -64.0f

static inline void sg_row_load(int32_t dtype, const void* tensor,
                               int64_t offset, int32_t count,
                               float* restrict row) {
  count &= ~15;
  if (dtype == SG_DTYPE_FP32) {
    memcpy(row, (const float*)tensor + offset, sizeof(float) * (size_t)count);
    return;
  }
  const uint16_t* restrict source = (const uint16_t*)tensor + offset;
  if (dtype == SG_DTYPE_BF16) {
    for (int32_t i = 0; i < count; ++i) row[i] = sg_float_from_bf16(source[i]);
  } else {
    for (int32_t i = 0; i < count; ++i) row[i] = sg_float_from_fp16(source[i]);
  }
}

static inline void sg_row_store(int32_t dtype, void* tensor, int64_t offset,
                                int32_t count, const float* restrict row) {
  count &= ~15;
  if (dtype == SG_DTYPE_FP32) {
    memcpy((float*)tensor + offset, row, sizeof(float) * (size_t)count);
    return;
  }
  uint16_t* restrict target = (uint16_t*)tensor + offset;
  if (dtype == SG_DTYPE_BF16) {
    for (int32_t i = 0; i < count; ++i) target[i] = sg_bf16_from_float(row[i]);
  } else {
    for (int32_t i = 0; i < count; ++i) target[i] = sg_fp16_from_float(row[i]);
  }
}

// Zero has the same bits in every dtype.
static inline void sg_row_zero(int32_t dtype, void* tensor, int64_t offset,
                               int64_t count) {
  const size_t bytes = sg_dtype_bytes((sg_dtype_t)dtype);
  memset((char*)tensor + (size_t)offset * bytes, 0, (size_t)count * bytes);
}

static inline bool sg_kda_has_slot(const sg_kda_params_t* params,
                                   int32_t sequence) {
  const int32_t slot = params->slots[sequence];
  return slot >= 0 && slot != params->null_slot;
}

// Offset of the state of one value head, [value_dim, key_dim].
static inline int64_t sg_kda_state_offset(const sg_kda_params_t* params,
                                          int32_t sequence,
                                          int32_t value_head) {
  const int64_t head_elements = (int64_t)params->value_dim * params->key_dim;
  return (int64_t)params->slots[sequence] * params->state_slot_stride +
         value_head * head_elements;
}

// Offset of a row of v or o in its tensor.
static inline int64_t sg_kda_value_offset(const sg_kda_params_t* params,
                                          int64_t row_stride, int64_t token,
                                          int32_t value_head) {
  return token * row_stride + (int64_t)value_head * params->value_dim;
}

// The same of q or k.
static inline int64_t sg_kda_key_offset(const sg_kda_params_t* params,
                                        int64_t row_stride, int64_t token,
                                        int32_t value_head) {
  const int32_t head = value_head / (params->value_heads / params->heads);
  return token * row_stride + (int64_t)head * params->key_dim;
}

// The same of raw_g.
static inline int64_t sg_kda_gate_offset(const sg_kda_params_t* params,
                                         int64_t token, int32_t value_head) {
  return token * params->g_row_stride + (int64_t)value_head * params->key_dim;
}

static inline int32_t sg_kda_gate_dtype(const sg_kda_params_t* params) {
  return params->gate_kind == SG_GATE_GIVEN ? (int32_t)SG_DTYPE_FP32
                                            : params->activation_dtype;
}

// Row of q or k, as it is.
static inline void sg_kda_load_key(const sg_kda_params_t* params,
                                   const void* tensor, int64_t row_stride,
                                   int64_t token, int32_t value_head,
                                   float* restrict row) {
  sg_row_load(params->activation_dtype, tensor,
              sg_kda_key_offset(params, row_stride, token, value_head),
              params->key_dim, row);
}

// What the L2 norm multiplies a row of q or k by, from the sum of its squares.
static inline float sg_kda_norm_factor(const sg_kda_params_t* params,
                                       float squares) {
  return params->qk_l2norm ? 1.0f / sqrtf(squares + 1e-6f) : 1.0f;
}

// raw_beta of one token, as it is.
static inline float sg_kda_load_beta(const sg_kda_params_t* params,
                                     int64_t token, int32_t value_head) {
  const int64_t offset = token * params->beta_row_stride + value_head;
  if (params->beta_kind == SG_BETA_GIVEN ||
      params->activation_dtype == SG_DTYPE_FP32) {
    return ((const float*)params->raw_beta)[offset];
  }
  const uint16_t narrow = ((const uint16_t*)params->raw_beta)[offset];
  return params->activation_dtype == SG_DTYPE_BF16 ? sg_float_from_bf16(narrow)
                                                   : sg_float_from_fp16(narrow);
}

// beta from raw_beta.
static inline float sg_kda_beta(const sg_kda_params_t* params, float raw) {
  if (params->beta_kind == SG_BETA_GIVEN) return raw;
  const float sigmoid = sg_sigmoid(raw);
  return params->beta_kind == SG_BETA_DOUBLE_SIGMOID ? 2.0f * sigmoid : sigmoid;
}

// The weights of the gates of one value head.
typedef struct sg_kda_gate_t {
  int32_t value_head;
  // e^a_log; not used where gates are given.
  float rate;
  // [key_dim], zeros where there is none.
  const float* bias;
} sg_kda_gate_t;

static inline sg_kda_gate_t sg_kda_gate_of(const sg_kda_params_t* params,
                                           int32_t value_head) {
  static const float no_bias[SG_KDA_DIM_MAX];
  sg_kda_gate_t gate = {.value_head = value_head, .bias = no_bias};
  if (params->gate_kind == SG_GATE_GIVEN) return gate;
  gate.rate = sg_exp_clamped(params->a_log[value_head]);
  if (params->dt_bias != NULL) {
    gate.bias = params->dt_bias + (int64_t)value_head * params->key_dim;
  }
  return gate;
}

// Base-2 log decays of one token, each in [SG_KDA_GATE_FLOOR, 0].
static inline void sg_kda_load_gate(const sg_kda_params_t* params,
                                    const sg_kda_gate_t* gate, int64_t token,
                                    float* restrict row) {
  const int32_t count = params->key_dim & ~15;
  sg_row_load(sg_kda_gate_dtype(params), params->raw_g,
              sg_kda_gate_offset(params, token, gate->value_head), count, row);
  const float floor = SG_KDA_GATE_FLOOR;
  const float rate = gate->rate;
  const float* restrict bias = gate->bias;
  if (params->gate_kind == SG_GATE_GIVEN) {
    for (int32_t i = 0; i < count; ++i) {
      const float g = row[i] * SG_LOG2_E;
      row[i] = g > floor ? g : floor;
    }
  } else if (params->gate_kind == SG_GATE_SOFTPLUS) {
    for (int32_t i = 0; i < count; ++i) {
      const float g = sg_softplus(row[i] + bias[i]) * rate * -SG_LOG2_E;
      row[i] = g > floor ? g : floor;
    }
  } else {
    const float bound = params->gate_lower_bound * SG_LOG2_E;
    for (int32_t i = 0; i < count; ++i) {
      const float g = bound * sg_sigmoid(rate * (row[i] + bias[i]));
      row[i] = g > floor ? g : floor;
    }
  }
}

// Zeroes this block's share of rows |first| to |end| - 1 of o.
static inline void sg_kda_zero_stripe(const sg_kda_params_t* params,
                                      int64_t first, int64_t end,
                                      uint32_t block, uint32_t grid) {
  const int64_t width = (int64_t)params->value_heads * params->value_dim;
  for (int64_t token = first + block; token < end; token += grid) {
    sg_row_zero(params->activation_dtype, params->o,
                token * params->o_row_stride, width);
  }
}

// What a block of the last kernel of an op does before its own work: the rows
// that no sequence owns. Returns whether there is work to do at all.
static inline bool sg_kda_begin_block(const sg_kda_params_t* params,
                                      uint32_t block, uint32_t grid) {
  const sg_batch_counts_t* counts = params->counts;
  const bool failed = counts->error_code != SG_STEP_ERROR_NONE;
  if (params->zeroes_outputs && (failed || params->zero_tail)) {
    sg_kda_zero_stripe(params, failed ? 0 : counts->token_count,
                       params->token_capacity, block, grid);
  }
  return !failed;
}

#endif  // STEPGRAPH_KERNELS_COMMON_KDA_ROWS_HOST_H_
