// SPDX-License-Identifier: Apache-2.0
//
// gated_norm on the host. Compiled once for each instruction set.

#include <math.h>
#include <stdbool.h>

#include "kernels/common/host_math.h"
#include "kernels/common/host_symbol.h"
#include "kernels/common/host_vector.h"
#include "kernels/common/kda_rows_host.h"
#include "kernels/gated_norm/params.h"
#include "runtime/hip/host_kernel.h"

// Where a row is worked on. One a block, zeroed once, so that it is never read
// uninitialised, whatever the dimension.
typedef struct scratch_t {
  float o[SG_KDA_DIM_MAX];
  float gate[SG_KDA_DIM_MAX];
} scratch_t;

// Start of a row in a tensor whose tokens are |stride| apart.
static int64_t offset_of(const sg_gated_norm_params_t* p, int64_t row,
                         int64_t stride) {
  return row / p->value_heads * stride + row % p->value_heads * p->value_dim;
}

static void norm_row(const sg_gated_norm_params_t* p, int64_t row,
                     scratch_t* scratch) {
  const int32_t count = p->value_dim & ~15;
  float* restrict o = scratch->o;
  float* restrict gate = scratch->gate;
  sg_row_load(p->activation_dtype, p->o, offset_of(p, row, p->o_row_stride),
              count, o);
  sg_row_load(p->activation_dtype, p->gate,
              offset_of(p, row, p->gate_row_stride), count, gate);
  const float mean = sg_dot(o, o, count) / (float)count;
  const float factor = 1.0f / sqrtf(mean + p->epsilon);
  const float* restrict weight = p->weight;
  // Two loops: in one the compiler would multiply every o by the sigmoid's
  // lower bound as well, to select from, and the processor takes its time over
  // such tiny products.
  for (int32_t i = 0; i < count; ++i) gate[i] = sg_sigmoid(gate[i]);
  for (int32_t i = 0; i < count; ++i) o[i] *= factor * weight[i] * gate[i];
  sg_row_store(p->activation_dtype, p->y, offset_of(p, row, p->y_row_stride),
               count, o);
}

void SG_HOST_SYMBOL(sg__gated_norm_run)(const void* params,
                                        const sg_host_block_t* block);

void SG_HOST_SYMBOL(sg__gated_norm_run)(const void* params,
                                        const sg_host_block_t* block) {
  const sg_gated_norm_params_t* p = params;
  const bool failed = p->counts->error_code != SG_STEP_ERROR_NONE;
  const int64_t token_count = failed ? 0 : p->counts->token_count;
  const int64_t live_rows = token_count * p->value_heads;
  const int64_t rows = failed || p->zero_tail
                           ? (int64_t)p->token_capacity * p->value_heads
                           : live_rows;
  const int64_t first = (int64_t)block->index * p->row_tile;
  scratch_t scratch = {0};
  for (int64_t row = first; row < first + p->row_tile && row < rows; ++row) {
    if (row < live_rows) {
      norm_row(p, row, &scratch);
    } else {
      sg_row_zero(p->activation_dtype, p->y, offset_of(p, row, p->y_row_stride),
                  p->value_dim);
    }
  }
}
