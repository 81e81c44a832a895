// SPDX-License-Identifier: Apache-2.0
//
// kda_chunk_prepare on a GPU: what a block of 16 tokens contributes that does
// not depend on the state, as a panel (panel.h). A thread has one channel and
// the block's 16 rows of it in registers, so that running sums need nobody
// else; matrix products and the norms go through shared memory.
// prepare_scores.h has the products.

#include "kernels/common/kda_rows_device.h"
#include "kernels/kda_chunk/params.h"
#include "kernels/kda_chunk/prepare_scores.h"

extern SG_SHARED
    __attribute__((aligned(16))) unsigned char sg_kda_prepare_shared[];

// The block of tokens that a block of the grid works on.
typedef struct place_t {
  int64_t first_token;
  int32_t count;
  int32_t value_head;
} place_t;

// A channel's rows as they are in memory, from the one at |first| on; those
// beyond |count| are the last again, so that no load waits for a comparison.
template <typename bits_t>
SG_DEVICE void load_bits(const bits_t* first, int64_t stride, int32_t count,
                         uint32_t bits[ROWS]) {
  if (count == ROWS) {
#pragma unroll
    for (int32_t r = 0; r < ROWS; ++r, first += stride) bits[r] = *first;
  } else {
#pragma unroll
    for (int32_t r = 0; r < ROWS; ++r) {
      bits[r] = *first;
      if (r + 1 < count) first += stride;
    }
  }
}

SG_DEVICE void load_rows(int32_t dtype, const void* tensor, int64_t first,
                         int64_t stride, int32_t count, uint32_t bits[ROWS]) {
  if (dtype == SG_DTYPE_FP32) {
    load_bits((const uint32_t*)tensor + first, stride, count, bits);
  } else {
    load_bits((const uint16_t*)tensor + first, stride, count, bits);
  }
}

// Rows beyond the tokens and channels beyond key_dim are zero. All loads are on
// their way before the first is used.
SG_DEVICE void load_channel(const sg_kda_params_t* p, const place_t& place,
                            channel_t* channel) {
  const int32_t count = sg_thread() < p->key_dim ? place.count : 0;
  const int32_t c = sg_thread() < p->key_dim ? sg_thread() : 0;
  const int32_t dtype = p->activation_dtype;
  const int32_t gate_dtype = sg_kda_gate_dtype(p);
  const int32_t head = place.value_head;
  const int64_t token = place.first_token;
  uint32_t k[ROWS], q[ROWS], gate[ROWS];
  load_rows(dtype, p->k, sg_kda_key_offset(p, p->k_row_stride, token, head) + c,
            p->k_row_stride, count, k);
  load_rows(dtype, p->q, sg_kda_key_offset(p, p->q_row_stride, token, head) + c,
            p->q_row_stride, count, q);
  load_rows(gate_dtype, p->raw_g, sg_kda_gate_offset(p, token, head) + c,
            p->g_row_stride, count, gate);
  const sg_kda_channel_t gates = sg_kda_load_channel(p, head, c);
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    channel->k[r] = sg_element_of_bits(dtype, k[r]);
    channel->q[r] = sg_element_of_bits(dtype, q[r]);
    channel->decay[r] = sg_element_of_bits(gate_dtype, gate[r]);
  }
  sg_kda_log_decays<ROWS>(p, gates, channel->decay);
  if (count == ROWS) return;
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    if (r < count) continue;
    channel->k[r] = channel->q[r] = channel->decay[r] = 0.0f;
  }
}

// Of the thread's token, for threads below ROWS.
SG_DEVICE float load_beta(const sg_kda_params_t* p, const place_t& place) {
  const int32_t r = sg_thread();
  return r < ROWS && r < place.count
             ? sg_kda_beta(p, place.first_token + r, place.value_head)
             : 0.0f;
}

// Divides k and q by their norms, q with the scale, and leaves beta.
template <typename shared_type>
SG_DEVICE void normalise(const sg_kda_params_t* p, float beta,
                         channel_t* channel, shared_type* shared) {
  float squares[2 * ROWS];
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    squares[r] = channel->k[r] * channel->k[r];
    squares[ROWS + r] = channel->q[r] * channel->q[r];
  }
  sg_wave_sum_32(squares);
  if (sg_lane() < 2 * ROWS) shared->squares[sg_wave()][sg_lane()] = squares[0];
  sg_block_barrier();
  const int32_t i = sg_thread();
  if (i < 2 * ROWS) {
    float sum = 0.0f;
    for (int32_t wave = 0; wave < shared_type::WAVES; ++wave) {
      sum += shared->squares[wave][i];
    }
    const float factor = p->qk_l2norm ? sg_reciprocal_root(sum + 1e-6f) : 1.0f;
    shared->factors[i] = i < ROWS ? factor : factor * p->scale;
  }
  if (i < ROWS) shared->beta[i] = beta;
  sg_block_barrier();
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    channel->k[r] *= shared->factors[r];
    channel->q[r] *= shared->factors[ROWS + r];
  }
}

