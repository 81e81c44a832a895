// SPDX-License-Identifier: Apache-2.0

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_AMX_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_AMX_H_

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// Whether the processor has AMX's tiles, their products of bf16 and AVX-512
// BF16, and Linux lets this process use them. Asks for its permission the first
// time.
bool sg__host_amx_available(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_AMX_H_
