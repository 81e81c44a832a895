// SPDX-License-Identifier: Apache-2.0
//
// Handle of the host kernel: the variant for this processor. It is looked up
// at each call, which is a read of a few flags, so that nothing is kept.

#include "kernels/kda_recurrent/kda_recurrent_host.h"

#include "kernels/common/host_dispatch.h"
#include "kernels/kda_recurrent/configure.h"

SG_HOST_DECLARE_VARIANTS(sg__kda_recurrent_run);

static const sg_host_kernel_t kernels[SG_HOST_ISA_COUNT] = SG_HOST_VARIANTS(
    "kda_recurrent", sizeof(sg_kda_recurrent_params_t), sg__kda_recurrent_run);

const sg_host_kernel_t* sg__kda_recurrent_variant(sg_host_isa_t isa) {
  return &kernels[isa];
}

#define DEFINE_HANDLE(variant)                             \
  const void* kda_recurrent_##variant##_handle(void) {     \
    return sg__kda_recurrent_variant(sg__host_isa_best()); \
  }
SG_KDA_RECURRENT_VARIANTS(DEFINE_HANDLE)
