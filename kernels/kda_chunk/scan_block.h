// SPDX-License-Identifier: Apache-2.0
//
// What kda_chunk_scan does with one panel on a GPU: a wave's 16 rows of the
// state read by 16 tokens, and written by them. Device code.
//
// D is an operand of the state's update with a factor of its row, like the
// state itself (scan_state.h). Where outputs are made of the residual and of D
// these keep the range of fp32: with one factor for all tokens of a row, later
// tokens would change the bits of earlier outputs.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_BLOCK_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_BLOCK_H_

#include "kernels/kda_chunk/panel.h"
#include "kernels/kda_chunk/scan_state.h"

// Of SG_KDA_PANEL_FACTOR.
#define SG_SCAN_PANEL_EXPONENT 14
// The largest element of a residual becomes an operand of up to 2^9, D one of
// up to 2^15: of 16 products with elements of the inverse, which are below 4.
#define SG_SCAN_RESIDUAL_TARGET 8
// Rounding makes numbers from here on infinite.
#define SG_SCAN_LIMIT 0x1.ffep127f

static_assert(SG_KDA_PANEL_FACTOR(2) == 0x1p14f, "SG_SCAN_PANEL_EXPONENT");

// Packed tiles of a panel.
template <int32_t KEY_TILES, typename element_t>
struct sg_panel_t {
  const element_t* k_read;
  const element_t* q_read;
  const element_t* k_write;
  const element_t* solve;
  const element_t* scores;
  const float* decay;

  SG_DEVICE_MEMBER explicit sg_panel_t(const unsigned char* bytes) {
    k_read = (const element_t*)bytes;
    q_read = k_read + KEY_TILES * SG_TILE_ELEMENTS;
    k_write = q_read + KEY_TILES * SG_TILE_ELEMENTS;
    solve = k_write + KEY_TILES * SG_TILE_ELEMENTS;
    scores = solve + SG_TILE_ELEMENTS;
    decay = (const float*)(bytes + SG_KDA_PANEL_DECAY_OFFSET(
                                       KEY_TILES, (int32_t)sizeof(element_t)));
  }
};

// The products of the state with k_read, then, of the same operands, with
// q_read: S k_read^T and S q_read^T, as they are held. |out_most| are the
// largest pairs of the operands in the lane's rows.
template <int32_t KEY_TILES, typename element_t>
struct sg_scan_reads_t {
  sg_left_t<element_t> state[KEY_TILES];
  // A product waits for the one before on the same sum. Two sums keep the
  // matrix unit busy; fp32 products are longer and have no registers left.
  static constexpr int32_t CHAINS = SG_SCAN_IS_SCALED<element_t> ? 2 : 1;

  SG_DEVICE_MEMBER void take(const sg_scan_state_t<KEY_TILES>& from,
                             uint32_t out_most[SG_TILE_ROWS]) {
#pragma unroll
    for (int32_t j = 0; j < SG_TILE_ROWS; ++j) out_most[j] = 0;
#pragma unroll
    for (int32_t t = 0; t < KEY_TILES; ++t) {
      sg_left_from(from.tile[t], &state[t]);
      if constexpr (SG_SCAN_IS_SCALED<element_t>) {
#pragma unroll
        for (int32_t i = 0; i < SG_TILE_VALUES; i += 2) {
          uint32_t* row = &out_most[sg_tile_row_index(i)];
          *row = sg_fp16_pair_max(*row, state[t].pair[i / 2]);
        }
      }
    }
  }

  SG_DEVICE_MEMBER sg_tile_t multiply(const element_t* packed) const {
    sg_tile_t sums[CHAINS];
#pragma unroll
    for (int32_t i = 0; i < CHAINS; ++i) sums[i] = sg_tile_zero();
#pragma unroll
    for (int32_t t = 0; t < KEY_TILES; ++t) {
      sg_tile_multiply(&sums[t % CHAINS], state[t],
                       sg_right_load(packed + t * SG_TILE_ELEMENTS));
    }
    return sg_tile_total<CHAINS>(sums);
  }
};

// Decays the state and adds D^T k_write^T times |factors| of the rows.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void sg_scan_update(const sg_panel_t<KEY_TILES, element_t>& panel,
                              const sg_left_t<element_t>& delta,
                              const float factors[SG_TILE_ROWS],
                              sg_scan_state_t<KEY_TILES>* state) {
#pragma unroll
  for (int32_t t = 0; t < KEY_TILES; ++t) {
    // What the matrix unit cuts off of a sum would add up over a sequence.
    sg_tile_t product = sg_tile_zero();
    sg_tile_multiply(&product, delta,
                     sg_right_load(panel.k_write + t * SG_TILE_ELEMENTS));
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; i += SG_TILE_RUN) {
      const sg_run_t decay =
          *(const sg_run_t*)(panel.decay + t * SG_TILE + sg_tile_column(i));
#pragma unroll
      for (int32_t j = i; j < i + SG_TILE_RUN; ++j) {
        float* value = &state->tile[t].value[j];
        *value = __builtin_fmaf(product.value[j], factors[sg_tile_row_index(j)],
                                *value * decay.value[j - i]);
      }
    }
  }
}

