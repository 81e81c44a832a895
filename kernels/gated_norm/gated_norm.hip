// SPDX-License-Identifier: Apache-2.0
//
// gated_norm on a GPU: a wave a row, whose elements it has in registers before
// it writes any, so that y may be o.

#include "kernels/common/device_math.h"
#include "kernels/common/kda_params.h"
#include "kernels/gated_norm/params.h"

enum {
  THREADS = SG_GATED_NORM_THREADS,
  WAVES = THREADS / SG_WAVE,
  // Elements of a row that a lane has.
  SHARE = SG_KDA_DIM_MAX / SG_WAVE,
};

// Start of a row in a tensor whose tokens are |stride| apart.
SG_DEVICE int64_t offset_of(const sg_gated_norm_params_t* p, int64_t row,
                            int64_t stride) {
  return row / p->value_heads * stride + row % p->value_heads * p->value_dim;
}

SG_DEVICE void norm_row(const sg_gated_norm_params_t* p, int64_t row) {
  const int64_t o_offset = offset_of(p, row, p->o_row_stride);
  const int64_t gate_offset = offset_of(p, row, p->gate_row_stride);
  const int64_t y_offset = offset_of(p, row, p->y_row_stride);
  float o[SHARE], gate[SHARE];
  float squares = 0.0f;
#pragma unroll
  for (int32_t i = 0; i < SHARE; ++i) {
    const int32_t c = i * SG_WAVE + sg_lane();
    o[i] = gate[i] = 0.0f;
    if (c >= p->value_dim) continue;
    o[i] = sg_load_element(p->activation_dtype, p->o, o_offset + c);
    gate[i] = sg_load_element(p->activation_dtype, p->gate, gate_offset + c);
    squares += o[i] * o[i];
  }
  const float mean = sg_group_sum(squares, SG_WAVE) / (float)p->value_dim;
  const float factor = sg_reciprocal_root(mean + p->epsilon);
#pragma unroll
  for (int32_t i = 0; i < SHARE; ++i) {
    const int32_t c = i * SG_WAVE + sg_lane();
    if (c >= p->value_dim) continue;
    sg_store_element(p->activation_dtype, p->y, y_offset + c,
                     o[i] * factor * p->weight[c] * sg_sigmoid(gate[i]));
  }
}

SG_DEVICE void zero_row(const sg_gated_norm_params_t* p, int64_t row) {
  const int64_t offset = offset_of(p, row, p->y_row_stride);
  for (int32_t c = sg_lane(); c < p->value_dim; c += SG_WAVE) {
    sg_store_element(p->activation_dtype, p->y, offset + c, 0.0f);
  }
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 4)
    gated_norm(sg_gated_norm_params_t params) {
  const sg_gated_norm_params_t* p = &params;
  const bool failed = p->counts->error_code != SG_STEP_ERROR_NONE;
  const int64_t token_count = failed ? 0 : p->counts->token_count;
  const int64_t live_rows = token_count * p->value_heads;
  const int64_t rows = failed || p->zero_tail
                           ? (int64_t)p->token_capacity * p->value_heads
                           : live_rows;
  const int64_t step = (int64_t)sg_grid() * WAVES;
  for (int64_t row = (int64_t)sg_block() * WAVES + sg_wave(); row < rows;
       row += step) {
    if (row < live_rows) {
      norm_row(p, row);
    } else {
      zero_row(p, row);
    }
  }
}

extern "C" const void* gated_norm_handle(void) {
  return sg_kernel_handle(gated_norm);
}
