// SPDX-License-Identifier: Apache-2.0
//
// kda_chunk on the host: one state, or some of its columns, carried through a
// sequence. Compiled once for each instruction set.
//
// For a block of 16 tokens, with the operands of operands_host.h, the scores A
// and Q of scores_host.h, and the state S [key_dim, columns]:
//
//   (I + A) d = beta (v - k_read S)      d by forward substitution
//   o         = q_read S + Q d
//   S        <- diag(E(G[L])) S + k_write^T d
//
// which is KDA_SPEC's residual form: A's inverse, w and u never exist, and
// columns of S never meet, so that vectors run along them. Operands and scores
// are made block by block where they are used, in cache: reading them from
// memory would take longer than making them.

#include <assert.h>

#include "kernels/common/host_symbol.h"
#include "kernels/kda_chunk/prefetch_host.h"
#include "kernels/kda_chunk/scores_host.h"
#include "runtime/hip/host_kernel.h"

enum {
  B = SG_KDA_BLOCK_TOKENS,
  ROW = SG_KDA_ROW_FLOATS,
  PANEL = SG_TILE_COLUMNS,
  // Columns that are transposed together: they are of one panel, and
  // value_dim is a multiple of them.
  STRIP = PANEL < 16 ? PANEL : 16,
  // Products of a sum between two prefetches.
  STEP = 8,
};

typedef struct scan_t {
  const sg_kda_params_t* params;
  sg_kda_scan_scratch_t* scratch;
  int32_t value_head;
  int32_t key_dim;
  // Columns of this block in the value dimension, and their number rounded up
  // to panels.
  int32_t first_column;
  int32_t column_count;
  int32_t padded_columns;
} scan_t;

static float* panel_of(const scan_t* scan, int32_t column) {
  return scan->scratch->state + (ptrdiff_t)column * scan->key_dim;
}

// State rows [value_dim, key_dim] at |offset| to panels [key_dim][PANEL];
// columns of the padding are 0. Rows that are not fp32 are widened on their
// way.
static void load_state(const scan_t* scan, int64_t offset, bool fresh) {
  const sg_kda_params_t* params = scan->params;
  const ptrdiff_t dim = scan->key_dim;
  const bool is_wide = params->state_dtype == SG_DTYPE_FP32;
  if (fresh || scan->padded_columns > scan->column_count) {
    memset(scan->scratch->state, 0,
           sizeof(float) * (size_t)(dim * scan->padded_columns));
  }
  if (fresh) return;
  for (int32_t v = 0; v < scan->column_count; v += STRIP) {
    const int64_t first = offset + (scan->first_column + v) * dim;
    for (int32_t i = 0; !is_wide && i < STRIP; ++i) {
      sg_row_load(params->state_dtype, params->state, first + i * dim,
                  scan->key_dim, scan->scratch->k_read[i]);
    }
    sg_transpose(is_wide ? (const float*)params->state + first
                         : scan->scratch->k_read[0],
                 is_wide ? dim : ROW,
                 panel_of(scan, v / PANEL * PANEL) + v % PANEL, PANEL, STRIP,
                 scan->key_dim);
  }
}

static void store_state(const scan_t* scan, int64_t offset) {
  const sg_kda_params_t* params = scan->params;
  const ptrdiff_t dim = scan->key_dim;
  const bool is_wide = params->state_dtype == SG_DTYPE_FP32;
  for (int32_t v = 0; v < scan->column_count; v += STRIP) {
    const int64_t first = offset + (scan->first_column + v) * dim;
    sg_transpose(
        panel_of(scan, v / PANEL * PANEL) + v % PANEL, PANEL,
        is_wide ? (float*)params->state + first : scan->scratch->k_read[0],
        is_wide ? dim : ROW, scan->key_dim, STRIP);
    for (int32_t i = 0; !is_wide && i < STRIP; ++i) {
      sg_row_store(params->state_dtype, params->state, first + i * dim,
                   scan->key_dim, scan->scratch->k_read[i]);
    }
  }
}

// v of a block; columns of the padding are 0.
static void load_values(const scan_t* scan, const sg_kda_block_t* block) {
  const sg_kda_params_t* params = scan->params;
  for (int32_t r = 0; r < block->count; ++r) {
    float* values = scan->scratch->values[r];
    sg_row_load(params->activation_dtype, params->v,
                sg_kda_value_offset(params, params->v_row_stride,
                                    block->first_token + r, scan->value_head) +
                    scan->first_column,
                scan->column_count, values);
    memset(values + scan->column_count, 0,
           sizeof(float) * (size_t)(scan->padded_columns - scan->column_count));
  }
}

static void store_values(const scan_t* scan, const sg_kda_block_t* block) {
  const sg_kda_params_t* params = scan->params;
  for (int32_t r = 0; r < block->count; ++r) {
    sg_row_store(params->activation_dtype, params->o,
                 sg_kda_value_offset(params, params->o_row_stride,
                                     block->first_token + r, scan->value_head) +
                     scan->first_column,
                 scan->column_count, scan->scratch->values[r]);
  }
}

