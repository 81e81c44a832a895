// SPDX-License-Identifier: Apache-2.0
//
// kda_chunk_scan on a GPU: the state of one value head carried through the
// tokens of a sequence, 16 at a time. A wave has 16 rows of the state, [v, c],
// in registers, and needs nothing of any other: with a panel's operands
// (panel.h) and v the values of a block,
//
//   D^T [v, r]  = (v - S k_read^T) solve^T
//   o   [r, v]  = q_read S^T + output D
//   S   [v, c] <- decay_c S + D^T k_write^T
//
// which is KDA_SPEC's residual form: w, u and h never exist. Each product's
// left side is where the one before left its sum, so that no operand but the
// panel's passes through shared memory, which holds the next panels already.

#include "kernels/common/device_tile.h"
#include "kernels/common/kda_rows_device.h"
#include "kernels/kda_chunk/panel.h"
#include "kernels/kda_chunk/params.h"

enum {
  WAVES = SG_KDA_SCAN_WAVES,
  THREADS = WAVES * SG_WAVE,
};

extern SG_SHARED
    __attribute__((aligned(16))) unsigned char sg_kda_scan_shared[];

// Where a block of the grid is at work. |count| tokens from |first_token| on.
typedef struct place_t {
  int32_t value_head;
  // First row of the state, which is a column of v and o, of this wave.
  int32_t first_row;
  int64_t first_token;
  int32_t token_count;
  int64_t first_chunk;
} place_t;

template <int32_t KEY_TILES>
struct state_t {
  sg_tile_t tile[KEY_TILES];
};

// Rows of the state beyond value_dim and channels beyond key_dim are zero.
template <int32_t KEY_TILES>
SG_DEVICE void load_state(const sg_kda_params_t* p, const float* state,
                          int32_t first_row, bool fresh,
                          state_t<KEY_TILES>* out_state) {
  const bool reads = !fresh && first_row < p->value_dim;
#pragma unroll
  for (int32_t t = 0; t < KEY_TILES; ++t) {
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; i += SG_TILE_RUN) {
      const int32_t c = t * SG_TILE + sg_tile_column(i);
      const int64_t v = first_row + sg_tile_row(i);
      sg_run_t run = {};
      if (reads && c < p->key_dim) {
        run = *(const sg_run_t*)(state + v * p->key_dim + c);
      }
#pragma unroll
      for (int32_t j = 0; j < SG_TILE_RUN; ++j) {
        out_state->tile[t].value[i + j] = run.value[j];
      }
    }
  }
}

template <int32_t KEY_TILES>
SG_DEVICE void store_state(const sg_kda_params_t* p,
                           const state_t<KEY_TILES>& from, int32_t first_row,
                           float* state) {
  if (first_row >= p->value_dim) return;
#pragma unroll
  for (int32_t t = 0; t < KEY_TILES; ++t) {
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; i += SG_TILE_RUN) {
      const int32_t c = t * SG_TILE + sg_tile_column(i);
      const int64_t v = first_row + sg_tile_row(i);
      sg_run_t run;
#pragma unroll
      for (int32_t j = 0; j < SG_TILE_RUN; ++j) {
        run.value[j] = from.tile[t].value[i + j];
      }
      if (c < p->key_dim) *(sg_run_t*)(state + v * p->key_dim + c) = run;
    }
  }
}

// v^T of the block of 16 tokens from |token| on; zero beyond the sequence.
SG_DEVICE sg_tile_t load_values(const sg_kda_params_t* p, const place_t& place,
                                int32_t token) {
  sg_tile_t values = sg_tile_zero();
  if (place.first_row >= p->value_dim) return values;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    const int32_t r = token + sg_tile_column(i);
    if (r >= place.token_count) continue;
    const int64_t offset = sg_kda_value_offset(
        p, p->v_row_stride, place.first_token + r, place.value_head);
    values.value[i] = sg_load_element(
        p->activation_dtype, p->v, offset + place.first_row + sg_tile_row(i));
  }
  return values;
}

// Whether the rows of o let a lane store its neighbours as one word.
SG_DEVICE bool has_aligned_outputs(const sg_kda_params_t* p) {
  const int64_t bytes = sg_element_bytes(p->activation_dtype);
  const uint64_t places = (uint64_t)p->o | (uint64_t)(p->o_row_stride * bytes);
  return places % (uint64_t)(SG_TILE_RUN * bytes) == 0;
}

