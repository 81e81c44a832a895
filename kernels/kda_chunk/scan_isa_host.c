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

#include "kernels/common/host_symbol.h"
#include "kernels/kda_chunk/scores_host.h"
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

// Asks for one of the tensors' rows of |token|. Inlined, see sg_row_prefetch.
static inline __attribute__((always_inline)) void prefetch_part(
    const scan_t* scan, int64_t token, int32_t part) {
  const sg_kda_params_t* params = scan->params;
  const int32_t dtype = params->activation_dtype;
  const int32_t head = scan->value_head;
  switch (part) {
    case 0:
      sg_row_prefetch(
          dtype, params->q,
          sg_kda_key_offset(params, params->q_row_stride, token, head),
          scan->key_dim);
      break;
    case 1:
      sg_row_prefetch(
          dtype, params->k,
          sg_kda_key_offset(params, params->k_row_stride, token, head),
          scan->key_dim);
      break;
    case 2:
      sg_row_prefetch(sg_kda_gate_dtype(params), params->raw_g,
                      sg_kda_gate_offset(params, token, head), scan->key_dim);
      break;
    default:
      sg_row_prefetch(
          dtype, params->v,
          sg_kda_value_offset(params, params->v_row_stride, token, head) +
              scan->first_column,
          scan->column_count);
      sg_row_prefetch(
          dtype, params->o,
          sg_kda_value_offset(params, params->o_row_stride, token, head) +
              scan->first_column,
          scan->column_count);
  }
}

// product = left panel, for the rows of a block. Meanwhile it asks for the rows
// of tokens |next| to |next_end| - 1, a few lines at a time, since only so many
// requests can be under way at once.
static void multiply_state(const scan_t* scan, const float (*left)[ROW],
                           const float* panel, int32_t row_count, int64_t next,
                           int64_t next_end, float* restrict product) {
  enum { PARTS = 4 };
  const int32_t depth = scan->key_dim / PARTS;
  const int64_t share =
      ((next_end - next) * SG_TILE_ROWS + row_count - 1) / row_count;
  for (int32_t r = 0; r < row_count; r += SG_TILE_ROWS) {
    sg_vector_t sum[SG_TILE_ROWS][SG_TILE_VECTORS] = {{{0}}};
    for (int32_t part = 0; part < PARTS; ++part) {
      for (int64_t i = 0; i < share && next + i < next_end; ++i) {
        prefetch_part(scan, next + i, part);
      }
      sg_tile_multiply(sum, SG_TILE_VECTORS, depth, left[r] + part * depth, ROW,
                       1, panel + part * depth * PANEL, PANEL);
    }
    next += share;
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

// The token up to which rows have been asked for when |done| of all reads of a
// block that ends before |end_token| have.
static int64_t prefetch_end(const scan_t* scan, const sg_kda_block_t* block,
                            int64_t end_token, int32_t done) {
  const int32_t reads = 2 * scan->padded_columns / PANEL;
  const int64_t end = block->first_token + B + done * B / reads;
  return end < end_token ? end : end_token;
}

static void scan_block(const scan_t* scan, sg_kda_block_t* block,
                       int64_t end_token) {
  sg_kda_scan_scratch_t* scratch = scan->scratch;
  const float(*k_read)[ROW] = (const float(*)[ROW])scratch->k_read;
  const float(*q_read)[ROW] = (const float(*)[ROW])scratch->q_read;
  sg_kda_block_prepare(block);
  load_values(scan, block);
  int32_t done = 0;
  for (int32_t column = 0; column < scan->padded_columns; column += PANEL) {
    float* panel = panel_of(scan, column);
    const int64_t start = prefetch_end(scan, block, end_token, done);
    const int64_t middle = prefetch_end(scan, block, end_token, done + 1);
    const int64_t end = prefetch_end(scan, block, end_token, done + 2);
    multiply_state(scan, k_read, panel, block->count, start, middle,
                   scratch->delta);
    multiply_state(scan, q_read, panel, block->count, middle, end,
                   scratch->out);
    done += 2;
    for (int32_t j = 0; j < PANEL; j += SG_VECTOR_FLOATS) {
      solve_columns(scratch, &scratch->values[0][column + j],
                    scratch->delta + j, scratch->out + j);
    }
    update_state(scratch, scan->key_dim, scratch->delta, block->count, panel);
  }
  store_values(scan, block);
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
    block.count = (int32_t)(end_token - t < B ? end_token - t : B);
    scan_block(scan, &block, end_token);
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
    for (int32_t part = 0; part < 4; ++part) {
      prefetch_part(&scan, first_token + t, part);
    }
  }
  float* state = sg_kda_state_of(kda, sequence, scan.value_head);
  load_state(&scan, state, kda->computed_lens[sequence] == 0);
  scan_sequence(&scan, first_token, token_count);
  store_state(&scan, state);
}
