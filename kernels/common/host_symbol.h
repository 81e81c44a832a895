// SPDX-License-Identifier: Apache-2.0
//
// Names of what is compiled once for each instruction set: the build defines
// SG_HOST_ISA as portable, avx2, avx512 or amx, and SG_HOST_SYMBOL(run) is then
// run_portable, run_avx2, run_avx512 or run_amx.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_SYMBOL_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_SYMBOL_H_

#define SG_HOST_SYMBOL_JOIN(name, isa) name##_##isa
#define SG_HOST_SYMBOL_OF(name, isa) SG_HOST_SYMBOL_JOIN(name, isa)
#define SG_HOST_SYMBOL(name) SG_HOST_SYMBOL_OF(name, SG_HOST_ISA)

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_SYMBOL_H_