SG_DEVICE void store_outputs(const sg_kda_params_t* p, const place_t& place,
                             int32_t token, const sg_tile_t& output) {
  if (place.first_row >= p->value_dim) return;
  const bool aligned = has_aligned_outputs(p);
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; i += SG_TILE_RUN) {
    const int32_t r = token + sg_tile_row(i);
    if (r >= place.token_count) continue;
    const int64_t offset =
        sg_kda_value_offset(p, p->o_row_stride, place.first_token + r,
                            place.value_head) +
        place.first_row + sg_tile_column(i);
    sg_run_t run;
#pragma unroll
    for (int32_t j = 0; j < SG_TILE_RUN; ++j) {
      run.value[j] = output.value[i + j];
    }
    if (aligned) {
      sg_run_store(p->activation_dtype, p->o, offset, run);
      continue;
    }
#pragma unroll
    for (int32_t j = 0; j < SG_TILE_RUN; ++j) {
      sg_store_element(p->activation_dtype, p->o, offset + j, run.value[j]);
    }
  }
}

// Decays the state and adds D^T k_write^T.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void update_state(const sg_operand_t<element_t>& delta,
                            const element_t* k_write, const float* decay,
                            state_t<KEY_TILES>* state) {
#pragma unroll
  for (int32_t t = 0; t < KEY_TILES; ++t) {
    sg_tile_t* tile = &state->tile[t];
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; i += SG_TILE_RUN) {
      const sg_run_t run =
          *(const sg_run_t*)(decay + t * SG_TILE + sg_tile_column(i));
#pragma unroll
      for (int32_t j = 0; j < SG_TILE_RUN; ++j) {
        tile->value[i + j] *= run.value[j];
      }
    }
    sg_tile_accumulate(tile, delta,
                       sg_operand_load(k_write + t * SG_TILE_ELEMENTS));
  }
}

// One block of tokens. |values| is v^T in and o out.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE sg_tile_t scan_block(const unsigned char* panel, sg_tile_t values,
                               state_t<KEY_TILES>* state) {
  const element_t* k_read = (const element_t*)panel;
  const element_t* q_read = k_read + KEY_TILES * SG_TILE_ELEMENTS;
  const element_t* k_write = q_read + KEY_TILES * SG_TILE_ELEMENTS;
  const element_t* solve = k_write + KEY_TILES * SG_TILE_ELEMENTS;
  const element_t* scores = solve + SG_TILE_ELEMENTS;
  const float* decay =
      (const float*)(panel + SG_KDA_PANEL_DECAY_OFFSET(
                                 KEY_TILES, (int32_t)sizeof(element_t)));
  constexpr float RECIPROCAL =
      1.0f / SG_KDA_PANEL_FACTOR((int32_t)sizeof(element_t));
  // A product waits for the one before on the same sum. Two sums of each keep
  // the matrix unit busy; fp32 products are longer and have no registers left.
  constexpr int32_t CHAINS = sizeof(element_t) == 2 ? 2 : 1;
  sg_tile_t prediction[CHAINS], output[CHAINS];
#pragma unroll
  for (int32_t i = 0; i < CHAINS; ++i) {
    prediction[i] = output[i] = sg_tile_zero();
  }
#pragma unroll
  for (int32_t t = 0; t < KEY_TILES; ++t) {
    sg_operand_t<element_t> s;
    sg_operand_from(state->tile[t], &s);
    sg_tile_multiply(&prediction[t % CHAINS], s,
                     sg_operand_load(k_read + t * SG_TILE_ELEMENTS));
    sg_tile_multiply(&output[t % CHAINS],
                     sg_operand_load(q_read + t * SG_TILE_ELEMENTS), s);
  }
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
#pragma unroll
    for (int32_t j = 1; j < CHAINS; ++j) {
      prediction[0].value[i] += prediction[j].value[i];
      output[0].value[i] += output[j].value[i];
    }
    values.value[i] -= prediction[0].value[i] * RECIPROCAL;
    output[0].value[i] *= RECIPROCAL;
  }
  sg_operand_t<element_t> residual, delta;
  sg_operand_from(values, &residual);
  sg_tile_t solved = sg_tile_zero();
  sg_tile_multiply(&solved, residual, sg_operand_load(solve));
  // k_write and the scores have the factor.
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) solved.value[i] *= RECIPROCAL;
  sg_operand_from(solved, &delta);
  sg_tile_multiply(&output[0], sg_operand_load(scores), delta);
  update_state<KEY_TILES>(delta, k_write, decay, state);
  return output[0];
}

