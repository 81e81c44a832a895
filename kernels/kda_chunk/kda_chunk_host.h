// SPDX-License-Identifier: Apache-2.0
//
// The host kernel of kda_chunk by instruction set, for tests and benchmarks
// that force one. |isa| must be available.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_KDA_CHUNK_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_KDA_CHUNK_HOST_H_

#include "kernels/common/host_isa.h"
#include "runtime/hip/host_kernel.h"

const sg_host_kernel_t* sg__kda_chunk_variant(sg_host_isa_t isa);

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_KDA_CHUNK_HOST_H_
