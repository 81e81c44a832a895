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
#if defined(SG_HOST_FOR_AMX)
#include "kernels/kda_chunk/advance_amx_host.h"
#else
#include "kernels/kda_chunk/advance_host.h"
#endif
#include "kernels/kda_chunk/prefetch_host.h"
#include "kernels/kda_chunk/scan_host.h"
#include "kernels/kda_chunk/scores_host.h"
#include "kernels/kda_chunk/share_host.h"
#include "runtime/hip/host_kernel.h"

enum { B = SG_KDA_BLOCK_TOKENS };

// v of a block; columns of the padding are 0.
static void load_values(const sg_kda_scan_t* scan,
                        const sg_kda_block_t* block) {
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

static void store_values(const sg_kda_scan_t* scan,
                         const sg_kda_block_t* block) {
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
static void queue_rows(const sg_kda_scan_t* scan, int64_t token,
                       int64_t count) {
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

static void scan_block(const sg_kda_scan_t* scan, sg_kda_block_t* block,
                       int64_t next_count) {
  sg_kda_block_prepare(block);
  load_values(scan, block);
  queue_rows(scan, block->first_token + B, next_count);
  sg_kda_advance(scan, block);
  store_values(scan, block);
}

// Of the block that starts at |token|; 0 beyond the end.
static int32_t rows_of_block(int64_t token, int64_t end_token) {
  const int64_t left = end_token - token;
  return left < 0 ? 0 : left < B ? (int32_t)left : B;
}

static void scan_sequence(const sg_kda_scan_t* scan, int64_t first_token,
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

static void zero_sequence(const sg_kda_scan_t* scan, int64_t first_token,
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
#if defined(SG_HOST_FOR_AMX)
void sg__kda_chunk_scan_run_avx512(const void* params_pointer,
                                   const sg_host_block_t* block);
#endif

void SG_HOST_SYMBOL(sg__kda_chunk_scan_run)(const void* params_pointer,
                                            const sg_host_block_t* block) {
  const sg_kda_chunk_params_t* params = params_pointer;
  const sg_kda_params_t* kda = &params->kda;
#if defined(SG_HOST_FOR_AMX)
  // Its products are not close enough for what fp16 and fp32 are rounded by.
  if (kda->activation_dtype != SG_DTYPE_BF16) {
    sg__kda_chunk_scan_run_avx512(params_pointer, block);
    return;
  }
#endif
  if (!sg_kda_begin_block(kda, block->index, block->grid)) return;
  sg_kda_share_t share;
  if (!sg_kda_find_share(kda, block, &share)) return;
  const int64_t first_token = kda->query_start_loc[share.sequence];
  const int64_t token_count =
      kda->query_start_loc[share.sequence + 1] - first_token;
  if (token_count == 0) return;

  const int32_t panels = (share.column_count + SG_KDA_PANEL - 1) / SG_KDA_PANEL;
  const sg_kda_scan_t scan = {
      .params = kda,
      .scratch = block->shared,
      .value_head = share.value_head,
      .key_dim = kda->key_dim,
      .first_column = share.first_column,
      .column_count = share.column_count,
      .padded_columns = panels * SG_KDA_PANEL,
  };
  if (!sg_kda_has_slot(kda, share.sequence)) {
    zero_sequence(&scan, first_token, token_count);
    return;
  }
  queue_rows(&scan, first_token, rows_of_block(0, token_count));
  sg_kda_queue_prefetch(&scan.scratch->queue, scan.scratch->queue.count);
  const int64_t state =
      sg_kda_state_offset(kda, share.sequence, scan.value_head);
  sg_kda_load_state(&scan, state, kda->computed_lens[share.sequence] == 0);
  sg_kda_advance_begin(&scan);
  scan_sequence(&scan, first_token, token_count);
  sg_kda_advance_end(&scan);
  sg_kda_store_state(&scan, state);
}
