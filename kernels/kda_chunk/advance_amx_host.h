// SPDX-License-Identifier: Apache-2.0
//
// A block of tokens and the state on AMX, in place of advance_host.h, where
// activations are bf16. The state itself stays fp32. A number x becomes two of
// bf16, x = high + low to 15 bits, and a product the sum of three,
//
//   high high + high low + low high
//
// off by up to 2^-14, 2^-17 in the mean: far less than activations of bf16 are
// rounded by. Only what k and q read goes that way. What k writes is multiplied
// in fp32: as tiles its product would have to go through memory to be added to
// the state.
//
// A tile is 16 rows of 64 bytes. A left operand has a row's numbers in order, a
// right one those of rows 2i and 2i + 1 in pairs, one pair a column.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_ADVANCE_AMX_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_ADVANCE_AMX_HOST_H_

#include <assert.h>
#include <immintrin.h>
#include <string.h>

#include "kernels/kda_chunk/prefetch_host.h"
#include "kernels/kda_chunk/solve_host.h"

enum {
  SG_AMX_ROWS = 16,
  // Numbers of bf16 a row, and rows of a right operand.
  SG_AMX_DEPTH = 32,
  SG_AMX_ROW_BYTES = 64,
};
_Static_assert(SG_KDA_PANEL == 2 * SG_AMX_ROWS, "two tiles a panel");

// All eight tile registers whole. The layout is Intel's, palette 1.
typedef struct sg_amx_config_t {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} sg_amx_config_t;
_Static_assert(sizeof(sg_amx_config_t) == 64, "as the processor reads it");

// What is written by vectors is read by tiles after this: compilers do not see
// that loads of tiles read memory.
static inline void sg_amx_fence(void) { __asm__ volatile("" ::: "memory"); }

static inline __m512 sg_amx_high(__m512 value) {
  return _mm512_castsi512_ps(_mm512_and_si512(
      _mm512_castps_si512(value), _mm512_set1_epi32((int32_t)0xffff0000u)));
}

// bf16 of |first| in the lower half, of |second| in the upper one.
static inline __m512i sg_amx_narrow(__m512 first, __m512 second) {
  return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}

// High and low parts of 32 neighbours in a row of a left operand.
static inline void sg_amx_split_row(__m512 first, __m512 second,
                                    uint32_t* out_high, uint32_t* out_low) {
  const __m512 first_high = sg_amx_high(first);
  const __m512 second_high = sg_amx_high(second);
  _mm512_storeu_si512(out_high, sg_amx_narrow(first_high, second_high));
  _mm512_storeu_si512(out_low,
                      sg_amx_narrow(first - first_high, second - second_high));
}

// High and low parts of two rows of a right operand, in pairs.
static inline void sg_amx_split_pairs(__m512 even, __m512 odd,
                                      uint32_t* out_high, uint32_t* out_low) {
  const __m512 even_high = sg_amx_high(even);
  const __m512 odd_high = sg_amx_high(odd);
  const __m512i high =
      _mm512_or_si512(_mm512_castps_si512(odd_high),
                      _mm512_srli_epi32(_mm512_castps_si512(even_high), 16));
  const __m512i low = sg_amx_narrow(even - even_high, odd - odd_high);
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11,
                                         26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  _mm512_storeu_si512(out_high, high);
  _mm512_storeu_si512(out_low, _mm512_permutexvar_epi16(pairs, low));
}

// Where the tiles of the state have channels |c| and |c| + 1 of the 16 columns
// from |column| on.
static inline uint32_t* sg_amx_state_pairs(const sg_kda_scan_t* scan,
                                           int32_t column, int32_t c,
                                           int32_t part) {
  return scan->scratch->amx.state[column / SG_AMX_ROWS][c / SG_AMX_DEPTH][part]
                                 [c % SG_AMX_DEPTH / 2];
}

// The tiles of the state. Channels between key_dim and a multiple of
// SG_AMX_DEPTH stay 0.
static inline void sg_kda_advance_begin(const sg_kda_scan_t* scan) {
  // Static, since compilers see a read of its first bytes alone and could leave
  // out the writing of the others.
  static const sg_amx_config_t config = {
      .palette = 1,
      .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
      .rows = {16, 16, 16, 16, 16, 16, 16, 16},
  };
  _tile_loadconfig(&config);
  if (scan->key_dim % SG_AMX_DEPTH != 0) {
    memset(scan->scratch->amx.state, 0, sizeof(scan->scratch->amx.state));
  }
  for (int32_t column = 0; column < scan->padded_columns;
       column += SG_AMX_ROWS) {
    const float* rows =
        sg_kda_panel_of(scan, column / SG_KDA_PANEL * SG_KDA_PANEL) +
        column % SG_KDA_PANEL;
    for (int32_t c = 0; c < scan->key_dim; c += 2) {
      sg_amx_split_pairs(_mm512_loadu_ps(rows + c * SG_KDA_PANEL),
                         _mm512_loadu_ps(rows + (c + 1) * SG_KDA_PANEL),
                         sg_amx_state_pairs(scan, column, c, 0),
                         sg_amx_state_pairs(scan, column, c, 1));
    }
  }
}

static inline void sg_kda_advance_end(const sg_kda_scan_t* scan) {
  (void)scan;
  _tile_release();
}

