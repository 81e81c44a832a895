// SPDX-License-Identifier: Apache-2.0
//
// The launch of kda_recurrent without the act of launching it. Internal; unit
// tests run the blocks of such a launch themselves.

#ifndef STEPGRAPH_KERNELS_KDA_RECURRENT_CONFIGURE_H_
#define STEPGRAPH_KERNELS_KDA_RECURRENT_CONFIGURE_H_

#include "kernels/common/kda_configure.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "kernels/kda_recurrent/params.h"

#ifdef __cplusplus
extern "C" {
#endif

// What device code is compiled for: a dtype of the state, and a class of
// key_dim.
#define SG_KDA_RECURRENT_VARIANTS(X) \
  X(fp32_k64)                        \
  X(fp32_k128)                       \
  X(fp32_k256)                       \
  X(bf16_k64)                        \
  X(bf16_k128)                       \
  X(bf16_k256)

enum { SG_KDA_RECURRENT_VARIANT_COUNT = 2 * SG_KDA_KEY_CLASSES };

// Accessors of the device code. On the host they all give the same kernel.
#define SG_KDA_RECURRENT_DECLARE(variant) \
  const void* kda_recurrent_##variant##_handle(void);
SG_KDA_RECURRENT_VARIANTS(SG_KDA_RECURRENT_DECLARE)
#undef SG_KDA_RECURRENT_DECLARE

// Holds the params that its launch points to: not to be copied.
typedef struct sg_kda_recurrent_plan_t {
  sg_kda_recurrent_params_t params;
  sg_launch_t launch;
} sg_kda_recurrent_plan_t;

// Checks |args| and fills |out_plan|. The grid is 0 where the capacity is.
SG_MUST_USE sg_status_t sg__kda_recurrent_configure(
    const sg_target_t* target, int32_t layer, const sg_kda_args_t* args,
    sg_kda_recurrent_plan_t* out_plan);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_KDA_RECURRENT_CONFIGURE_H_
