// SPDX-License-Identifier: Apache-2.0
//
// Rows of one token and head as the KDA kernels on GPUs read and write them,
// with the same rules as kda_rows_host.h: where they differ, tests fail.

#ifndef STEPGRAPH_KERNELS_COMMON_KDA_ROWS_DEVICE_H_
#define STEPGRAPH_KERNELS_COMMON_KDA_ROWS_DEVICE_H_

#include "kernels/common/device_math.h"
#include "kernels/common/kda_params.h"
#include "runtime/base/kda_geometry.h"

// A token's base-2 log decay is at least this; see kda_rows_host.h.
#define SG_KDA_GATE_FLOOR -64.0f

SG_DEVICE bool sg_kda_has_slot(const sg_kda_params_t* p, int32_t sequence) {
  const int32_t slot = p->slots[sequence];
  return slot >= 0 && slot != p->null_slot;
}

// Offset of the state of one value head, [value_dim, key_dim].
SG_DEVICE int64_t sg_kda_state_offset(const sg_kda_params_t* p,
                                      int32_t sequence, int32_t value_head) {
  return (int64_t)p->slots[sequence] * p->state_slot_stride +
         (int64_t)value_head * p->value_dim * p->key_dim;
}

// Offset of a row of v or o in its tensor.
SG_DEVICE int64_t sg_kda_value_offset(const sg_kda_params_t* p,
                                      int64_t row_stride, int64_t token,
                                      int32_t value_head) {
  return token * row_stride + (int64_t)value_head * p->value_dim;
}

// Offset of a row of q or k in its tensor.
SG_DEVICE int64_t sg_kda_key_offset(const sg_kda_params_t* p,
                                    int64_t row_stride, int64_t token,
                                    int32_t value_head) {
  const int32_t head = value_head / (p->value_heads / p->heads);
  return token * row_stride + (int64_t)head * p->key_dim;
}

SG_DEVICE float sg_kda_beta(const sg_kda_params_t* p, int64_t token,
                            int32_t value_head) {
  const int64_t offset = token * p->beta_row_stride + value_head;
  if (p->beta_kind == SG_BETA_GIVEN) return ((const float*)p->raw_beta)[offset];
  const float sigmoid =
      sg_sigmoid(sg_load_element(p->activation_dtype, p->raw_beta, offset));
  return p->beta_kind == SG_BETA_DOUBLE_SIGMOID ? 2.0f * sigmoid : sigmoid;
}

SG_DEVICE int32_t sg_kda_gate_dtype(const sg_kda_params_t* p) {
  return p->gate_kind == SG_GATE_GIVEN ? SG_DTYPE_FP32 : p->activation_dtype;
}

// Offset of a row of gates in their tensor.
SG_DEVICE int64_t sg_kda_gate_offset(const sg_kda_params_t* p, int64_t token,
                                     int32_t value_head) {
  return token * p->g_row_stride + (int64_t)value_head * p->key_dim;
}

// Raw gate of one token and channel, as it is.
SG_DEVICE float sg_kda_load_gate(const sg_kda_params_t* p, int64_t token,
                                 int32_t value_head, int32_t channel) {
  return sg_load_element(sg_kda_gate_dtype(p), p->raw_g,
                         sg_kda_gate_offset(p, token, value_head) + channel);
}

// What the gates of one channel have in common.
typedef struct sg_kda_channel_t {
  float bias;
  float rate;
} sg_kda_channel_t;

SG_DEVICE sg_kda_channel_t sg_kda_load_channel(const sg_kda_params_t* p,
                                               int32_t value_head,
                                               int32_t channel) {
  sg_kda_channel_t result = {0.0f, 1.0f};
  if (p->gate_kind == SG_GATE_GIVEN) return result;
  if (p->dt_bias != nullptr) {
    result.bias = p->dt_bias[(int64_t)value_head * p->key_dim + channel];
  }
  result.rate = sg_exp_clamped(p->a_log[value_head]);
  return result;
}

// Base-2 log decays of raw gates by the kind of gate, without the floor.
SG_DEVICE float sg_kda_softplus_decay(sg_kda_channel_t channel, float raw) {
  return sg_softplus(raw + channel.bias) * channel.rate * -SG_LOG2_E;
}
SG_DEVICE float sg_kda_bound_decay(float lower_bound, sg_kda_channel_t channel,
                                   float raw) {
  return lower_bound * SG_LOG2_E *
         sg_sigmoid(channel.rate * (raw + channel.bias));
}

// Base-2 log decays of |COUNT| raw gates of a channel, in
// [SG_KDA_GATE_FLOOR, 0]. All at once, so that each waits for itself alone.
template <int32_t COUNT>
SG_DEVICE void sg_kda_log_decays(const sg_kda_params_t* p,
                                 sg_kda_channel_t channel, float gates[COUNT]) {
  if (p->gate_kind == SG_GATE_GIVEN) {
#pragma unroll
    for (int32_t i = 0; i < COUNT; ++i) gates[i] *= SG_LOG2_E;
  } else if (p->gate_kind == SG_GATE_SOFTPLUS) {
#pragma unroll
    for (int32_t i = 0; i < COUNT; ++i) {
      gates[i] = sg_kda_softplus_decay(channel, gates[i]);
    }
  } else {
    const float bound = p->gate_lower_bound;
#pragma unroll
    for (int32_t i = 0; i < COUNT; ++i) {
      gates[i] = sg_kda_bound_decay(bound, channel, gates[i]);
    }
  }
#pragma unroll
  for (int32_t i = 0; i < COUNT; ++i) {
    gates[i] = gates[i] > SG_KDA_GATE_FLOOR ? gates[i] : SG_KDA_GATE_FLOOR;
  }
}

SG_DEVICE float sg_kda_log_decay(const sg_kda_params_t* p,
                                 sg_kda_channel_t channel, float raw) {
  sg_kda_log_decays<1>(p, channel, &raw);
  return raw;
}

// Tells the compiler what the dtype of activations is in a kernel whose
// panels are of 16 bits, which is launched for bf16 alone.
template <typename element_t>
SG_DEVICE void sg_kda_fix_dtype(sg_kda_params_t* p) {
  if (sizeof(element_t) == 2) p->activation_dtype = SG_DTYPE_BF16;
}

// What a block of the last kernel of an op does before its own work: the rows
// that no sequence owns. Returns whether there is work to do at all.
SG_DEVICE bool sg_kda_begin_block(const sg_kda_params_t* p) {
  const bool failed = p->counts->error_code != SG_STEP_ERROR_NONE;
  if (p->zeroes_outputs && (failed || p->zero_tail)) {
    const int64_t bytes = sg_element_bytes(p->activation_dtype);
    const int64_t row = (int64_t)p->value_heads * p->value_dim * bytes;
    int64_t token = failed ? 0 : p->counts->token_count;
    for (token += sg_block(); token < p->token_capacity; token += sg_grid()) {
      sg_block_zero((char*)p->o + token * p->o_row_stride * bytes, row);
    }
  }
  return !failed;
}

#endif  // STEPGRAPH_KERNELS_COMMON_KDA_ROWS_DEVICE_H_
