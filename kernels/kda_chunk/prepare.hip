// SPDX-License-Identifier: Apache-2.0
//
// kda_chunk_prepare on a GPU: what a block of 16 tokens contributes that does
// not depend on the state, as a panel (panel.h). A thread has one channel and
// the block's 16 rows of it in registers, so that running sums need nobody
// else; matrix products and the norms go through shared memory.
//
// The scores
//
//   A[r, s] = beta_r sum_c k^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s < r
//   Q[r, s] =        sum_c q^[r, c] k^[s, c] E(G[r, c] - G[s, c])    s <= r
//
// become matrix products by splitting the exponential into a factor of row r
// and one of row s. The block is cut into segments of rows: a segment ends
// before the row at which some channel has decayed by more than 2^SEGMENT_FLOOR
// since its first row a. With P the running sum from a, rows r of the segment
// have the factor E(P[r]) 2^HALF, and rows s the factor E(-P[s]) 2^-HALF within
// the segment, E(G[a] - G[s]) 2^-HALF before it: all within 2^60 of 1, so that
// nothing overflows and no valid factor is subnormal. Lower bounds of -5 make
// one segment; sixteen are the worst case, after hard resets. Segments depend
// on earlier rows only, and so does each score: later tokens cannot change the
// bits of earlier outputs.
//
// Scores and the inverse are fp32 throughout, whatever the activations are:
// near-equal keys with beta near 1 need it.

#include "kernels/common/device_tile.h"
#include "kernels/common/kda_rows_device.h"
#include "kernels/kda_chunk/panel.h"
#include "kernels/kda_chunk/params.h"

#define SEGMENT_FLOOR -120.0f
#define GROWTH 0x1p60f
#define SHRINK 0x1p-60f

enum { ROWS = SG_TILE };

extern SG_SHARED
    __attribute__((aligned(16))) unsigned char sg_kda_prepare_shared[];

template <int32_t KEY_TILES>
static constexpr int32_t THREADS = KEY_TILES* SG_TILE;

template <typename element_t>
static constexpr float FACTOR = SG_KDA_PANEL_FACTOR((int32_t)sizeof(element_t));

template <int32_t KEY_TILES, typename element_t>
struct shared_t {
  static constexpr int32_t WAVES = THREADS<KEY_TILES> / SG_WAVE;
  // Operands of the scores, packed tiles [left k, left q, right][KEY_TILES];
  // then the panel.
  unsigned char region[SG_KDA_PREPARE_REGION_BYTES(KEY_TILES,
                                                   (int32_t)sizeof(element_t))];
  float products[WAVES][2][SG_TILE_ELEMENTS];
  float scores[2][ROWS][ROWS];  // A, then Q
  float squares[WAVES][2 * ROWS];
  float factors[2 * ROWS];  // of k, then q
  float beta[ROWS];
  uint64_t words[8];
} __attribute__((aligned(16)));

// One channel's rows.
typedef struct channel_t {
  float k[ROWS];
  float q[ROWS];
  float decay[ROWS];  // base-2 logarithms
} channel_t;

// The block of tokens that a block of the grid works on.
typedef struct place_t {
  int64_t first_token;
  int32_t count;
  int32_t value_head;
} place_t;

// Rows beyond the tokens and channels beyond key_dim are zero.
SG_DEVICE void load_channel(const sg_kda_params_t* p, const place_t& place,
                            channel_t* channel) {
  const int32_t c = sg_thread();
  const bool real = c < p->key_dim;
  sg_kda_channel_t gate = {0.0f, 1.0f};
  if (real) gate = sg_kda_load_channel(p, place.value_head, c);
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    channel->k[r] = channel->q[r] = channel->decay[r] = 0.0f;
    if (!real || r >= place.count) continue;
    const int64_t token = place.first_token + r;
    channel->k[r] = sg_load_element(
        p->activation_dtype, p->k,
        sg_kda_key_offset(p, p->k_row_stride, token, place.value_head) + c);
    channel->q[r] = sg_load_element(
        p->activation_dtype, p->q,
        sg_kda_key_offset(p, p->q_row_stride, token, place.value_head) + c);
    channel->decay[r] = sg_kda_load_gate(p, token, place.value_head, c);
  }
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    if (!real || r >= place.count) continue;
    channel->decay[r] = sg_kda_log_decay(p, gate, channel->decay[r]);
  }
}

// Divides k and q by their norms, q with the scale, and leaves beta.
template <typename shared_type>
SG_DEVICE void normalise(const sg_kda_params_t* p, const place_t& place,
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
  if (i < ROWS) {
    shared->beta[i] = i < place.count ? sg_kda_beta(p, place.first_token + i,
                                                    place.value_head)
                                      : 0.0f;
  }
  sg_block_barrier();
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    channel->k[r] *= shared->factors[r];
    channel->q[r] *= shared->factors[ROWS + r];
  }
}

// The row after the last of the segment that starts at row |first|.
SG_DEVICE int32_t find_segment(const channel_t& channel, int32_t first,
                               int32_t count, uint64_t* words) {
  int32_t end = count;
  float sum = 0.0f;
#pragma unroll
  for (int32_t r = 1; r < ROWS; ++r) {
    if (r <= first || r >= end) continue;
    sum += channel.decay[r];
    if (sum < SEGMENT_FLOOR) end = r;
  }
  return (int32_t)sg_block_min((uint64_t)end, words);
}

