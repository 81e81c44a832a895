// SPDX-License-Identifier: Apache-2.0
//
// A block of tokens and the state, panel by panel, in fp32: what reads it, what
// changes it. advance_amx_host.h does the same on other units.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_ADVANCE_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_ADVANCE_HOST_H_

#include <assert.h>

#include "kernels/kda_chunk/prefetch_host.h"
#include "kernels/kda_chunk/solve_host.h"

enum {
  // Products of a sum between two prefetches.
  SG_KDA_PREFETCH_STEP = 8,
};

// product = left panel, for the rows of a block. Meanwhile it asks for |lines|
// lines of the queue every SG_KDA_PREFETCH_STEP products of a sum.
static inline void sg_kda_multiply_state(const float (*left)[SG_KDA_ROW_FLOATS],
                                         int32_t key_dim, const float* panel,
                                         int32_t row_count,
                                         sg_kda_line_queue_t* queue,
                                         int32_t lines,
                                         float* restrict product) {
  for (int32_t r = 0; r < row_count; r += SG_TILE_ROWS) {
    sg_vector_t sum[SG_TILE_ROWS][SG_TILE_VECTORS] = {0};
    for (int32_t c = 0; c < key_dim; c += SG_KDA_PREFETCH_STEP) {
      sg_kda_queue_prefetch(queue, lines);
      sg_tile_multiply(sum, SG_TILE_VECTORS, SG_KDA_PREFETCH_STEP, left[r] + c,
                       SG_KDA_ROW_FLOATS, 1, panel + c * SG_KDA_PANEL,
                       SG_KDA_PANEL);
    }
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 2
      for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
        sg_vector_store(product + (r + i) * SG_KDA_PANEL + j * SG_VECTOR_FLOATS,
                        sum[i][j]);
      }
    }
  }
}

// Before the first block of tokens, with the state loaded.
static inline void sg_kda_advance_begin(const sg_kda_scan_t* scan) {
  (void)scan;
}

// All panels. Asks for the lines of the queue meanwhile.
static inline void sg_kda_advance(const sg_kda_scan_t* scan,
                                  const sg_kda_block_t* block) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const int32_t tiles = (block->count + SG_TILE_ROWS - 1) / SG_TILE_ROWS;
  const int32_t steps = 2 * tiles * (scan->padded_columns / SG_KDA_PANEL) *
                        (scan->key_dim / SG_KDA_PREFETCH_STEP);
  assert(steps > 0);
  const int32_t lines = (scratch->queue.count + steps - 1) / steps;
  for (int32_t column = 0; column < scan->padded_columns;
       column += SG_KDA_PANEL) {
    float* panel = sg_kda_panel_of(scan, column);
    sg_kda_multiply_state((const float(*)[SG_KDA_ROW_FLOATS])scratch->k_read,
                          scan->key_dim, panel, block->count, &scratch->queue,
                          lines, scratch->delta);
    sg_kda_multiply_state((const float(*)[SG_KDA_ROW_FLOATS])scratch->q_read,
                          scan->key_dim, panel, block->count, &scratch->queue,
                          lines, scratch->out);
    sg_kda_solve_panel(scratch, column);
    for (int32_t c = 0; c < scan->key_dim; c += SG_TILE_ROWS) {
      sg_vector_t rows[SG_TILE_ROWS][SG_TILE_VECTORS];
      sg_kda_update_rows(scratch, c, block->count, panel, rows);
    }
  }
}

// After the last block of tokens.
static inline void sg_kda_advance_end(const sg_kda_scan_t* scan) { (void)scan; }

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_ADVANCE_HOST_H_
