// SPDX-License-Identifier: Apache-2.0
//
// Handles of the host kernel: the variant for this processor. It is looked up
// at each call, which is a read of a few flags, so that nothing is kept.

#include "kernels/kda_chunk/kda_chunk_host.h"

#include "kernels/common/host_dispatch.h"
#include "kernels/kda_chunk/configure.h"

SG_HOST_DECLARE_VARIANTS(sg__kda_chunk_scan_run);

static const sg_host_kernel_t kernels[SG_HOST_ISA_COUNT] = SG_HOST_VARIANTS(
    "kda_chunk_scan", sizeof(sg_kda_chunk_params_t), sg__kda_chunk_scan_run);

const sg_host_kernel_t* sg__kda_chunk_variant(sg_host_isa_t isa) {
  return &kernels[isa];
}

const void* kda_chunk_scan_handle(void) {
  return sg__kda_chunk_variant(sg__host_isa_best());
}
