// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the host's scan share: the share of one state that a block
// of the launch carries, and its way between memory and scratch.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_HOST_H_

#include "kernels/common/kda_rows_host.h"
#include "kernels/kda_chunk/scratch_host.h"

enum {
  // Columns of a panel of the state.
  SG_KDA_PANEL = SG_TILE_COLUMNS,
  // Columns that are transposed together: they are of one panel, and
  // value_dim is a multiple of them.
  SG_KDA_STRIP = SG_KDA_PANEL < 16 ? SG_KDA_PANEL : 16,
};

typedef struct sg_kda_scan_t {
  const sg_kda_params_t* params;
  sg_kda_scan_scratch_t* scratch;
  int32_t value_head;
  int32_t key_dim;
  // Columns of this block in the value dimension, and their number rounded up
  // to panels.
  int32_t first_column;
  int32_t column_count;
  int32_t padded_columns;
} sg_kda_scan_t;

static inline float* sg_kda_panel_of(const sg_kda_scan_t* scan,
                                     int32_t column) {
  return scan->scratch->state + (ptrdiff_t)column * scan->key_dim;
}

// State rows [value_dim, key_dim] at |offset| to panels
// [key_dim][SG_KDA_PANEL]; columns of the padding are 0. Rows that are not fp32
// are widened on their way.
static inline void sg_kda_load_state(const sg_kda_scan_t* scan, int64_t offset,
                                     bool fresh) {
  const sg_kda_params_t* params = scan->params;
  const ptrdiff_t dim = scan->key_dim;
  const bool is_wide = params->state_dtype == SG_DTYPE_FP32;
  if (fresh || scan->padded_columns > scan->column_count) {
    memset(scan->scratch->state, 0,
           sizeof(float) * (size_t)(dim * scan->padded_columns));
  }
  if (fresh) return;
  for (int32_t v = 0; v < scan->column_count; v += SG_KDA_STRIP) {
    const int64_t first = offset + (scan->first_column + v) * dim;
    for (int32_t i = 0; !is_wide && i < SG_KDA_STRIP; ++i) {
      sg_row_load(params->state_dtype, params->state, first + i * dim,
                  scan->key_dim, scan->scratch->k_read[i]);
    }
    sg_transpose(is_wide ? (const float*)params->state + first
                         : scan->scratch->k_read[0],
                 is_wide ? dim : SG_KDA_ROW_FLOATS,
                 sg_kda_panel_of(scan, v / SG_KDA_PANEL * SG_KDA_PANEL) +
                     v % SG_KDA_PANEL,
                 SG_KDA_PANEL, SG_KDA_STRIP, scan->key_dim);
  }
}

static inline void sg_kda_store_state(const sg_kda_scan_t* scan,
                                      int64_t offset) {
  const sg_kda_params_t* params = scan->params;
  const ptrdiff_t dim = scan->key_dim;
  const bool is_wide = params->state_dtype == SG_DTYPE_FP32;
  for (int32_t v = 0; v < scan->column_count; v += SG_KDA_STRIP) {
    const int64_t first = offset + (scan->first_column + v) * dim;
    sg_transpose(
        sg_kda_panel_of(scan, v / SG_KDA_PANEL * SG_KDA_PANEL) +
            v % SG_KDA_PANEL,
        SG_KDA_PANEL,
        is_wide ? (float*)params->state + first : scan->scratch->k_read[0],
        is_wide ? dim : SG_KDA_ROW_FLOATS, scan->key_dim, SG_KDA_STRIP);
    for (int32_t i = 0; !is_wide && i < SG_KDA_STRIP; ++i) {
      sg_row_store(params->state_dtype, params->state, first + i * dim,
                   scan->key_dim, scan->scratch->k_read[i]);
    }
  }
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_SCAN_HOST_H_