// Reads as left operands; channels beyond key_dim are 0.
static inline void sg_amx_split_reads(const sg_kda_scan_t* scan,
                                      const sg_kda_key_rows_t rows,
                                      sg_amx_tile_t (*tiles)[2]) {
  for (int32_t c = 0; c < scan->key_dim; c += SG_AMX_DEPTH) {
    const bool is_whole = c + SG_AMX_ROWS < scan->key_dim;
    for (int32_t r = 0; r < SG_AMX_ROWS; ++r) {
      sg_amx_split_row(_mm512_loadu_ps(&rows[r][c]),
                       is_whole ? _mm512_loadu_ps(&rows[r][c + SG_AMX_ROWS])
                                : _mm512_setzero_ps(),
                       tiles[c / SG_AMX_DEPTH][0][r],
                       tiles[c / SG_AMX_DEPTH][1][r]);
    }
  }
}

// Where the tiles have read a panel: four sums side by side, k_read's and
// q_read's with either half of its columns, by depths and parts.
typedef struct sg_amx_reader_t {
  int32_t column;
  int32_t step;
  int32_t step_count;
} sg_amx_reader_t;

static inline sg_amx_reader_t sg_amx_start_reading(const sg_kda_scan_t* scan,
                                                   int32_t column) {
  sg_amx_fence();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const int32_t depths = (scan->key_dim + SG_AMX_DEPTH - 1) / SG_AMX_DEPTH;
  return (sg_amx_reader_t){.column = column, .step_count = 3 * depths};
}

// One more step, if there is one: high high, low high or high low of a depth.
static inline void sg_amx_continue_reading(const sg_kda_scan_t* scan,
                                           sg_amx_reader_t* reader) {
  if (reader->step >= reader->step_count) return;
  const sg_kda_amx_scratch_t* amx = &scan->scratch->amx;
  const int32_t d = reader->step / 3;
  const int32_t part = reader->step % 3;
  const int32_t tile = reader->column / SG_AMX_ROWS;
  _tile_loadd(4, amx->k_read[d][part == 1], SG_AMX_ROW_BYTES);
  _tile_loadd(5, amx->q_read[d][part == 1], SG_AMX_ROW_BYTES);
  _tile_loadd(6, amx->state[tile][d][part == 2], SG_AMX_ROW_BYTES);
  _tile_loadd(7, amx->state[tile + 1][d][part == 2], SG_AMX_ROW_BYTES);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
  ++reader->step;
}

// The rest of the steps, and delta and out of the panel.
static inline void sg_amx_finish_reading(const sg_kda_scan_t* scan,
                                         sg_amx_reader_t* reader) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const int32_t stride = SG_KDA_PANEL * (int32_t)sizeof(float);
  while (reader->step < reader->step_count) {
    sg_amx_continue_reading(scan, reader);
  }
  _tile_stored(0, scratch->delta, stride);
  _tile_stored(1, scratch->delta + SG_AMX_ROWS, stride);
  _tile_stored(2, scratch->out, stride);
  _tile_stored(3, scratch->out + SG_AMX_ROWS, stride);
}

// SG_TILE_ROWS channels from |c| on of the panel at |column|: decayed, with
// k_write^T delta added, and as tiles.
static inline void sg_amx_update(const sg_kda_scan_t* scan, int32_t column,
                                 int32_t c, int32_t row_count) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  sg_vector_t rows[SG_TILE_ROWS][SG_TILE_VECTORS];
  sg_kda_update_rows(scratch, c, row_count, sg_kda_panel_of(scan, column),
                     rows);
#pragma GCC unroll 2
  for (int32_t half = 0; half < SG_TILE_VECTORS; ++half) {
    const int32_t first = column + half * SG_VECTOR_FLOATS;
    uint32_t* high = sg_amx_state_pairs(scan, first, c, 0);
    uint32_t* low = sg_amx_state_pairs(scan, first, c, 1);
#pragma GCC unroll 4
    for (int32_t i = 0; i < SG_TILE_ROWS; i += 2) {
      sg_amx_split_pairs((__m512)rows[i][half], (__m512)rows[i + 1][half],
                         high + i / 2 * 16, low + i / 2 * 16);
    }
  }
}

// All panels. Tiles read the next one while vectors update this one. Asks for
// the lines of the queue meanwhile.
static inline void sg_kda_advance(const sg_kda_scan_t* scan,
                                  const sg_kda_block_t* block) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const int32_t updates =
      scan->padded_columns / SG_KDA_PANEL * (scan->key_dim / SG_TILE_ROWS);
  assert(updates > 0);
  const int32_t lines = (scratch->queue.count + updates - 1) / updates;
  sg_amx_split_reads(scan, (const float(*)[SG_KDA_ROW_FLOATS])scratch->k_read,
                     scratch->amx.k_read);
  sg_amx_split_reads(scan, (const float(*)[SG_KDA_ROW_FLOATS])scratch->q_read,
                     scratch->amx.q_read);
  sg_amx_reader_t reader = sg_amx_start_reading(scan, 0);
  for (int32_t column = 0; column < scan->padded_columns;
       column += SG_KDA_PANEL) {
    sg_amx_finish_reading(scan, &reader);
    sg_kda_solve_panel(scratch, column);
    const int32_t next = column + SG_KDA_PANEL;
    const bool is_last = next >= scan->padded_columns;
    if (!is_last) reader = sg_amx_start_reading(scan, next);
    for (int32_t c = 0; c < scan->key_dim; c += SG_TILE_ROWS) {
      sg_kda_queue_prefetch(&scratch->queue, lines);
      sg_amx_update(scan, column, c, block->count);
      if (!is_last) sg_amx_continue_reading(scan, &reader);
    }
  }
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_ADVANCE_AMX_HOST_H_
