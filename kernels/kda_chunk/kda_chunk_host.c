// SPDX-License-Identifier: Apache-2.0
//
// Handles of the host kernel: the variant for this processor. It is looked up
// at each call, which is a read of a few flags, so that nothing is kept.

#include "kernels/kda_chunk/kda_chunk_host.h"

#include "kernels/common/host_dispatch.h"
#include "kernels/kda_chunk/configure.h"

SG_HOST_DECLARE_VARIANTS(sg__kda_chunk_scan_run);
SG_HOST_DECLARE_AMX(sg__kda_chunk_scan_run);

static const sg_host_kernel_t kernels[SG_HOST_ISA_COUNT] = SG_HOST_VARIANTS_AMX(
    "kda_chunk_scan", sizeof(sg_kda_chunk_params_t), sg__kda_chunk_scan_run);

const sg_host_kernel_t* sg__kda_chunk_variant(sg_host_isa_t isa) {
  return &kernels[isa];
}

static void run_nothing(const void* params, const sg_host_block_t* block) {
  (void)params;
  (void)block;
}

// A step for a GPU is recorded on the host with both kernels, but never run.
static const sg_host_kernel_t prepare_kernel = {
    .name = "kda_chunk_prepare",
    .params_bytes = sizeof(sg_kda_chunk_params_t),
    .run_block = run_nothing,
};

#define DEFINE_HANDLES(variant)                            \
  const void* kda_chunk_prepare_##variant##_handle(void) { \
    return &prepare_kernel;                                \
  }                                                        \
  const void* kda_chunk_scan_##variant##_handle(void) {    \
    return sg__kda_chunk_variant(sg__host_isa_best());     \
  }
SG_KDA_CHUNK_VARIANTS(DEFINE_HANDLES)
