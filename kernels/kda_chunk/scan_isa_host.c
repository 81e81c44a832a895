// SPDX-License-Identifier: Apache-2.0
//
// kda_chunk_scan on the host: one state, or some of its columns, carried
// through the chunks of a sequence. Compiled once for each instruction set.
//
// For a block of 16 tokens, with prepare's scores A and Q, G the running sum
// of log decays from the block's first token, L its last row, E(x) = 2^x and
// the state S [key_dim, columns]:
//
//   (I + A) d = beta (v - (k^ E(G)) S)      d by forward substitution
//   o         = (q^ E(G)) S + Q d
//   S        <- diag(E(G[L])) S + (k^ E(G[L] - G))^T d
//
// which is KDA_SPEC's residual form: A's inverse, w and u never exist, and
// columns of S never meet, so that vectors run along them.

#include "kernels/common/host_symbol.h"
#include "kernels/common/kda_rows_host.h"
#include "kernels/kda_chunk/scratch_host.h"
#include "runtime/hip/host_kernel.h"

enum {
  B = SG_KDA_BLOCK_TOKENS,
  ROW = SG_KDA_ROW_FLOATS,
  PANEL = SG_TILE_COLUMNS,
  // Columns that are transposed together: they are of one panel, and
  // value_dim is a multiple of them.
  STRIP = PANEL < 16 ? PANEL : 16,
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

// One block of tokens and what prepare left for it.
typedef struct block_rows_t {
  int64_t first_token;
  int32_t count;
  // Rows of the block that follows in the sequence.
  int32_t next_count;
  const float* decays;                  // [B][key_dim]
  const float (*scores)[2][B];          // [B]: A, then Q
  const sg_kda_row_factors_t* factors;  // [B]
} block_rows_t;

static float* panel_of(const scan_t* scan, int32_t column) {
  return scan->scratch->state + (ptrdiff_t)column * scan->key_dim;
}

// State rows [value_dim, key_dim] to panels [key_dim][PANEL]; columns of the
// padding are 0.
static void load_state(const scan_t* scan, const float* state, bool fresh) {
  const ptrdiff_t dim = scan->key_dim;
  if (fresh || scan->padded_columns > scan->column_count) {
    memset(scan->scratch->state, 0,
           sizeof(float) * (size_t)(dim * scan->padded_columns));
  }
  if (fresh) return;
  for (int32_t v = 0; v < scan->column_count; v += STRIP) {
    sg_transpose(state + (scan->first_column + v) * dim, dim,
                 panel_of(scan, v / PANEL * PANEL) + v % PANEL, PANEL, STRIP,
                 scan->key_dim);
  }
}

static void store_state(const scan_t* scan, float* state) {
  const ptrdiff_t dim = scan->key_dim;
  for (int32_t v = 0; v < scan->column_count; v += STRIP) {
    sg_transpose(panel_of(scan, v / PANEL * PANEL) + v % PANEL, PANEL,
                 state + (scan->first_column + v) * dim, dim, scan->key_dim,
                 STRIP);
  }
}

// k_read, q_read and block_decay, with the decays summed from the first row.
static void scale_reads(const scan_t* scan, const block_rows_t* rows) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const int32_t count = scan->key_dim & ~15;
  float* restrict sum = scratch->sum;
  memset(sum, 0, sizeof(float) * (size_t)count);
  for (int32_t r = 0; r < rows->count; ++r) {
    const float* restrict decay = rows->decays + (ptrdiff_t)r * count;
    float* restrict k_read = scratch->k_read[r];
    float* restrict q_read = scratch->q_read[r];
    const float* restrict k = scratch->k_write[r];
    const float q_factor = rows->factors[r].q;
    for (int32_t c = 0; c < count; ++c) {
      sum[c] += decay[c];
      const float factor = sg_decay(sum[c]);
      k_read[c] = k[c] * factor;
      q_read[c] *= q_factor * factor;
    }
  }
  for (int32_t c = 0; c < count; ++c)
    scratch->block_decay[c] = sg_decay(sum[c]);
}

