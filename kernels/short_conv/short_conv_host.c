// SPDX-License-Identifier: Apache-2.0
//
// Handle of the host kernel: the variant for this processor.

#include "kernels/short_conv/short_conv_host.h"

#include "kernels/common/host_dispatch.h"
#include "kernels/short_conv/configure.h"

SG_HOST_DECLARE_VARIANTS(sg__short_conv_run);

static const sg_host_kernel_t kernels[SG_HOST_ISA_COUNT] = SG_HOST_VARIANTS(
    "short_conv", sizeof(sg_short_conv_params_t), sg__short_conv_run);

const sg_host_kernel_t* sg__short_conv_variant(sg_host_isa_t isa) {
  return &kernels[isa];
}

const void* short_conv_handle(void) {
  return sg__short_conv_variant(sg__host_isa_best());
}
