// SPDX-License-Identifier: Apache-2.0
//
// Handle of the host kernel: the variant for this processor.

#include "kernels/random_fill/random_fill_host.h"

#include "kernels/common/host_dispatch.h"
#include "kernels/random_fill/random_fill.h"

SG_HOST_DECLARE_VARIANTS(sg__random_fill_run);

static const sg_host_kernel_t kernels[SG_HOST_ISA_COUNT] = SG_HOST_VARIANTS(
    "random_fill", sizeof(sg_random_fill_params_t), sg__random_fill_run);

const sg_host_kernel_t* sg__random_fill_variant(sg_host_isa_t isa) {
  return &kernels[isa];
}

const void* random_fill_handle(void) {
  return sg__random_fill_variant(sg__host_isa_best());
}
