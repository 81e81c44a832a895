// SPDX-License-Identifier: Apache-2.0
//
// Handle of the host kernel: the variant for this processor.

#include "kernels/gated_norm/gated_norm_host.h"

#include "kernels/common/host_dispatch.h"
#include "kernels/gated_norm/configure.h"

SG_HOST_DECLARE_VARIANTS(sg__gated_norm_run);

static const sg_host_kernel_t kernels[SG_HOST_ISA_COUNT] = SG_HOST_VARIANTS(
    "gated_norm", sizeof(sg_gated_norm_params_t), sg__gated_norm_run);

const sg_host_kernel_t* sg__gated_norm_variant(sg_host_isa_t isa) {
  return &kernels[isa];
}

const void* gated_norm_handle(void) {
  return sg__gated_norm_variant(sg__host_isa_best());
}
