// SPDX-License-Identifier: Apache-2.0
//
// Which share of the work a block of the host's launch does: a sequence, a
// value head and columns of v, whose states never meet. Every share makes the
// operands of its sequence and head itself, so columns are split only where
// workers would else have nothing to do. How they are split changes no bit.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SHARE_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SHARE_HOST_H_

#include <stdbool.h>

#include "kernels/kda_chunk/params.h"
#include "runtime/hip/host_kernel.h"

typedef struct sg_kda_share_t {
  int32_t sequence;
  int32_t value_head;
  int32_t first_column;
  int32_t column_count;
} sg_kda_share_t;

// Into how many shares to split the columns of each of |items| sequences and
// heads, so that |workers| are done soonest. In columns' time, operands cost as
// much as 4/3 of SG_KDA_CHUNK_STEP_COLUMNS. All shares fit |grid|.
static inline uint32_t sg_kda_choose_splits(uint32_t value_dim, uint32_t items,
                                            uint32_t workers, uint32_t grid) {
  const uint32_t steps =
      (value_dim + SG_KDA_CHUNK_STEP_COLUMNS - 1) / SG_KDA_CHUNK_STEP_COLUMNS;
  const uint32_t steps_most =
      SG_KDA_CHUNK_SPLIT_COLUMNS / SG_KDA_CHUNK_STEP_COLUMNS;
  const uint32_t least = (steps + steps_most - 1) / steps_most;
  uint32_t best = least;
  uint64_t best_time = UINT64_MAX;
  for (uint32_t splits = least; splits <= steps; ++splits) {
    if (splits > least && items > grid / splits) break;
    const uint32_t rounds = (items * splits + workers - 1) / workers;
    const uint32_t columns = (steps + splits - 1) / splits;
    const uint64_t time = (uint64_t)rounds * (4 + 3 * columns);
    if (time < best_time) {
      best = splits;
      best_time = time;
    }
  }
  return best;
}

// Whether there is a share for |block|.
static inline bool sg_kda_find_share(const sg_kda_params_t* params,
                                     const sg_host_block_t* block,
                                     sg_kda_share_t* out_share) {
  const sg_batch_counts_t* counts = params->counts;
  const uint32_t value_heads = (uint32_t)params->value_heads;
  const uint32_t items =
      (uint32_t)(counts->sequence_count - counts->decode_count) * value_heads;
  // Most blocks of a step of decodes, or of few sequences at a large capacity,
  // end here.
  if (block->index / SG_KDA_CHUNK_STEPS_MOST >= items) return false;
  const uint32_t splits = sg_kda_choose_splits(
      (uint32_t)params->value_dim, items, block->workers, block->grid);
  const uint32_t item = block->index / splits;
  if (item >= items) return false;
  const int32_t step = SG_KDA_CHUNK_STEP_COLUMNS;
  const int32_t steps = (params->value_dim + step - 1) / step;
  const int32_t columns =
      (steps + (int32_t)splits - 1) / (int32_t)splits * step;
  const int32_t first = (int32_t)(block->index % splits) * columns;
  const int32_t left = params->value_dim - first;
  *out_share = (sg_kda_share_t){
      .sequence = counts->decode_count + (int32_t)(item / value_heads),
      .value_head = (int32_t)(item % value_heads),
      .first_column = first,
      .column_count = left < columns ? left : columns,
  };
  return left > 0;
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SHARE_HOST_H_