// k_write, with the decays summed from the last row back, so that the decays
// of the last rows, which weigh most, are exact.
static void scale_writes(const scan_t* scan, const block_rows_t* rows) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const int32_t count = scan->key_dim & ~15;
  float* restrict sum = scratch->sum;
  memset(sum, 0, sizeof(float) * (size_t)count);
  for (int32_t r = rows->count - 1; r >= 0; --r) {
    const float* restrict decay = rows->decays + (ptrdiff_t)r * count;
    float* restrict k_write = scratch->k_write[r];
    for (int32_t c = 0; c < count; ++c) {
      k_write[c] *= sg_decay(sum[c]);
      sum[c] += decay[c];
    }
  }
}

// The operands of one block. Rows beyond its count are left undefined: tiles
// work on them as well, but no row that counts depends on a later one.
static void load_block(const scan_t* scan, const block_rows_t* rows) {
  const sg_kda_params_t* params = scan->params;
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const int32_t count = scan->key_dim & ~15;
  for (int32_t r = 0; r < rows->count; ++r) {
    const int64_t token = rows->first_token + r;
    float* restrict k = scratch->k_write[r];
    sg_kda_load_key(params, params->q, params->q_row_stride, token,
                    scan->value_head, scratch->q_read[r]);
    sg_kda_load_key(params, params->k, params->k_row_stride, token,
                    scan->value_head, k);
    const float k_factor = rows->factors[r].k;
    for (int32_t c = 0; c < count; ++c) k[c] *= k_factor;
    sg_row_load(params->activation_dtype, params->v,
                sg_kda_value_offset(params, params->v_row_stride, token,
                                    scan->value_head) +
                    scan->first_column,
                scan->column_count, scratch->values[r]);
    memset(scratch->values[r] + scan->column_count, 0,
           sizeof(float) * (size_t)(scan->padded_columns - scan->column_count));
  }
  scale_reads(scan, rows);
  scale_writes(scan, rows);
}

// product = left panel, for the rows of a block.
static void multiply_state(const float (*left)[ROW], int32_t key_dim,
                           const float* panel, int32_t row_count,
                           float product[B][PANEL]) {
  for (int32_t r = 0; r < row_count; r += SG_TILE_ROWS) {
    sg_vector_t sum[SG_TILE_ROWS][SG_TILE_VECTORS] = {{{0}}};
    sg_tile_multiply(sum, SG_TILE_VECTORS, key_dim, left[r], ROW, 1, panel,
                     PANEL);
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 2
      for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
        sg_vector_store(&product[r + i][j * SG_VECTOR_FLOATS], sum[i][j]);
      }
    }
  }
}

// delta[r] = beta_r (v_r - delta[r]) - sum over s < r of A[r, s] delta[s] and
// out[r] += sum over s <= r of Q[r, s] delta[s], along one vector of columns.
static void solve_columns(const block_rows_t* rows, const float* values,
                          float* restrict delta, float* restrict out) {
  sg_vector_t x[B];
#pragma GCC unroll 16
  for (int32_t r = 0; r < B; ++r) {
    x[r] = rows->factors[r].beta *
           (sg_vector_load(values + r * SG_KDA_CHUNK_SPLIT_COLUMNS) -
            sg_vector_load(delta + r * PANEL));
  }
  // By columns of A, so that there are always independent sums in flight.
#pragma GCC unroll 16
  for (int32_t s = 0; s < B; ++s) {
    sg_vector_store(delta + s * PANEL, x[s]);
#pragma GCC unroll 16
    for (int32_t r = s + 1; r < B; ++r) x[r] -= rows->scores[r][0][s] * x[s];
  }
#pragma GCC unroll 16
  for (int32_t r = 0; r < B; ++r) {
    sg_vector_t y = sg_vector_load(out + r * PANEL);
#pragma GCC unroll 16
    for (int32_t s = 0; s <= r; ++s) y += rows->scores[r][1][s] * x[s];
    sg_vector_store(out + r * PANEL, y);
  }
}

// panel = diag(block_decay) panel + k_write^T delta.
static void update_state(const sg_kda_scan_scratch_t* scratch, int32_t key_dim,
                         float delta[B][PANEL], int32_t row_count,
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
                     1, ROW, &delta[0][0], PANEL);