// Puts the rows of |count| tokens from |token| on into the queue.
static void queue_rows(const scan_t* scan, int64_t token, int64_t count) {
  const sg_kda_params_t* params = scan->params;
  sg_kda_line_queue_t* queue = &scan->scratch->queue;
  const int32_t dtype = params->activation_dtype;
  const int32_t head = scan->value_head;
  queue->count = queue->next = 0;
  for (int64_t t = token; t < token + count; ++t) {
    sg_kda_queue_row(queue, dtype, params->q,
                     sg_kda_key_offset(params, params->q_row_stride, t, head),
                     scan->key_dim);
    sg_kda_queue_row(queue, dtype, params->k,
                     sg_kda_key_offset(params, params->k_row_stride, t, head),
                     scan->key_dim);
    sg_kda_queue_row(queue, sg_kda_gate_dtype(params), params->raw_g,
                     sg_kda_gate_offset(params, t, head), scan->key_dim);
    sg_kda_queue_row(
        queue, dtype, params->v,
        sg_kda_value_offset(params, params->v_row_stride, t, head) +
            scan->first_column,
        scan->column_count);
    sg_kda_queue_row(
        queue, dtype, params->o,
        sg_kda_value_offset(params, params->o_row_stride, t, head) +
            scan->first_column,
        scan->column_count);
  }
}

// product = left panel, for the rows of a block. Meanwhile it asks for |lines|
// lines of the queue every STEP products of a sum.
static void multiply_state(const float (*left)[ROW], int32_t key_dim,
                           const float* panel, int32_t row_count,
                           sg_kda_line_queue_t* queue, int32_t lines,
                           float* restrict product) {
  for (int32_t r = 0; r < row_count; r += SG_TILE_ROWS) {
    sg_vector_t sum[SG_TILE_ROWS][SG_TILE_VECTORS] = {0};
    for (int32_t c = 0; c < key_dim; c += STEP) {
      sg_kda_queue_prefetch(queue, lines);
      sg_tile_multiply(sum, SG_TILE_VECTORS, STEP, left[r] + c, ROW, 1,
                       panel + c * PANEL, PANEL);
    }
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 2
      for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
        sg_vector_store(product + (r + i) * PANEL + j * SG_VECTOR_FLOATS,
                        sum[i][j]);
      }
    }
  }
}

// With |delta| and |out| as the reads left them, scaled up:
//   delta[r] = beta_r (v_r - delta[r]) - sum over s < r of A[r, s] delta[s]
//   v_r      = out[r] + sum over s <= r of Q[r, s] delta[s]
// along one vector of columns.
static void solve_columns(const sg_kda_scan_scratch_t* scratch,
                          float* restrict values, float* restrict delta,
                          const float* restrict out) {
  const float down = 1.0f / SG_KDA_READ_SCALE;
  sg_vector_t x[B];
#pragma GCC unroll 16
  for (int32_t r = 0; r < B; ++r) {
    x[r] = scratch->beta[r] *
           (sg_vector_load(values + r * SG_KDA_CHUNK_SPLIT_COLUMNS) -
            down * sg_vector_load(delta + r * PANEL));
  }
  // By columns of A, so that there are always independent sums in flight.
#pragma GCC unroll 16
  for (int32_t s = 0; s < B; ++s) {
    sg_vector_store(delta + s * PANEL, x[s]);
#pragma GCC unroll 16
    for (int32_t r = s + 1; r < B; ++r) x[r] -= scratch->scores[r][0][s] * x[s];
  }
#pragma GCC unroll 16
  for (int32_t r = 0; r < B; ++r) {
    sg_vector_t y = down * sg_vector_load(out + r * PANEL);
#pragma GCC unroll 16
    for (int32_t s = 0; s <= r; ++s) y += scratch->scores[r][1][s] * x[s];
    sg_vector_store(values + r * SG_KDA_CHUNK_SPLIT_COLUMNS, y);
  }
}

// panel = diag(block_decay) panel + k_write^T delta.
static void update_state(const sg_kda_scan_scratch_t* scratch, int32_t key_dim,
                         const float* restrict delta, int32_t row_count,
                         float* restrict panel) {
  for (int32_t c = 0; c < key_dim; c += SG_TILE_ROWS) {
    sg_vector_t sum[SG_TILE_ROWS][SG_TILE_VECTORS];
    float* rows = panel + (ptrdiff_t)c * PANEL;
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 2
      for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
        sum[i][j] = scratch->block_decay[c + i] *
                    sg_vector_load(rows + i * PANEL + j * SG_VECTOR_FLOATS);
      }
    }
    sg_tile_multiply(sum, SG_TILE_VECTORS, row_count, &scratch->k_write[0][c],
                     1, ROW, delta, PANEL);
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 2
      for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
        sg_vector_store(rows + i * PANEL + j * SG_VECTOR_FLOATS, sum[i][j]);
      }
    }
  }
}

