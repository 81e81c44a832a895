// SPDX-License-Identifier: Apache-2.0
//
// What a block of tokens makes of what it has read of the state: outputs, and
// the state's change.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SOLVE_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SOLVE_HOST_H_

#include "kernels/kda_chunk/operands_host.h"
#include "kernels/kda_chunk/scan_host.h"

// With |delta| and |out| as the reads left them, scaled up:
//   delta[r] = beta_r (v_r - delta[r]) - sum over s < r of A[r, s] delta[s]
//   v_r      = out[r] + sum over s <= r of Q[r, s] delta[s]
// along one vector of columns.
static inline void sg_kda_solve_columns(const sg_kda_scan_scratch_t* scratch,
                                        float* restrict values,
                                        float* restrict delta,
                                        const float* restrict out) {
  const float down = 1.0f / SG_KDA_READ_SCALE;
  sg_vector_t x[SG_KDA_BLOCK_TOKENS];
#pragma GCC unroll 16
  for (int32_t r = 0; r < SG_KDA_BLOCK_TOKENS; ++r) {
    x[r] = scratch->beta[r] *
           (sg_vector_load(values + r * SG_KDA_CHUNK_SPLIT_COLUMNS) -
            down * sg_vector_load(delta + r * SG_KDA_PANEL));
  }
  // By columns of A, so that there are always independent sums in flight.
#pragma GCC unroll 16
  for (int32_t s = 0; s < SG_KDA_BLOCK_TOKENS; ++s) {
    sg_vector_store(delta + s * SG_KDA_PANEL, x[s]);
#pragma GCC unroll 16
    for (int32_t r = s + 1; r < SG_KDA_BLOCK_TOKENS; ++r)
      x[r] -= scratch->scores[r][0][s] * x[s];
  }
#pragma GCC unroll 16
  for (int32_t r = 0; r < SG_KDA_BLOCK_TOKENS; ++r) {
    sg_vector_t y = down * sg_vector_load(out + r * SG_KDA_PANEL);
#pragma GCC unroll 16
    for (int32_t s = 0; s <= r; ++s) y += scratch->scores[r][1][s] * x[s];
    sg_vector_store(values + r * SG_KDA_CHUNK_SPLIT_COLUMNS, y);
  }
}

// All columns of the panel at |column|: |values| of the scratch become outputs,
// |delta| the change.
static inline void sg_kda_solve_panel(sg_kda_scan_scratch_t* scratch,
                                      int32_t column) {
  for (int32_t j = 0; j < SG_KDA_PANEL; j += SG_VECTOR_FLOATS) {
    sg_kda_solve_columns(scratch, &scratch->values[0][column + j],
                         scratch->delta + j, scratch->out + j);
  }
}

// SG_TILE_ROWS channels from |c| on of |panel|: diag(block_decay) panel +
// k_write^T delta, in |out_rows| as well.
static SG_ALWAYS_INLINE void sg_kda_update_rows(
    const sg_kda_scan_scratch_t* scratch, int32_t c, int32_t row_count,
    float* restrict panel,
    sg_vector_t out_rows[SG_TILE_ROWS][SG_TILE_VECTORS]) {
  float* rows = panel + (ptrdiff_t)c * SG_KDA_PANEL;
#pragma GCC unroll 8
  for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 8
    for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
      out_rows[i][j] =
          scratch->block_decay[c + i] *
          sg_vector_load(rows + i * SG_KDA_PANEL + j * SG_VECTOR_FLOATS);
    }
  }
  sg_tile_multiply(out_rows, SG_TILE_VECTORS, row_count,
                   &scratch->k_write[0][c], 1, SG_KDA_ROW_FLOATS,
                   scratch->delta, SG_KDA_PANEL);
#pragma GCC unroll 8
  for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 8
    for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
      sg_vector_store(rows + i * SG_KDA_PANEL + j * SG_VECTOR_FLOATS,
                      out_rows[i][j]);
    }
  }
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SOLVE_HOST_H_