// The channel's column of the operands of a segment's scores.
template <int32_t KEY_TILES>
SG_DEVICE void put_operands(const channel_t& channel, int32_t first,
                            int32_t end, float* operands) {
  constexpr int32_t SIZE = KEY_TILES * SG_TILE_ELEMENTS;
  const int32_t c = sg_thread() % SG_TILE;
  float* tile = operands + sg_thread() / SG_TILE * SG_TILE_ELEMENTS;
  float sum = 0.0f;
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    const bool inside = r >= first && r < end;
    if (r > first && inside) sum += channel.decay[r];
    const float decay = inside ? sg_exp2(sum) * GROWTH : 0.0f;
    const int32_t at = sg_tile_index(r, c);
    tile[at] = channel.k[r] * decay;
    tile[SIZE + at] = channel.q[r] * decay;
    tile[2 * SIZE + at] =
        inside ? channel.k[r] * (sg_exp2(-sum) * SHRINK) : 0.0f;
  }
  sum = 0.0f;
#pragma unroll
  for (int32_t r = ROWS - 2; r >= 0; --r) {
    if (r >= first) continue;
    sum += channel.decay[r + 1];
    tile[2 * SIZE + sg_tile_index(r, c)] =
        channel.k[r] * (sg_exp2(sum) * SHRINK);
  }
}

// Each wave multiplies some of the key tiles.
template <int32_t KEY_TILES, int32_t WAVES>
SG_DEVICE void multiply_scores(const float* operands,
                               float products[2][SG_TILE_ELEMENTS]) {
  constexpr int32_t SIZE = KEY_TILES * SG_TILE_ELEMENTS;
  sg_tile_t kk = sg_tile_zero(), qk = sg_tile_zero();
#pragma unroll
  for (int32_t i = 0; i < KEY_TILES / WAVES; ++i) {
    const float* tile = operands + (i * WAVES + sg_wave()) * SG_TILE_ELEMENTS;
    const sg_right_t<float> right = sg_right_load(tile + 2 * SIZE);
    sg_tile_multiply(&kk, sg_left_load(tile), right);
    sg_tile_multiply(&qk, sg_left_load(tile + SIZE), right);
  }
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    products[0][sg_lane() * SG_TILE_VALUES + i] = kk.value[i];
    products[1][sg_lane() * SG_TILE_VALUES + i] = qk.value[i];
  }
}

// Adds up the waves' products for rows |first| to |end| - 1. What pairs with a
// later row is undefined in the product, infinite at times, and replaced by 0.
template <typename shared_type>
SG_DEVICE void combine_scores(shared_type* shared, int32_t first, int32_t end) {
#pragma unroll
  for (int32_t base = 0; base < SG_TILE_VALUES; base += shared_type::WAVES) {
    const int32_t i = base + sg_wave();
    const int32_t r = sg_tile_row(i);
    const int32_t s = sg_tile_column(i);
    if (i >= SG_TILE_VALUES || r < first || r >= end) continue;
    float kk = 0.0f, qk = 0.0f;
    for (int32_t wave = 0; wave < shared_type::WAVES; ++wave) {
      kk += shared->products[wave][0][sg_lane() * SG_TILE_VALUES + i];
      qk += shared->products[wave][1][sg_lane() * SG_TILE_VALUES + i];
    }
    shared->scores[0][r][s] = s < r ? shared->beta[r] * kk : 0.0f;
    shared->scores[1][r][s] = s <= r ? qk : 0.0f;
  }
}

template <int32_t KEY_TILES, typename shared_type>
SG_DEVICE void make_scores(const channel_t& channel, int32_t count,
                           shared_type* shared) {
  for (int32_t i = sg_thread(); i < 2 * ROWS * ROWS; i += THREADS<KEY_TILES>) {
    (&shared->scores[0][0][0])[i] = 0.0f;
  }
  float* operands = (float*)shared->region;
  for (int32_t first = 0; first < count;) {
    const int32_t end = find_segment(channel, first, count, shared->words);
    put_operands<KEY_TILES>(channel, first, end, operands);
    sg_block_barrier();
    multiply_scores<KEY_TILES, shared_type::WAVES>(operands,
                                                   shared->products[sg_wave()]);
    sg_block_barrier();
    combine_scores(shared, first, end);
    first = end;
  }
  sg_block_barrier();
}

// A thread's column of (I + A)^-1 diag(beta), by forward substitution, and of
// Q.
template <typename element_t, typename shared_type>
SG_DEVICE void put_solve(const shared_type* shared, element_t* solve) {
  const int32_t column = sg_thread();
  const float beta = shared->beta[column];
  float x[ROWS];
#pragma unroll
  for (int32_t r = 0; r < ROWS; ++r) {
    float value = r == column ? 1.0f : 0.0f;
#pragma unroll
    for (int32_t s = 0; s < r; ++s) value -= shared->scores[0][r][s] * x[s];
    x[r] = value;
    // What is zero stays so with a beta that is not a number.
    sg_element_set(&solve[sg_tile_index(r, column)],
                   r < column ? 0.0f : value * beta);
    sg_element_set(&solve[SG_TILE_ELEMENTS + sg_tile_index(r, column)],
                   shared->scores[1][r][column] * FACTOR<element_t>);
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
#pragma unroll
  for (int32_t r = ROWS - 1; r >= 0; --r) {
    sg_element_set(&tile[2 * SIZE + sg_tile_index(c, r)],
                   channel.k[r] * (sg_exp2(sum) * FACTOR<element_t>));
    sum += channel.decay[r];
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
  load_channel(p, place, &channel);
  normalise(p, place, &channel, shared);
  make_scores<KEY_TILES>(channel, place.count, shared);
  put_channel<KEY_TILES, element_t>(channel, shared->region);
  if (sg_thread() < ROWS) {
    put_solve(shared,
              (element_t*)shared->region + 3 * KEY_TILES * SG_TILE_ELEMENTS);
  }
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
