// SPDX-License-Identifier: Apache-2.0
//
// The launches of kda_chunk without the act of launching them. Internal; unit
// tests run the blocks of such launches themselves.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_CONFIGURE_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_CONFIGURE_H_

#include "kernels/common/kda_configure.h"
#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_chunk/params.h"

#ifdef __cplusplus
extern "C" {
#endif

// What device code is compiled for: activations in bf16 with panels of fp16
// (panel.h says when), or any activations with panels of fp32; and a class of
// key_dim.
#define SG_KDA_CHUNK_VARIANTS(X) \
  X(bf16_k64)                    \
  X(bf16_k128)                   \
  X(bf16_k256)                   \
  X(fp32_k64)                    \
  X(fp32_k128)                   \
  X(fp32_k256)

enum { SG_KDA_CHUNK_VARIANT_COUNT = 2 * SG_KDA_KEY_CLASSES };

// Accessors of the device code. On the host the variants of the scan are all
// the same, and prepare is there for dumps of other targets only.
#define SG_KDA_CHUNK_DECLARE(variant)                     \
  const void* kda_chunk_prepare_##variant##_handle(void); \
  const void* kda_chunk_scan_##variant##_handle(void);
SG_KDA_CHUNK_VARIANTS(SG_KDA_CHUNK_DECLARE)
#undef SG_KDA_CHUNK_DECLARE

enum { SG_KDA_CHUNK_MAX_LAUNCHES = 2 };

// Holds the params that its launches point to: not to be copied.
typedef struct sg_kda_chunk_plan_t {
  sg_kda_chunk_params_t params;
  // One on the host, two on GPUs.
  sg_launch_t launches[SG_KDA_CHUNK_MAX_LAUNCHES];
  int32_t launch_count;
} sg_kda_chunk_plan_t;

// Checks |args| and fills |out_plan|. Grids are 0 where a capacity is.
SG_MUST_USE sg_status_t sg__kda_chunk_configure(const sg_target_t* target,
                                                int32_t layer,
                                                const sg_kda_args_t* args,
                                                sg_kda_chunk_plan_t* out_plan);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_CONFIGURE_H_