// Lowers |counts| to the tokens of each row before the first whose element is
// not finite or would not stay so.
SG_DEVICE void sg_scan_count_finite(const sg_tile_t& tile,
                                    uint32_t counts[SG_TILE_ROWS]) {
  uint32_t lost[SG_TILE_ROWS] = {};
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    const uint32_t behind = (uint32_t)(SG_TILE - sg_tile_column(i));
    uint32_t* row = &lost[sg_tile_row_index(i)];
    const bool finite = __builtin_fabsf(tile.value[i]) < SG_SCAN_LIMIT;
    if (!finite && behind > *row) *row = behind;
  }
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    const uint32_t count = SG_TILE - sg_tile_row_max(lost[j]);
    counts[j] = count < counts[j] ? count : counts[j];
  }
}

SG_DEVICE sg_tile_t sg_scan_keep_before(const uint32_t counts[SG_TILE_ROWS],
                                        const sg_tile_t& tile) {
  sg_tile_t kept;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    const uint32_t count = counts[sg_tile_row_index(i)];
    kept.value[i] = (uint32_t)sg_tile_column(i) < count ? tile.value[i] : 0.0f;
  }
  return kept;
}

// What the tokens read of the state, and the residual and D of it.
typedef struct sg_scan_step_t {
  sg_tile_t query;     // o^T without what the block itself writes
  sg_tile_t residual;  // v^T - S k_read^T
  sg_tile_t delta;     // D^T
  // Biased, of the largest element in each row of the residual.
  int32_t exponent[SG_TILE_ROWS];
} sg_scan_step_t;

// Whether all of D can be multiplied with zeros. Residuals that are not finite
// need not show in it.
SG_DEVICE bool sg_scan_is_finite(const sg_scan_step_t& step) {
  float pairs[SG_TILE_VALUES / 2];
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES / 2; ++i) {
    pairs[i] = sg_larger(step.delta.value[2 * i], step.delta.value[2 * i + 1]);
  }
#pragma unroll
  for (int32_t i = SG_TILE_VALUES / 4; i >= 1; i /= 2) {
    for (int32_t j = 0; j < i; ++j)
      pairs[j] = sg_larger(pairs[j], pairs[j + i]);
  }
  bool finite = pairs[0] < SG_SCAN_LIMIT;
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) finite &= step.exponent[j] < 254;
  return !sg_wave_any(!finite);
}

// D^T = residual solve^T.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE sg_tile_t sg_scan_solve(const sg_panel_t<KEY_TILES, element_t>& panel,
                                  const sg_tile_t& residual) {
  sg_tile_t delta = sg_tile_zero();
  sg_tile_multiply_wide(&delta, residual, sg_right_load(panel.solve));
  return delta;
}

// o^T = query + D^T scores^T.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE sg_tile_t
sg_scan_output(const sg_panel_t<KEY_TILES, element_t>& panel,
               const sg_tile_t& query, const sg_tile_t& delta) {
  constexpr float RECIPROCAL =
      1.0f / SG_KDA_PANEL_FACTOR((int32_t)sizeof(element_t));
  sg_tile_t output = sg_tile_zero();
  sg_tile_multiply_wide(&output, delta, sg_right_load(panel.scores));
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    output.value[i] =
        __builtin_fmaf(output.value[i], RECIPROCAL, query.value[i]);
  }
  return output;
}

// Where D is not finite: outputs of the tokens before are made without it, as
// products would multiply it by zeros. From its token on outputs of the row
// are not numbers, and the row of the state is none any more.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE sg_tile_t sg_scan_output_finite(
    const sg_panel_t<KEY_TILES, element_t>& panel, const sg_tile_t& query,
    const sg_tile_t& residual, sg_scan_state_t<KEY_TILES>* state) {
  const float lost = sg_float_of(0x7fc00000u);
  uint32_t counts[SG_TILE_ROWS];
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) counts[j] = SG_TILE;
  sg_scan_count_finite(residual, counts);
  const sg_tile_t delta =
      sg_scan_solve(panel, sg_scan_keep_before(counts, residual));
  sg_scan_count_finite(delta, counts);
  sg_tile_t output =
      sg_scan_output(panel, query, sg_scan_keep_before(counts, delta));
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    const uint32_t count = counts[sg_tile_row_index(i)];
    if ((uint32_t)sg_tile_column(i) >= count) output.value[i] = lost;
  }
