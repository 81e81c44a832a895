// SPDX-License-Identifier: Apache-2.0
//
// kda_recurrent on the host: one token of one decode and value head. Compiled
// once for each instruction set.
//
// The state's rows [value_dim][key_dim] are independent, so each is read and
// written once, in place. With e the decay, s a row before it, and k, q
// normalised, the recurrence of kda_args.h becomes, for the row's value v:
//
//   d = beta (v - s.(e k))      o = s.(e q) + d (k.q)      s <- e s + d k
//
// where both products read the state as it was. Rows that are not fp32 are
// widened before and rounded after: o is that of the state before rounding.

#include "kernels/common/host_symbol.h"
#include "kernels/common/kda_rows_host.h"
#include "kernels/kda_recurrent/params.h"
#include "kernels/kda_recurrent/scratch_host.h"
#include "runtime/hip/host_kernel.h"

enum { ROWS = SG_KDA_RECURRENT_HOST_ROWS };

// What the token is to every row of the state.
typedef struct token_t {
  const sg_kda_recurrent_scratch_t* scratch;
  int32_t key_dim;
  float beta;
  float k_dot_q;
} token_t;

// Puts the token's vectors into |scratch|.
static token_t load_token(const sg_kda_params_t* params, int64_t row,
                          int32_t value_head,
                          sg_kda_recurrent_scratch_t* scratch) {
  const int32_t count = params->key_dim & ~15;
  float* restrict k = scratch->k;
  float* restrict k_read = scratch->k_read;
  float* restrict q = scratch->q_read;
  float* restrict decay = scratch->decay;
  sg_kda_load_key(params, params->q, params->q_row_stride, row, value_head, q);
  sg_kda_load_key(params, params->k, params->k_row_stride, row, value_head, k);
  const float q_factor =
      sg_kda_norm_factor(params, sg_dot(q, q, count)) * params->scale;
  const float k_factor = sg_kda_norm_factor(params, sg_dot(k, k, count));
  const sg_kda_gate_t gate = sg_kda_gate_of(params, value_head);
  for (int32_t c = 0; c < count; ++c) {
    q[c] *= q_factor;
    k[c] *= k_factor;
  }
  const token_t token = {
      .scratch = scratch,
      .key_dim = count,
      .beta = sg_kda_beta(params, sg_kda_load_beta(params, row, value_head)),
      .k_dot_q = sg_dot(k, q, count),
  };
  sg_kda_load_gate(params, &gate, row, decay);
  for (int32_t c = 0; c < count; ++c) {
    decay[c] = sg_decay(decay[c]);
    k_read[c] = k[c] * decay[c];
    q[c] *= decay[c];
  }
  return token;
}

// values[i]: in v, out o, for ROWS rows of the state.
static void update_rows(const token_t* token, float* restrict state,
                        float* restrict values) {
  const sg_kda_recurrent_scratch_t* scratch = token->scratch;
  const int32_t count = token->key_dim;
  sg_vector_t read_k[ROWS] = {0}, read_q[ROWS] = {0};
  for (int32_t c = 0; c < count; c += SG_VECTOR_FLOATS) {
    const sg_vector_t k = sg_vector_load(scratch->k_read + c);
    const sg_vector_t q = sg_vector_load(scratch->q_read + c);
#pragma GCC unroll 4
    for (int32_t i = 0; i < ROWS; ++i) {
      const sg_vector_t s = sg_vector_load(state + i * count + c);
      read_k[i] += s * k;
      read_q[i] += s * q;
    }
  }
  float delta[ROWS];
#pragma GCC unroll 4
  for (int32_t i = 0; i < ROWS; ++i) {
    delta[i] = token->beta * (values[i] - sg_vector_sum(read_k[i]));
    values[i] = sg_vector_sum(read_q[i]) + delta[i] * token->k_dot_q;
  }
  for (int32_t c = 0; c < count; c += SG_VECTOR_FLOATS) {
    const sg_vector_t decay = sg_vector_load(scratch->decay + c);
    const sg_vector_t k = sg_vector_load(scratch->k + c);
#pragma GCC unroll 4
    for (int32_t i = 0; i < ROWS; ++i) {
      float* s = state + i * count + c;
      sg_vector_store(s, sg_vector_load(s) * decay + delta[i] * k);
    }
  }
}

// The same from a state of zeros, which is written without being read.
static void start_rows(const token_t* token, float* restrict state,
                       float* restrict values) {
  const float* restrict k = token->scratch->k;
  const int32_t count = token->key_dim & ~15;
  for (int32_t i = 0; i < ROWS; ++i) {
    const float delta = token->beta * values[i];
    float* restrict row = state + i * count;
    for (int32_t c = 0; c < count; ++c) row[c] = delta * k[c];
    values[i] = delta * token->k_dot_q;
  }
}

// All rows of the state at |offset|; scratch->values as above.
static void update_state(const sg_kda_params_t* params, const token_t* token,
                         int64_t offset, bool fresh,
                         sg_kda_recurrent_scratch_t* scratch) {
  const int32_t dtype = params->state_dtype;
  const bool in_place = dtype == SG_DTYPE_FP32;
  const int32_t count = ROWS * params->key_dim;
  for (int32_t v = 0; v < params->value_dim; v += ROWS, offset += count) {
    float* rows = in_place ? (float*)params->state + offset : scratch->rows;
    if (fresh) {
      start_rows(token, rows, scratch->values + v);
    } else {
      if (!in_place) sg_row_load(dtype, params->state, offset, count, rows);
      update_rows(token, rows, scratch->values + v);
    }
    if (!in_place) sg_row_store(dtype, params->state, offset, count, rows);
  }
}

void SG_HOST_SYMBOL(sg__kda_recurrent_run)(const void* params_pointer,
                                           const sg_host_block_t* block);

void SG_HOST_SYMBOL(sg__kda_recurrent_run)(const void* params_pointer,
                                           const sg_host_block_t* block) {
  const sg_kda_recurrent_params_t* recurrent = params_pointer;
  const sg_kda_params_t* params = &recurrent->kda;
  if (!sg_kda_begin_block(params, block->index, block->grid)) return;
  const uint32_t value_heads = (uint32_t)params->value_heads;
  const int32_t sequence = (int32_t)(block->index / value_heads);
  const int32_t value_head = (int32_t)(block->index % value_heads);
  if (sequence >= params->counts->decode_count) return;

  // A decode has one token, in the row of its own number.
  const int64_t row = sequence;
  const int64_t out =
      sg_kda_value_offset(params, params->o_row_stride, row, value_head);
  if (!sg_kda_has_slot(params, sequence)) {
    sg_row_zero(params->activation_dtype, params->o, out, params->value_dim);
    return;
  }
  sg_kda_recurrent_scratch_t* scratch = block->shared;
  const token_t token = load_token(params, row, value_head, scratch);
  sg_row_load(
      params->activation_dtype, params->v,
      sg_kda_value_offset(params, params->v_row_stride, row, value_head),
      params->value_dim, scratch->values);
  update_state(params, &token,
               sg_kda_state_offset(params, sequence, value_head),
               params->computed_lens[sequence] == 0, scratch);
  sg_row_store(params->activation_dtype, params->o, out, params->value_dim,
               scratch->values);
}
