// SPDX-License-Identifier: Apache-2.0
//
// What the host kernels take from GCC and Clang beyond C11, all of it for
// speed alone, and what stands in for it where a compiler does not have it or
// a build says SG_HOST_PLAIN_C. Unroll pragmas need nothing: other compilers
// pass over them.

#ifndef STEPGRAPH_KERNELS_COMMON_HOST_COMPILER_H_
#define STEPGRAPH_KERNELS_COMMON_HOST_COMPILER_H_

// Whether they are there; the attribute of the vector types, host_vector.h's,
// stands for all of them. Some compilers that call themselves __GNUC__ have
// none.
#if defined(__has_attribute) && !defined(SG_HOST_PLAIN_C)
#if __has_attribute(vector_size)
#define SG_HOST_HAS_EXTENSIONS 1
#endif
#endif
#ifndef SG_HOST_HAS_EXTENSIONS
#define SG_HOST_HAS_EXTENSIONS 0
#endif

// In place of inline, for what has to meet its constant arguments.
#if SG_HOST_HAS_EXTENSIONS
#define SG_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define SG_ALWAYS_INLINE inline
#endif

// Asks for the cache line at |address|, which is going to be read, into the
// second-level cache.
static inline void sg_prefetch(const void* address) {
#if SG_HOST_HAS_EXTENSIONS
  __builtin_prefetch(address, /*write=*/0, /*locality=*/2);
#else
  (void)address;
#endif
}

#endif  // STEPGRAPH_KERNELS_COMMON_HOST_COMPILER_H_
