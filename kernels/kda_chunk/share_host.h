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
#include "runtime/base/checked.h"
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
static inline int64_t sg_kda_choose_splits(int64_t value_dim, int64_t items,
                                           int64_t workers, int64_t grid) {
  const int64_t steps = sg_ceil_div(value_dim, SG_KDA_CHUNK_STEP_COLUMNS);
  const int64_t least = sg_ceil_div(value_dim, SG_KDA_CHUNK_SPLIT_COLUMNS);
  int64_t best = least;
  int64_t best_time = INT64_MAX;
  for (int64_t splits = least; splits <= steps; ++splits) {
    if (splits > least && items * splits > grid) break;
    const int64_t rounds = sg_ceil_div(items * splits, workers);
    const int64_t time = rounds * (4 + 3 * sg_ceil_div(steps, splits));
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
  const int64_t value_heads = params->value_heads;
  const int64_t items =
      (counts->sequence_count - counts->decode_count) * value_heads;
  // Most blocks of a step of decodes, or of few sequences at a large capacity,
  // end here.
  if (block->index / SG_KDA_CHUNK_STEPS_MOST >= items) return false;
  const int64_t splits = sg_kda_choose_splits(params->value_dim, items,
                                              block->workers, block->grid);
  const int64_t item = block->index / splits;
  if (item >= items) return false;
  const int64_t step = SG_KDA_CHUNK_STEP_COLUMNS;
  const int64_t columns =
      sg_ceil_div(sg_ceil_div(params->value_dim, step), splits) * step;
  const int64_t first = block->index % splits * columns;
  const int64_t left = params->value_dim - first;
  *out_share = (sg_kda_share_t){
      .sequence = counts->decode_count + (int32_t)(item / value_heads),
      .value_head = (int32_t)(item % value_heads),
      .first_column = (int32_t)first,
      .column_count = (int32_t)(left < columns ? left : columns),
  };
  return left > 0;
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SHARE_HOST_H_