// The channel's column of k_read and q_read, row of k_write, and decay. Those
// of k_write are summed from the last row back, so that the decays of the last
// rows, which weigh most, are exact.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void put_channel(const channel_t& channel, unsigned char* panel) {
  constexpr int32_t SIZE = KEY_TILES * SG_TILE_ELEMENTS;
  const int32_t c = sg_thread() % SG_TILE;
  element_t* tile =
      (element_t*)panel + sg_thread() / SG_TILE * SG_TILE_ELEMENTS;
  float sum = 0.0f;
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    sum += channel.decay[r];
    const float decay = sg_exp2(sum) * FACTOR<element_t>;
    sg_element_set(&tile[sg_tile_index(r, c)], channel.k[r] * decay);
    sg_element_set(&tile[SIZE + sg_tile_index(r, c)], channel.q[r] * decay);
  }
  float* decays = (float*)(panel + SG_KDA_PANEL_DECAY_OFFSET(
                                       KEY_TILES, (int32_t)sizeof(element_t)));
  decays[sg_thread()] = sg_exp2(sum);
  sum = 0.0f;
  float write[ROWS];
#pragma unroll
  for (int32_t r = ROWS - 1; r >= 0; --r) {
    write[r] = channel.k[r] * (sg_exp2(sum) * FACTOR<element_t>);
    sum += channel.decay[r];
  }
#pragma unroll
  for (int32_t quad = 0; quad < ROWS / 4; ++quad) {
    float values[4];
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
      values[i] = write[sg_tile_quad_column(quad, i)];
    }
    sg_quad_set(
        &tile[2 * SIZE + sg_tile_index(c, sg_tile_quad_column(quad, 0))],
        values);
  }
}

template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void prepare_block(const sg_kda_params_t* p, const place_t& place,
                             unsigned char* out_panel) {
  constexpr int32_t BYTES =
      SG_KDA_PANEL_BYTES(KEY_TILES, (int32_t)sizeof(element_t));
  typedef shared_t<KEY_TILES, element_t> shared_type;
  shared_type* shared = (shared_type*)sg_kda_prepare_shared;
  channel_t channel;
  const float beta = load_beta(p, place);
  load_channel(p, place, &channel);
  normalise(p, beta, &channel, shared);
  make_scores<KEY_TILES>(channel, place.count, shared);
  put_channel<KEY_TILES, element_t>(channel, shared->region);
  element_t* solve =
      (element_t*)shared->region + 3 * KEY_TILES * SG_TILE_ELEMENTS;
  if (sg_thread() < ROWS) put_solve(shared, solve);
  put_scores<KEY_TILES>(shared, solve + SG_TILE_ELEMENTS);
  sg_block_barrier();
  for (int32_t i = sg_thread() * 16; i < BYTES; i += THREADS<KEY_TILES> * 16) {
    sg_store_16(out_panel + i, sg_load_16(shared->region + i));
  }
  sg_block_barrier();
}

template <int32_t KEY_TILES, typename element_t>
__global__ void SG_LAUNCH_BOUNDS(THREADS<KEY_TILES>,
                                 SG_KDA_PREPARE_RESIDENT(KEY_TILES,
                                                         sizeof(element_t)))
    kda_chunk_prepare(sg_kda_chunk_params_t params) {
  const sg_kda_params_t* p = &params.kda;
  sg_kda_fix_dtype<element_t>(&params.kda);
  const sg_batch_counts_t* counts = p->counts;
  if (counts->error_code != SG_STEP_ERROR_NONE) return;
  const uint32_t per_chunk = (uint32_t)params.chunk_size / SG_TILE;
  const uint32_t value_heads = (uint32_t)p->value_heads;
  const uint32_t items =
      (uint32_t)counts->chunk_count * value_heads * per_chunk;
  for (uint32_t item = sg_block(); item < items; item += sg_grid()) {
    const int64_t row = item / per_chunk / value_heads;
    const int32_t sequence = params.chunk_indices[2 * row];
    const int64_t end = p->query_start_loc[sequence + 1];
    place_t place;
    place.value_head = (int32_t)(item / per_chunk % value_heads);
    place.first_token =
        p->query_start_loc[sequence] +
        (int64_t)params.chunk_indices[2 * row + 1] * params.chunk_size +
        item % per_chunk * SG_TILE;
    if (place.first_token >= end || !sg_kda_has_slot(p, sequence)) continue;
    const int64_t left = end - place.first_token;
    place.count = left < ROWS ? (int32_t)left : (int32_t)ROWS;
    prepare_block<KEY_TILES, element_t>(
        p, place,
        params.panels +
            (int64_t)item *
                SG_KDA_PANEL_BYTES(KEY_TILES, (int32_t)sizeof(element_t)));
  }
}

#define HANDLE(variant, key_tiles, element_t)                         \
  static_assert(                                                      \
      sizeof(shared_t<key_tiles, element_t>) ==                       \
          SG_KDA_PREPARE_SHARED_BYTES(key_tiles, sizeof(element_t),   \
                                      (key_tiles)*SG_TILE / SG_WAVE), \
      "launches ask for this size");                                  \
  extern "C" const void* kda_chunk_prepare_##variant##_handle(void) { \
    return sg_kernel_handle_shared(                                   \
        kda_chunk_prepare<key_tiles, element_t>,                      \
        (int32_t)sizeof(shared_t<key_tiles, element_t>));             \
  }
HANDLE(bf16_k64, 4, sg_fp16_t)
HANDLE(bf16_k128, 8, sg_fp16_t)
HANDLE(bf16_k256, 16, sg_fp16_t)
HANDLE(fp32_k64, 4, float)
HANDLE(fp32_k128, 8, float)
HANDLE(fp32_k256, 16, float)
