// SPDX-License-Identifier: Apache-2.0

// For syscall.
#define _DEFAULT_SOURCE

#include "kernels/common/host_isa.h"

#include "kernels/common/host_compiler.h"

#if defined(SG_HOST_HAS_AMX)
#include <cpuid.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

// Linux lets a process use the tiles only after it has asked for their state,
// since that enlarges every thread's: arch_prctl(2), x86/xstate.rst.
static bool request_tiles(void) {
  const long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

// Bits of Intel's manual, volume 2A, CPUID leaf 7. Not all compilers have names
// for them.
static bool has_amx(void) {
  enum { TILE = 1 << 24, TILE_BF16 = 1 << 22, AVX512_BF16 = 1 << 5 };
  unsigned a, b, c, d, a_1, unused;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!__get_cpuid_count(7, 1, &a_1, &unused, &unused, &unused)) return false;
  return (d & TILE) != 0 && (d & TILE_BF16) != 0 && (a_1 & AVX512_BF16) != 0 &&
         sg__host_isa_available(SG_HOST_ISA_AVX512) && request_tiles();
}

// Asked once; threads that ask at the same time get the same answer.
static bool has_amx_once(void) {
  static _Atomic int answer;
  int known = answer;
  if (known == 0) {
    known = has_amx() ? 1 : -1;
    answer = known;
  }
  return known > 0;
}
#endif

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
      return has_amx_once();
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