template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void scan_sequence(const sg_kda_chunk_params_t* params,
                             const place_t& place, state_t<KEY_TILES>* state) {
  constexpr int32_t PANEL_BYTES =
      SG_KDA_PANEL_BYTES(KEY_TILES, (int32_t)sizeof(element_t));
  const sg_kda_params_t* p = &params->kda;
  const int32_t per_chunk = params->chunk_size / SG_TILE;
  const auto panels = [&](int32_t number) {
    const int64_t chunk = place.first_chunk + number / per_chunk;
    const int64_t row = chunk * p->value_heads + place.value_head;
    return params->panels +
           (row * per_chunk + number % per_chunk) * PANEL_BYTES;
  };
  const int32_t count = (place.token_count + SG_TILE - 1) / SG_TILE;
  sg_stream_t<PANEL_BYTES, THREADS> stream;
  stream.start(sg_kda_scan_shared, panels, count);
  sg_tile_t ahead = load_values(p, place, 0);
  for (int32_t number = 0; number < count; ++number) {
    const unsigned char* panel = stream.next(panels, number, count);
    const sg_tile_t values = ahead;
    ahead = load_values(p, place, (number + 1) * SG_TILE);
    const sg_tile_t output =
        scan_block<KEY_TILES, element_t>(panel, values, state);
    store_outputs(p, place, number * SG_TILE, output);
  }
  // The next item's first panels go where the last ones are.
  sg_block_barrier();
}

SG_DEVICE void zero_outputs(const sg_kda_params_t* p, const place_t& place) {
  for (int32_t t = 0; t < place.token_count; t += SG_TILE) {
    store_outputs(p, place, t, sg_tile_zero());
  }
}

template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void run_item(const sg_kda_chunk_params_t* params, int32_t sequence,
                        place_t place) {
  const sg_kda_params_t* p = &params->kda;
  place.first_token = p->query_start_loc[sequence];
  place.token_count =
      (int32_t)(p->query_start_loc[sequence + 1] - place.first_token);
  if (place.token_count == 0) return;
  if (!sg_kda_has_slot(p, sequence)) {
    zero_outputs(p, place);
    return;
  }
  place.first_chunk = params->chunk_offsets[sequence];
  float* memory = sg_kda_state_of(p, sequence, place.value_head);
  state_t<KEY_TILES> state;
  load_state(p, memory, place.first_row, p->computed_lens[sequence] == 0,
             &state);
  scan_sequence<KEY_TILES, element_t>(params, place, &state);
  store_state(p, state, place.first_row, memory);
}

template <int32_t KEY_TILES, typename element_t>
__global__ void SG_LAUNCH_BOUNDS(THREADS,
                                 SG_KDA_SCAN_RESIDENT(KEY_TILES,
                                                      sizeof(element_t)))
    kda_chunk_scan(sg_kda_chunk_params_t params) {
  const sg_kda_params_t* p = &params.kda;
  sg_kda_fix_dtype<element_t>(&params.kda);
  if (!sg_kda_begin_block(p)) return;
  const uint32_t splits = (uint32_t)params.split_count;
  const uint32_t value_heads = (uint32_t)p->value_heads;
  const int32_t first = p->counts->decode_count;
  const uint32_t items =
      (uint32_t)(p->counts->sequence_count - first) * value_heads * splits;
  for (uint32_t item = sg_block(); item < items; item += sg_grid()) {
    place_t place = {};
    place.value_head = (int32_t)(item / splits % value_heads);
    place.first_row = ((int32_t)(item % splits) * WAVES + sg_wave()) * SG_TILE;
    run_item<KEY_TILES, element_t>(
        &params, first + (int32_t)(item / splits / value_heads), place);
  }
}

#define HANDLE(variant, key_tiles, element_t)                       \
  extern "C" const void* kda_chunk_scan_##variant##_handle(void) {  \
    return sg_kernel_handle_shared(                                 \
        kda_chunk_scan<key_tiles, element_t>,                       \
        SG_KDA_PANEL_BYTES(key_tiles, (int32_t)sizeof(element_t)) * \
            SG_STREAM_STAGES);                                      \
  }
HANDLE(bf16_k64, 4, sg_fp16_t)
HANDLE(bf16_k128, 8, sg_fp16_t)
HANDLE(bf16_k256, 16, sg_fp16_t)
HANDLE(fp32_k64, 4, float)
HANDLE(fp32_k128, 8, float)
HANDLE(fp32_k256, 16, float)
