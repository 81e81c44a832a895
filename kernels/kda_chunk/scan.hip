// SPDX-License-Identifier: Apache-2.0
//
// kda_chunk_scan on a GPU: the state of one value head carried through the
// tokens of a sequence, 16 at a time. A wave has 16 rows of the state, [v, c],
// in registers, and needs nothing of any other: with a panel's operands
// (panel.h) and v the values of a block,
//
//   D^T [v, r]  = (v^T - S k_read^T) solve^T
//   o^T [v, r]  = S q_read^T + D^T output^T
//   S   [v, c] <- decay_c S + D^T k_write^T
//
// which is KDA_SPEC's residual form: w, u and h never exist. Each product's
// left side is where the one before left its sum, so that no operand but the
// panel's passes through shared memory, which holds the next panels already.
// scan_block.h has the products.

#include "kernels/common/kda_rows_device.h"
#include "kernels/kda_chunk/params.h"
#include "kernels/kda_chunk/scan_block.h"

enum {
  WAVES = SG_KDA_SCAN_WAVES,
  THREADS = WAVES * SG_WAVE,
  // Blocks of tokens whose values are on their way from memory.
  AHEAD = 2,
};

extern SG_SHARED
    __attribute__((aligned(16))) unsigned char sg_kda_scan_shared[];

// Where a block of the grid is at work.
typedef struct place_t {
  int32_t value_head;
  // First row of the state, which is a column of v and o, of this wave.
  int32_t first_row;
  int64_t first_token;
  int32_t token_count;
  int64_t first_chunk;
} place_t;

// Panels of a sequence and value head, in order.
typedef struct panels_t {
  const unsigned char* panel;
  int64_t panel_bytes;
  // From the last block of a chunk to the first of the next.
  int64_t chunk_bytes;
  int32_t per_chunk;
  int32_t left;  // in the chunk

  SG_DEVICE_MEMBER const unsigned char* next(void) {
    const unsigned char* result = panel;
    left = left > 1 ? left - 1 : per_chunk;
    panel += left == per_chunk ? chunk_bytes : panel_bytes;
    return result;
  }
} panels_t;

// A tile of v as it is in memory.
typedef struct raw_tile_t {
  uint32_t bits[SG_TILE_VALUES];
} raw_tile_t;

// Rows of the state beyond value_dim and channels beyond key_dim are zero.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void load_state(const sg_kda_params_t* p, int64_t offset,
                          int32_t first_row, bool fresh,
                          sg_scan_state_t<KEY_TILES>* out_state) {
  const bool reads = !fresh && first_row < p->value_dim;
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    out_state->exponent[j] =
        SG_SCAN_IS_SCALED<element_t> && !reads ? SG_SCAN_EXPONENT_MIN : 0;
  }
#pragma unroll
  for (int32_t t = 0; t < KEY_TILES; ++t) {
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; i += SG_TILE_RUN) {
      const int32_t c = t * SG_TILE + sg_tile_column(i);
      const int64_t v = first_row + sg_tile_row(i);
      sg_run_t run = {};
      if (reads && c < p->key_dim) {
        run =
            sg_run_load(p->state_dtype, p->state, offset + v * p->key_dim + c);
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
                           const sg_scan_state_t<KEY_TILES>& from,
                           int32_t first_row, int64_t offset) {
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
        run.value[j] = from.tile[t].value[i + j] *
                       sg_power_of_two(from.exponent[sg_tile_row_index(i + j)]);
      }
      if (c < p->key_dim) {
        sg_run_store(p->state_dtype, p->state, offset + v * p->key_dim + c,
                     run);
      }
    }
  }
}

// The lane's elements of v^T or o^T in memory, 16 tokens at a time.
typedef struct rows_t {
  int64_t first;  // of the lane's element 0
  int64_t stride;
  int32_t left;  // tokens from the block's first on

  SG_DEVICE_MEMBER bool has(int32_t i) const {
    return sg_tile_column(i) < left;
  }
  SG_DEVICE_MEMBER int64_t offset(int32_t i) const {
    return first + (sg_tile_column(i) - sg_tile_column(0)) * stride +
           (sg_tile_row(i) - sg_tile_row(0));
  }
  SG_DEVICE_MEMBER void advance(void) {
    first += SG_TILE * stride;
    left -= SG_TILE;
  }
} rows_t;

