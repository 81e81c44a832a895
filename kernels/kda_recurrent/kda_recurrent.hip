// SPDX-License-Identifier: Apache-2.0
//
// kda_recurrent on a GPU: one token of one decode and value head, in blocks of
// SG_KDA_RECURRENT_ROWS rows of the state. With e the decay, s a row before it,
// k and q normalised and v the row's value:
//
//   d = beta (v - s.(e k))      o = s.(e q) + d (k.q)      s <- e s + d k
//
// where both products read the state as it was, so that it passes through
// registers once. Eight lanes share a row, each with every eighth piece of
// four channels: a wave reads whole lines and three exchanges make a sum.

#include "kernels/common/kda_rows_device.h"
#include "kernels/kda_recurrent/params.h"

enum {
  THREADS = SG_KDA_RECURRENT_THREADS,
  WAVES = THREADS / SG_WAVE,
  GROUP = 8,
  // Rows that a thread has a part in; all are loaded before anything else.
  ROWS = SG_KDA_RECURRENT_ROWS * GROUP / THREADS,
};

// What the token is to every row of the state.
typedef struct token_t {
  float decay[SG_KDA_DIM_MAX];
  float k[SG_KDA_DIM_MAX];
  // k and q times the decay: what they read an undecayed state with.
  float k_read[SG_KDA_DIM_MAX];
  float q_read[SG_KDA_DIM_MAX];
  // Sums over the waves of k.k, q.q and k.q.
  float sums[WAVES][3];
} __attribute__((aligned(16))) token_t;

typedef struct scalars_t {
  float k_factor;
  float q_factor;
  float k_dot_q;
} scalars_t;

// The channels of a thread, as they are.
template <int32_t CHANNELS>
struct raw_t {
  float k[CHANNELS];
  float q[CHANNELS];
};

template <int32_t CHANNELS>
SG_DEVICE scalars_t reduce(const sg_kda_params_t* p, const raw_t<CHANNELS>& raw,
                           token_t* token) {
  float sums[3] = {0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int32_t i = 0; i < CHANNELS; ++i) {
    sums[0] += raw.k[i] * raw.k[i];
    sums[1] += raw.q[i] * raw.q[i];
    sums[2] += raw.k[i] * raw.q[i];
  }
#pragma unroll
  for (int32_t i = 0; i < 3; ++i) {
    sums[i] = sg_group_sum(sums[i], SG_WAVE);
    if (sg_lane() == 0) token->sums[sg_wave()][i] = sums[i];
    sums[i] = 0.0f;
  }
  sg_block_barrier();
  for (int32_t wave = 0; wave < WAVES; ++wave) {
    for (int32_t i = 0; i < 3; ++i) sums[i] += token->sums[wave][i];
  }
  scalars_t scalars = {1.0f, p->scale, 0.0f};
  if (p->qk_l2norm) {
    scalars.k_factor = sg_reciprocal_root(sums[0] + 1e-6f);
    scalars.q_factor = sg_reciprocal_root(sums[1] + 1e-6f) * p->scale;
  }
  scalars.k_dot_q = sums[2] * scalars.k_factor * scalars.q_factor;
  return scalars;
}

// Leaves the token's vectors in shared memory; returns k.q.
template <int32_t CHANNELS>
SG_DEVICE float load_token(const sg_kda_params_t* p, int64_t row,
                           int32_t value_head, token_t* token) {
  const int64_t k_offset =
      sg_kda_key_offset(p, p->k_row_stride, row, value_head);
  const int64_t q_offset =
      sg_kda_key_offset(p, p->q_row_stride, row, value_head);
  raw_t<CHANNELS> raw;
  float decay[CHANNELS];
#pragma unroll
  for (int32_t i = 0; i < CHANNELS; ++i) {
    const int32_t c = i * THREADS + sg_thread();
    raw.k[i] = raw.q[i] = decay[i] = 0.0f;
    if (c >= p->key_dim) continue;
    raw.k[i] = sg_load_element(p->activation_dtype, p->k, k_offset + c);
    raw.q[i] = sg_load_element(p->activation_dtype, p->q, q_offset + c);
    decay[i] =
        sg_exp2(sg_kda_log_decay(p, sg_kda_load_channel(p, value_head, c),
                                 sg_kda_load_gate(p, row, value_head, c)));
  }
  const scalars_t scalars = reduce(p, raw, token);
#pragma unroll
  for (int32_t i = 0; i < CHANNELS; ++i) {
    const int32_t c = i * THREADS + sg_thread();
    const float k = raw.k[i] * scalars.k_factor;
    token->decay[c] = decay[i];
    token->k[c] = k;
    token->k_read[c] = k * decay[i];
    token->q_read[c] = raw.q[i] * scalars.q_factor * decay[i];
  }
  sg_block_barrier();
  return scalars.k_dot_q;
}

