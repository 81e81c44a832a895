// SPDX-License-Identifier: Apache-2.0

// For syscall.
#define _DEFAULT_SOURCE

#include "kernels/common/host_amx.h"

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
static bool has_instructions(void) {
  enum { TILE = 1 << 24, TILE_BF16 = 1 << 22, AVX512_BF16 = 1 << 5 };
  unsigned a, b, c, d, a_1, unused;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!__get_cpuid_count(7, 1, &a_1, &unused, &unused, &unused)) return false;
  return (d & TILE) != 0 && (d & TILE_BF16) != 0 && (a_1 & AVX512_BF16) != 0;
}

bool sg__host_amx_available(void) {
  // Threads that ask at the same time get the same answer.
  static _Atomic int answer;
  int known = answer;
  if (known == 0) {
    known = has_instructions() && request_tiles() ? 1 : -1;
    answer = known;
  }
  return known > 0;
}