static void scan_block(const scan_t* scan, sg_kda_block_t* block,
                       int64_t next_count) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const float(*k_read)[ROW] = (const float(*)[ROW])scratch->k_read;
  const float(*q_read)[ROW] = (const float(*)[ROW])scratch->q_read;
  sg_kda_block_prepare(block);
  load_values(scan, block);
  queue_rows(scan, block->first_token + B, next_count);
  const int32_t tiles = (block->count + SG_TILE_ROWS - 1) / SG_TILE_ROWS;
  const int32_t steps =
      2 * tiles * (scan->padded_columns / PANEL) * (scan->key_dim / STEP);
  assert(steps > 0);
  const int32_t lines = (scratch->queue.count + steps - 1) / steps;
  for (int32_t column = 0; column < scan->padded_columns; column += PANEL) {
    float* panel = panel_of(scan, column);
    multiply_state(k_read, scan->key_dim, panel, block->count, &scratch->queue,
                   lines, scratch->delta);
    multiply_state(q_read, scan->key_dim, panel, block->count, &scratch->queue,
                   lines, scratch->out);
    for (int32_t j = 0; j < PANEL; j += SG_VECTOR_FLOATS) {
      solve_columns(scratch, &scratch->values[0][column + j],
                    scratch->delta + j, scratch->out + j);
    }
    update_state(scratch, scan->key_dim, scratch->delta, block->count, panel);
  }
  store_values(scan, block);
}

// Of the block that starts at |token|; 0 beyond the end.
static int32_t rows_of_block(int64_t token, int64_t end_token) {
  const int64_t left = end_token - token;
  return left < 0 ? 0 : left < B ? (int32_t)left : B;
}

static void scan_sequence(const scan_t* scan, int64_t first_token,
                          int64_t token_count) {
  const int64_t end_token = first_token + token_count;
  sg_kda_block_t block = {
      .params = scan->params,
      .scratch = scan->scratch,
      .gate = sg_kda_gate_of(scan->params, scan->value_head),
      .value_head = scan->value_head,
      .key_dim = scan->key_dim,
  };
  for (int64_t t = first_token; t < end_token; t += B) {
    block.first_token = t;
    block.count = rows_of_block(t, end_token);
    scan_block(scan, &block, rows_of_block(t + B, end_token));
  }
}

static void zero_sequence(const scan_t* scan, int64_t first_token,
                          int64_t token_count) {
  const sg_kda_params_t* params = scan->params;
  for (int64_t t = first_token; t < first_token + token_count; ++t) {
    sg_row_zero(
        params->activation_dtype, params->o,
        sg_kda_value_offset(params, params->o_row_stride, t, scan->value_head) +
            scan->first_column,
        scan->column_count);
  }
}

void SG_HOST_SYMBOL(sg__kda_chunk_scan_run)(const void* params_pointer,
                                            const sg_host_block_t* block);

void SG_HOST_SYMBOL(sg__kda_chunk_scan_run)(const void* params_pointer,
                                            const sg_host_block_t* block) {
  const sg_kda_chunk_params_t* params = params_pointer;
  const sg_kda_params_t* kda = &params->kda;
  if (!sg_kda_begin_block(kda, block->index, block->grid)) return;
  const uint32_t splits = (uint32_t)params->split_count;
  const uint32_t value_heads = (uint32_t)kda->value_heads;
  const int32_t sequence = (int32_t)(block->index / (value_heads * splits));
  const sg_batch_counts_t* counts = kda->counts;
  if (sequence < counts->decode_count || sequence >= counts->sequence_count) {
    return;
  }
  const int64_t first_token = kda->query_start_loc[sequence];
  const int64_t token_count = kda->query_start_loc[sequence + 1] - first_token;
  if (token_count == 0) return;

  const int32_t first_column =
      (int32_t)(block->index % splits) * SG_KDA_CHUNK_SPLIT_COLUMNS;
  const int32_t left = kda->value_dim - first_column;
  scan_t scan = {
      .params = kda,
      .scratch = block->shared,
      .value_head = (int32_t)(block->index / splits % value_heads),
      .key_dim = kda->key_dim,
      .first_column = first_column,
      .column_count =
          left < SG_KDA_CHUNK_SPLIT_COLUMNS ? left : SG_KDA_CHUNK_SPLIT_COLUMNS,
  };
  scan.padded_columns = (scan.column_count + PANEL - 1) / PANEL * PANEL;
  if (!sg_kda_has_slot(kda, sequence)) {
    zero_sequence(&scan, first_token, token_count);
    return;
  }
  queue_rows(&scan, first_token, rows_of_block(0, token_count));
  sg_kda_queue_prefetch(&scan.scratch->queue, scan.scratch->queue.count);
  const int64_t state = sg_kda_state_offset(kda, sequence, scan.value_head);
  load_state(&scan, state, kda->computed_lens[sequence] == 0);
  scan_sequence(&scan, first_token, token_count);
  store_state(&scan, state);
}
