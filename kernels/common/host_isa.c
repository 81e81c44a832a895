// SPDX-License-Identifier: Apache-2.0

#include "kernels/common/host_isa.h"

#include "kernels/common/host_amx.h"
#include "kernels/common/host_compiler.h"

const char* sg__host_isa_name(sg_host_isa_t isa) {
  switch (isa) {
    case SG_HOST_ISA_PORTABLE:
      return "portable";
    case SG_HOST_ISA_AVX2:
      return "avx2";
    case SG_HOST_ISA_AVX512:
      return "avx512";
    case SG_HOST_ISA_AMX:
      return "amx";
  }
  return "unknown";
}

bool sg__host_isa_available(sg_host_isa_t isa) {
  switch (isa) {
    case SG_HOST_ISA_PORTABLE:
      return true;
#if defined(__x86_64__) && SG_HOST_HAS_EXTENSIONS
    case SG_HOST_ISA_AVX2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case SG_HOST_ISA_AVX512:
      return sg__host_isa_available(SG_HOST_ISA_AVX2) &&
             __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
#endif
#if defined(SG_HOST_HAS_AMX)
    case SG_HOST_ISA_AMX:
      return sg__host_isa_available(SG_HOST_ISA_AVX512) &&
             sg__host_amx_available();
#endif
    default:
      return false;
  }
}

sg_host_isa_t sg__host_isa_best(void) {
  if (sg__host_isa_available(SG_HOST_ISA_AMX)) return SG_HOST_ISA_AMX;
  if (sg__host_isa_available(SG_HOST_ISA_AVX512)) return SG_HOST_ISA_AVX512;
  if (sg__host_isa_available(SG_HOST_ISA_AVX2)) return SG_HOST_ISA_AVX2;
  return SG_HOST_ISA_PORTABLE;
}