SG_DEVICE rows_t rows_of(const sg_kda_params_t* p, const place_t& place,
                         int64_t stride) {
  rows_t rows;
  rows.stride = stride;
  rows.left = place.first_row < p->value_dim ? place.token_count : 0;
  rows.first =
      sg_kda_value_offset(p, stride, place.first_token + sg_tile_column(0),
                          place.value_head) +
      place.first_row + sg_tile_row(0);
  return rows;
}

// Zero beyond the sequence.
SG_DEVICE raw_tile_t load_values(const sg_kda_params_t* p, rows_t* rows) {
  raw_tile_t values = {};
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    if (!rows->has(i)) continue;
    values.bits[i] = sg_load_bits(p->activation_dtype, p->v, rows->offset(i));
  }
  rows->advance();
  return values;
}

SG_DEVICE sg_tile_t values_of(const sg_kda_params_t* p, const raw_tile_t& raw) {
  sg_tile_t values;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    values.value[i] = sg_element_of_bits(p->activation_dtype, raw.bits[i]);
  }
  return values;
}

SG_DEVICE void store_outputs(const sg_kda_params_t* p, const sg_tile_t& output,
                             rows_t* rows) {
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    if (!rows->has(i)) continue;
    sg_store_element(p->activation_dtype, p->o, rows->offset(i),
                     output.value[i]);
  }
  rows->advance();
}

template <int32_t KEY_TILES, typename element_t, typename stream_t>
SG_DEVICE void scan_sequence(const sg_kda_chunk_params_t* params,
                             const place_t& place, stream_t* stream,
                             sg_scan_state_t<KEY_TILES>* state) {
  constexpr int64_t BYTES =
      SG_KDA_PANEL_BYTES(KEY_TILES, (int32_t)sizeof(element_t));
  const sg_kda_params_t* p = &params->kda;
  const int32_t per_chunk = params->chunk_size / SG_TILE;
  const int64_t row = place.first_chunk * p->value_heads + place.value_head;
  panels_t panels = {params->panels + row * per_chunk * BYTES, BYTES,
                     (int64_t)(p->value_heads - 1) * per_chunk * BYTES + BYTES,
                     per_chunk, per_chunk};
  const int32_t count = (place.token_count + SG_TILE - 1) / SG_TILE;
  stream->start(&panels, count);
  rows_t inputs = rows_of(p, place, p->v_row_stride);
  rows_t outputs = rows_of(p, place, p->o_row_stride);
  raw_tile_t ahead[AHEAD];
#pragma unroll
  for (int32_t i = 0; i < AHEAD; ++i) ahead[i] = load_values(p, &inputs);
  for (int32_t left = count; left > 0; --left) {
    const unsigned char* panel = stream->next(&panels, left);
    const sg_tile_t values = values_of(p, ahead[0]);
#pragma unroll
    for (int32_t i = 0; i + 1 < AHEAD; ++i) ahead[i] = ahead[i + 1];
    ahead[AHEAD - 1] = load_values(p, &inputs);
    const sg_tile_t output =
        sg_scan_block<KEY_TILES, element_t>(panel, values, state);
    store_outputs(p, output, &outputs);
  }
  // The next item's first panels go where the last ones are.
  sg_block_barrier();
}

SG_DEVICE void zero_outputs(const sg_kda_params_t* p, const place_t& place) {
  rows_t outputs = rows_of(p, place, p->o_row_stride);
  while (outputs.left > 0) store_outputs(p, sg_tile_zero(), &outputs);
}

template <int32_t KEY_TILES, typename element_t, typename stream_t>
SG_DEVICE void run_item(const sg_kda_chunk_params_t* params, int32_t sequence,
                        place_t place, stream_t* stream) {
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
  const int64_t offset = sg_kda_state_offset(p, sequence, place.value_head);
  sg_scan_state_t<KEY_TILES> state;
  load_state<KEY_TILES, element_t>(p, offset, place.first_row,
                                   p->computed_lens[sequence] == 0, &state);
  scan_sequence<KEY_TILES, element_t>(params, place, stream, &state);
  store_state(p, state, place.first_row, offset);
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
  sg_stream_t<SG_KDA_PANEL_BYTES(KEY_TILES, (int32_t)sizeof(element_t)),
              THREADS>
      stream;
  stream.open(sg_kda_scan_shared);
  for (uint32_t item = sg_block(); item < items; item += sg_grid()) {
    place_t place = {};
    place.value_head = (int32_t)(item / splits % value_heads);
    place.first_row = ((int32_t)(item % splits) * WAVES + sg_wave()) * SG_TILE;
    run_item<KEY_TILES, element_t>(
        &params, first + (int32_t)(item / splits / value_heads), place,
        &stream);
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
