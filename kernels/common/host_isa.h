// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets that the host kernels are compiled for. Each is one object
// library that builds the same sources with other flags; a kernel's handle
// picks the best one that this processor has.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_ISA_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_ISA_H_

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_host_isa_t {
  // Whatever the compiler targets by default.
  SG_HOST_ISA_PORTABLE = 0,
  // AVX2 and FMA.
  SG_HOST_ISA_AVX2 = 1,
  // AVX-512 F, BW, DQ and VL, with AVX2 and FMA.
  SG_HOST_ISA_AVX512 = 2,
  // AMX's tiles and products of bf16, AVX-512 BF16 and all of the above, where
  // Linux lets this process use them. Kernels that have no use for it are the
  // same as with SG_HOST_ISA_AVX512.
  SG_HOST_ISA_AMX = 3,
} sg_host_isa_t;

enum { SG_HOST_ISA_COUNT = 4 };

// "portable", "avx2", "avx512" or "amx".
const char* sg__host_isa_name(sg_host_isa_t isa);

// Whether the build has kernels for |isa| and this processor runs them.
bool sg__host_isa_available(sg_host_isa_t isa);

// The last available one.
sg_host_isa_t sg__host_isa_best(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_ISA_H_