#pragma unroll
  for (int32_t i = 0; i < KEY_TILES * SG_TILE_VALUES; ++i) {
    float* value = &state->tile[i / SG_TILE_VALUES].value[i % SG_TILE_VALUES];
    if (counts[sg_tile_row_index(i % SG_TILE_VALUES)] < SG_TILE) *value = lost;
  }
  return output;
}

// Makes |out_step|. Whether the scale of a row has to change is known when the
// products are on their way; they are done again where it has.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE void sg_scan_read(const sg_panel_t<KEY_TILES, element_t>& panel,
                            const sg_tile_t& values,
                            sg_scan_state_t<KEY_TILES>* state,
                            sg_scan_step_t* out_step) {
  constexpr int32_t PANEL_EXPONENT =
      SG_SCAN_IS_SCALED<element_t> ? SG_SCAN_PANEL_EXPONENT : 0;
  for (int32_t pass = 0;; ++pass) {
    sg_scan_reads_t<KEY_TILES, element_t> reads;
    uint32_t most[SG_TILE_ROWS];
    float factor[SG_TILE_ROWS];
    reads.take(*state, most);
    const sg_tile_t prediction = reads.multiply(panel.k_read);
#pragma unroll
    for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
      factor[j] = sg_power_of_two(state->exponent[j] - PANEL_EXPONENT);
    }
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
      out_step->residual.value[i] = __builtin_fmaf(
          -prediction.value[i], factor[sg_tile_row_index(i)], values.value[i]);
    }
    out_step->delta = sg_scan_solve(panel, out_step->residual);
    out_step->query = reads.multiply(panel.q_read);
#pragma unroll
    for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
      out_step->query.value[i] *= factor[sg_tile_row_index(i)];
    }
    sg_scan_row_exponents<1>(&out_step->residual, out_step->exponent);
    if (!SG_SCAN_IS_SCALED<element_t>) return;
    bool misfits[SG_TILE_ROWS];
    bool any = false;
#pragma unroll
    for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
      misfits[j] = sg_scan_is_misfit(most[j], state->exponent[j]);
      any |= misfits[j];
    }
    if (pass == 1 || !sg_wave_any(any)) return;
    sg_scan_rescale(misfits, state);
  }
}

// D^T as an operand, and what a product with it has to be multiplied with to
// be added to the state.
template <int32_t KEY_TILES>
SG_DEVICE sg_left_t<sg_fp16_t> sg_scan_written(
    const sg_scan_step_t& step, sg_scan_state_t<KEY_TILES>* state,
    float out_factors[SG_TILE_ROWS]) {
  int32_t exponents[SG_TILE_ROWS];
  float factors[SG_TILE_ROWS];
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    // No less than makes its factor a normal number.
    exponents[j] = (step.exponent[j] > 24 ? step.exponent[j] : 24) - 127;
    factors[j] = sg_power_of_two(SG_SCAN_RESIDUAL_TARGET - exponents[j]);
  }
  sg_scan_lift(exponents, state);
  sg_tile_t scaled;
#pragma unroll
  for (int32_t i = 0; i < SG_TILE_VALUES; ++i) {
    scaled.value[i] = step.delta.value[i] * factors[sg_tile_row_index(i)];
  }
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) {
    out_factors[j] =
        sg_power_of_two(exponents[j] - SG_SCAN_RESIDUAL_TARGET -
                        SG_SCAN_PANEL_EXPONENT - state->exponent[j]);
  }
  sg_left_t<sg_fp16_t> left;
  sg_left_from(scaled, &left);
  return left;
}
SG_DEVICE sg_left_t<float> sg_scan_written_fp32(
    const sg_scan_step_t& step, float out_factors[SG_TILE_ROWS]) {
  sg_left_t<float> left;
  sg_left_from(step.delta, &left);
#pragma unroll
  for (int32_t j = 0; j < SG_TILE_ROWS; ++j) out_factors[j] = 1.0f;
  return left;
}

// One block of tokens. |values| is v^T; returns o^T.
template <int32_t KEY_TILES, typename element_t>
SG_DEVICE sg_tile_t sg_scan_block(const unsigned char* bytes,
                                  const sg_tile_t& values,
                                  sg_scan_state_t<KEY_TILES>* state) {
  const sg_panel_t<KEY_TILES, element_t> panel(bytes);
  sg_scan_step_t step;
  sg_scan_read(panel, values, state, &step);
  float factors[SG_TILE_ROWS];
  sg_left_t<element_t> written;
  if constexpr (SG_SCAN_IS_SCALED<element_t>) {
    written = sg_scan_written(step, state, factors);
  } else {
    written = sg_scan_written_fp32(step, factors);
  }
  sg_tile_t output = sg_scan_output(panel, step.query, step.delta);
  sg_scan_update(panel, written, factors, state);
  if (!sg_scan_is_finite(step)) {
    output = sg_scan_output_finite(panel, step.query, step.residual, state);
  }
  return output;
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_BLOCK_H_
