// SPDX-License-Identifier: Apache-2.0
//
// The host kernel of short_conv by instruction set, for tests and benchmarks
// that force one. |isa| must be available.

#ifndef STEPGRAPH_KERNELS_SHORT_CONV_SHORT_CONV_HOST_H_
#define STEPGRAPH_KERNELS_SHORT_CONV_SHORT_CONV_HOST_H_

#include "kernels/common/host_isa.h"
#include "runtime/hip/host_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

const sg_host_kernel_t* sg__short_conv_variant(sg_host_isa_t isa);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_SHORT_CONV_SHORT_CONV_HOST_H_