// An element of a state in bf16.
typedef struct bf16_t {
  uint16_t bits;
} bf16_t;

// Four elements of a state.
SG_DEVICE sg_float4_t load_piece(const float* piece) {
  return sg_load_16_once(piece);
}
SG_DEVICE sg_float4_t load_piece(const bf16_t* piece) {
  const sg_word2_t pairs = sg_load_8_once(piece);
  return sg_float4_t{sg_bf16_pair_low(pairs.x), sg_bf16_pair_high(pairs.x),
                     sg_bf16_pair_low(pairs.y), sg_bf16_pair_high(pairs.y)};
}
SG_DEVICE void store_piece(float* piece, sg_float4_t value) {
  sg_store_16_once(piece, value);
}
SG_DEVICE void store_piece(bf16_t* piece, sg_float4_t value) {
  sg_store_8_once(piece, sg_word2_t{sg_bf16_pair_of(value.x, value.y),
                                    sg_bf16_pair_of(value.z, value.w)});
}

// Pieces of four channels of the thread's part of one row.
template <int32_t PIECES>
struct row_part_t {
  sg_float4_t piece[PIECES];
};

SG_DEVICE int32_t channel_of(int32_t piece) {
  return (piece * GROUP + sg_thread() % GROUP) * 4;
}

SG_DEVICE float dot4(sg_float4_t a, sg_float4_t b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

template <int32_t PIECES, typename state_t>
SG_DEVICE row_part_t<PIECES> load_row(const state_t* row, bool reads,
                                      int32_t key_dim) {
  row_part_t<PIECES> part;
#pragma unroll
  for (int32_t i = 0; i < PIECES; ++i) {
    part.piece[i] = sg_float4_t{0.0f, 0.0f, 0.0f, 0.0f};
    if (reads && channel_of(i) < key_dim) {
      part.piece[i] = load_piece(row + channel_of(i));
    }
  }
  return part;
}

// Writes the row back, decayed and updated, and returns its output.
template <int32_t PIECES, typename state_t>
SG_DEVICE float update_row(const token_t* token, row_part_t<PIECES> part,
                           float value, float beta, float k_dot_q,
                           int32_t key_dim, bool writes, state_t* row) {
  float read_k = 0.0f, read_q = 0.0f;
#pragma unroll
  for (int32_t i = 0; i < PIECES; ++i) {
    const int32_t c = channel_of(i);
    read_k += dot4(part.piece[i], sg_load_16(token->k_read + c));
    read_q += dot4(part.piece[i], sg_load_16(token->q_read + c));
  }
  read_k = sg_group_sum(read_k, GROUP);
  read_q = sg_group_sum(read_q, GROUP);
  const float delta = beta * (value - read_k);
#pragma unroll
  for (int32_t i = 0; i < PIECES; ++i) {
    const int32_t c = channel_of(i);
    const sg_float4_t e = sg_load_16(token->decay + c);
    const sg_float4_t k = sg_load_16(token->k + c);
    const sg_float4_t s = part.piece[i];
    if (writes && c < key_dim) {
      store_piece(
          row + c,
          sg_float4_t{s.x * e.x + delta * k.x, s.y * e.y + delta * k.y,
                      s.z * e.z + delta * k.z, s.w * e.w + delta * k.w});
    }
  }
  return read_q + delta * k_dot_q;
}

// Rows |first_row| to first_row + SG_KDA_RECURRENT_ROWS - 1 of one state.
template <int32_t PIECES, typename state_t>
SG_DEVICE void run_item(const sg_kda_params_t* p, int32_t sequence,
                        int32_t value_head, int32_t first_row, token_t* token) {
  const int32_t key_dim = p->key_dim;
  const int32_t own_row = first_row + sg_thread() / GROUP;
  // A decode has one token, in the row of its own number.
  const int64_t out =
      sg_kda_value_offset(p, p->o_row_stride, sequence, value_head);
  if (!sg_kda_has_slot(p, sequence)) {
    const int32_t v = first_row + sg_thread();
    if (sg_thread() < SG_KDA_RECURRENT_ROWS && v < p->value_dim) {
      sg_store_element(p->activation_dtype, p->o, out + v, 0.0f);
    }
    return;
  }
  state_t* state =
      (state_t*)p->state + sg_kda_state_offset(p, sequence, value_head);
  const bool fresh = p->computed_lens[sequence] == 0;
  row_part_t<PIECES> part[ROWS];
  float value[ROWS];
#pragma unroll
  for (int32_t i = 0; i < ROWS; ++i) {
    const int32_t v = own_row + i * (THREADS / GROUP);
    const bool real = v < p->value_dim;
    part[i] =
        load_row<PIECES>(state + (int64_t)v * key_dim, real && !fresh, key_dim);
    value[i] = 0.0f;
    if (real) {
      value[i] = sg_load_element(
          p->activation_dtype, p->v,
          sg_kda_value_offset(p, p->v_row_stride, sequence, value_head) + v);
    }
  }
  const float beta = sg_kda_beta(p, sequence, value_head);
  constexpr int32_t CHANNELS = (PIECES * GROUP * 4 + THREADS - 1) / THREADS;
  const float k_dot_q = load_token<CHANNELS>(p, sequence, value_head, token);
#pragma unroll
  for (int32_t i = 0; i < ROWS; ++i) {
    const int32_t v = own_row + i * (THREADS / GROUP);
    const bool real = v < p->value_dim;
    const float o =
        update_row<PIECES>(token, part[i], value[i], beta, k_dot_q, key_dim,
                           real, state + (int64_t)v * key_dim);
    if (real && sg_thread() % GROUP == 0) {
      sg_store_element(p->activation_dtype, p->o, out + v, o);
    }
  }
  // The next item's token goes where this one's is.
  sg_block_barrier();
}

// Blocks a compute unit that registers must leave room for.
template <int32_t PIECES>
static constexpr int32_t RESIDENT = PIECES > 4 ? 2 : 4;

template <int32_t PIECES, typename state_t>
__global__ void SG_LAUNCH_BOUNDS(THREADS, RESIDENT<PIECES>)
    kda_recurrent(sg_kda_recurrent_params_t params) {
  SG_SHARED token_t token;
  const sg_kda_params_t* p = &params.kda;
  if (!sg_kda_begin_block(p)) return;
  const uint32_t splits = (uint32_t)(p->value_dim + SG_KDA_RECURRENT_ROWS - 1) /
                          SG_KDA_RECURRENT_ROWS;
  const uint32_t value_heads = (uint32_t)p->value_heads;
  const uint32_t items =
      (uint32_t)p->counts->decode_count * value_heads * splits;
  for (uint32_t item = sg_block(); item < items; item += sg_grid()) {
    run_item<PIECES, state_t>(p, (int32_t)(item / splits / value_heads),
                              (int32_t)(item / splits % value_heads),
                              (int32_t)(item % splits) * SG_KDA_RECURRENT_ROWS,
                              &token);
  }
}

#define HANDLE(variant, pieces, state_t)                          \
  extern "C" const void* kda_recurrent_##variant##_handle(void) { \
    return sg_kernel_handle(kda_recurrent<pieces, state_t>);      \
  }
HANDLE(fp32_k64, 2, float)
HANDLE(fp32_k128, 4, float)
HANDLE(fp32_k256, 8, float)
HANDLE(bf16_k64, 2, bf16_t)
HANDLE(bf16_k128, 4, bf16_t)
HANDLE(bf16_k256, 8, bf16_t)