#pragma GCC unroll 8
    for (int32_t i = 0; i < SG_TILE_ROWS; ++i) {
#pragma GCC unroll 2
      for (int32_t j = 0; j < SG_TILE_VECTORS; ++j) {
        sg_vector_store(rows + i * PANEL + j * SG_VECTOR_FLOATS, sum[i][j]);
      }
    }
  }
}

static void prefetch_row(const scan_t* scan, int64_t token) {
  const sg_kda_params_t* params = scan->params;
  const int32_t dtype = params->activation_dtype;
  const int32_t head = scan->value_head;
  sg_row_prefetch(dtype, params->q,
                  sg_kda_key_offset(params, params->q_row_stride, token, head),
                  scan->key_dim);
  sg_row_prefetch(dtype, params->k,
                  sg_kda_key_offset(params, params->k_row_stride, token, head),
                  scan->key_dim);
  sg_row_prefetch(
      dtype, params->v,
      sg_kda_value_offset(params, params->v_row_stride, token, head) +
          scan->first_column,
      scan->column_count);
}

// Asks for the rows of the block after this one, a part with each panel, since
// only so many requests can be under way at once.
static void prefetch_next(const scan_t* scan, const block_rows_t* rows,
                          int32_t panel) {
  const int32_t panels = scan->padded_columns / PANEL;
  const int32_t end = (panel + 1) * B / panels;
  for (int32_t r = panel * B / panels; r < end && r < rows->next_count; ++r) {
    prefetch_row(scan, rows->first_token + B + r);
  }
}

static void scan_block(const scan_t* scan, const block_rows_t* rows) {
  const sg_kda_params_t* params = scan->params;
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  load_block(scan, rows);
  for (int32_t column = 0; column < scan->padded_columns; column += PANEL) {
    float* panel = panel_of(scan, column);
    float delta[B][PANEL], out[B][PANEL];
    prefetch_next(scan, rows, column / PANEL);
    multiply_state((const float(*)[ROW])scratch->k_read, scan->key_dim, panel,
                   rows->count, delta);
    multiply_state((const float(*)[ROW])scratch->q_read, scan->key_dim, panel,
                   rows->count, out);
    for (int32_t j = 0; j < PANEL; j += SG_VECTOR_FLOATS) {
      solve_columns(rows, &scratch->values[0][column + j], &delta[0][j],
                    &out[0][j]);
    }
    update_state(scratch, scan->key_dim, delta, rows->count, panel);
    for (int32_t r = 0; r < rows->count; ++r) {
      memcpy(&scratch->values[r][column], out[r], sizeof(out[r]));
    }
  }
  for (int32_t r = 0; r < rows->count; ++r) {
    sg_row_store(params->activation_dtype, params->o,
                 sg_kda_value_offset(params, params->o_row_stride,
                                     rows->first_token + r, scan->value_head) +
                     scan->first_column,
                 scan->column_count, scratch->values[r]);
  }
}

static void scan_sequence(const scan_t* scan,
                          const sg_kda_chunk_params_t* params,
                          int64_t first_chunk, int64_t first_token,
                          int64_t token_count) {
  const int64_t size = params->chunk_size;
  for (int64_t t = 0; t < token_count; t += B) {
    const int64_t chunk = first_chunk + t / size;
    const int64_t row =
        (chunk * scan->params->value_heads + scan->value_head) * size +
        t % size;
    const block_rows_t rows = {
        .first_token = first_token + t,
        .count = sg_kda_block_rows(t, token_count),
        .next_count = sg_kda_block_rows(t + B, token_count),
        .decays = params->decays + row * scan->key_dim,
        .scores = (const float(*)[2][B])(params->scores + row * 2 * B),
        .factors =
            (const sg_kda_row_factors_t*)(const void*)params->factors + row,
    };
    scan_block(scan, &rows);
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
  for (int64_t t = 0; t < token_count && t < B; ++t) {
    prefetch_row(&scan, first_token + t);
  }
  float* state = sg_kda_state_of(kda, sequence, scan.value_head);
  load_state(&scan, state, kda->computed_lens[sequence] == 0);
  scan_sequence(&scan, params, params->chunk_offsets[sequence], first_token,
                token_count);
  store_state(&scan, state);
}
