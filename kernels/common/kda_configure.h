// SPDX-License-Identifier: Apache-2.0
//
// What the launchers of all KDA ops check and fill alike. Internal.

#ifndef STEPGRAPH_KERNELS_COMMON_KDA_CONFIGURE_H_
#define STEPGRAPH_KERNELS_COMMON_KDA_CONFIGURE_H_

#include "kernels/common/kda_args.h"
#include "kernels/common/kda_params.h"
#include "runtime/base/status.h"
#include "runtime/hip/launch.h"
#include "runtime/hip/target.h"

#ifdef __cplusplus
extern "C" {
#endif

// Heads, dimensions, kinds and dtypes that the kernels are written for, which
// are the same on every target. |op| starts the message.
SG_MUST_USE sg_status_t
sg__kda_check_geometry(const char* op, const sg_kda_geometry_t* geometry);

// Pointers, strides, alignment and capacities of a call whose geometry is
// supported.
SG_MUST_USE sg_status_t sg__kda_check_args(const char* op,
                                           const sg_kda_args_t* args,
                                           const sg_target_t* target);

sg_kda_params_t sg__kda_fill_params(const sg_kda_args_t* args);

// Blocks of a grid |rows| x |heads| x |splits|; SG_STATUS_OUT_OF_RANGE beyond
// the 2^31 - 1 that a grid's x may have.
SG_MUST_USE sg_status_t sg__kda_grid(const char* kernel, int64_t rows,
                                     int64_t heads, int64_t splits,
                                     uint32_t* out_grid);

// Blocks that take |items| work items in turns, at most |blocks_per_unit| a
// compute unit. Capacity beyond the real work then costs nothing.
uint32_t sg__kda_persistent_grid(const sg_target_t* target, uint32_t items,
                                 int32_t blocks_per_unit);

// Device code is compiled for key_dim up to 64, up to 128 and up to 256, which
// are classes 0, 1 and 2.
enum { SG_KDA_KEY_CLASSES = 3 };
int32_t sg__kda_key_class(int32_t key_dim);

// The members of sg_kda_params_t for an sg_kernel_t, whose params struct has
// it first.
#define SG_KDA_PARAM_FIELDS                                               \
  SG_PARAM_FIELD(sg_kda_params_t, counts, SG_PARAM_POINTER),              \
      SG_PARAM_FIELD(sg_kda_params_t, query_start_loc, SG_PARAM_POINTER), \
      SG_PARAM_FIELD(sg_kda_params_t, computed_lens, SG_PARAM_POINTER),   \
      SG_PARAM_FIELD(sg_kda_params_t, slots, SG_PARAM_POINTER),           \
      SG_PARAM_FIELD(sg_kda_params_t, q, SG_PARAM_POINTER),               \
      SG_PARAM_FIELD(sg_kda_params_t, k, SG_PARAM_POINTER),               \
      SG_PARAM_FIELD(sg_kda_params_t, v, SG_PARAM_POINTER),               \
      SG_PARAM_FIELD(sg_kda_params_t, raw_g, SG_PARAM_POINTER),           \
      SG_PARAM_FIELD(sg_kda_params_t, raw_beta, SG_PARAM_POINTER),        \
      SG_PARAM_FIELD(sg_kda_params_t, a_log, SG_PARAM_POINTER),           \
      SG_PARAM_FIELD(sg_kda_params_t, dt_bias, SG_PARAM_POINTER),         \
      SG_PARAM_FIELD(sg_kda_params_t, o, SG_PARAM_POINTER),               \
      SG_PARAM_FIELD(sg_kda_params_t, state, SG_PARAM_POINTER),           \
      SG_PARAM_FIELD(sg_kda_params_t, q_row_stride, SG_PARAM_I64),        \
      SG_PARAM_FIELD(sg_kda_params_t, k_row_stride, SG_PARAM_I64),        \
      SG_PARAM_FIELD(sg_kda_params_t, v_row_stride, SG_PARAM_I64),        \
      SG_PARAM_FIELD(sg_kda_params_t, g_row_stride, SG_PARAM_I64),        \
      SG_PARAM_FIELD(sg_kda_params_t, beta_row_stride, SG_PARAM_I64),     \
      SG_PARAM_FIELD(sg_kda_params_t, o_row_stride, SG_PARAM_I64),        \
      SG_PARAM_FIELD(sg_kda_params_t, state_slot_stride, SG_PARAM_I64),   \
      SG_PARAM_FIELD(sg_kda_params_t, heads, SG_PARAM_I32),               \
      SG_PARAM_FIELD(sg_kda_params_t, value_heads, SG_PARAM_I32),         \
      SG_PARAM_FIELD(sg_kda_params_t, key_dim, SG_PARAM_I32),             \
      SG_PARAM_FIELD(sg_kda_params_t, value_dim, SG_PARAM_I32),           \
      SG_PARAM_FIELD(sg_kda_params_t, gate_kind, SG_PARAM_I32),           \
      SG_PARAM_FIELD(sg_kda_params_t, beta_kind, SG_PARAM_I32),           \
      SG_PARAM_FIELD(sg_kda_params_t, qk_l2norm, SG_PARAM_I32),           \
      SG_PARAM_FIELD(sg_kda_params_t, activation_dtype, SG_PARAM_I32),    \
      SG_PARAM_FIELD(sg_kda_params_t, null_slot, SG_PARAM_I32),           \
      SG_PARAM_FIELD(sg_kda_params_t, token_capacity, SG_PARAM_I32),      \
      SG_PARAM_FIELD(sg_kda_params_t, zero_tail, SG_PARAM_I32),           \
      SG_PARAM_FIELD(sg_kda_params_t, zeroes_outputs, SG_PARAM_I32),      \
      SG_PARAM_FIELD(sg_kda_params_t, state_dtype, SG_PARAM_I32),         \
      SG_PARAM_FIELD(sg_kda_params_t, reserved, SG_PARAM_I32),            \
      SG_PARAM_FIELD(sg_kda_params_t, scale, SG_PARAM_F32),               \
      SG_PARAM_FIELD(sg_kda_params_t, gate_lower_bound, SG_PARAM_F32)

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_COMMON_KDA_CONFIGURE_H_
