// SPDX-License-Identifier: Apache-2.0
//
// The variants of one host kernel, one for each instruction set, and the
// choice among them.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_DISPATCH_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_DISPATCH_H_

#include "kernels/common/host_compiler.h"
#include "kernels/common/host_isa.h"
#include "runtime/hip/host_kernel.h"

// Declares the functions |run|_portable, |run|_avx2 and |run|_avx512.
#if defined(__x86_64__) && SG_HOST_HAS_EXTENSIONS
#define SG_HOST_DECLARE_VARIANTS(run)                                    \
  void run##_portable(const void* params, const sg_host_block_t* block); \
  void run##_avx2(const void* params, const sg_host_block_t* block);     \
  void run##_avx512(const void* params, const sg_host_block_t* block)
#define SG_HOST_VARIANT(kernel_name, bytes, run, isa) \
  { .name = (kernel_name), .params_bytes = (bytes), .run_block = run##_##isa }
#define SG_HOST_VARIANTS_WITH(kernel_name, bytes, run, amx) \
  {                                                         \
    SG_HOST_VARIANT(kernel_name, bytes, run, portable),     \
        SG_HOST_VARIANT(kernel_name, bytes, run, avx2),     \
        SG_HOST_VARIANT(kernel_name, bytes, run, avx512),   \
        SG_HOST_VARIANT(kernel_name, bytes, run, amx)       \
  }
#else
#define SG_HOST_DECLARE_VARIANTS(run) \
  void run##_portable(const void* params, const sg_host_block_t* block)
#define SG_HOST_VARIANTS_WITH(kernel_name, bytes, run, amx) \
  {                                                         \
    {.name = (kernel_name),                                 \
     .params_bytes = (bytes),                               \
     .run_block = run##_portable},                          \
  }
#endif

// Initialiser of an array of SG_HOST_ISA_COUNT sg_host_kernel_t.
#define SG_HOST_VARIANTS(kernel_name, bytes, run) \
  SG_HOST_VARIANTS_WITH(kernel_name, bytes, run, avx512)

// The same for a kernel that has |run|_amx as well, where the compiler can
// make it.
#if defined(SG_HOST_HAS_AMX)
#define SG_HOST_DECLARE_AMX(run) \
  void run##_amx(const void* params, const sg_host_block_t* block)
#define SG_HOST_VARIANTS_AMX(kernel_name, bytes, run) \
  SG_HOST_VARIANTS_WITH(kernel_name, bytes, run, amx)
#else
#define SG_HOST_DECLARE_AMX(run) SG_HOST_DECLARE_VARIANTS(run)
#define SG_HOST_VARIANTS_AMX(kernel_name, bytes, run) \
  SG_HOST_VARIANTS(kernel_name, bytes, run)
#endif

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_DISPATCH_H_
