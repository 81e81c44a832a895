// SPDX-License-Identifier: Apache-2.0
//
// Size arithmetic that cannot wrap. Each function returns false on overflow
// and leaves |out| untouched then.

#ifndef STEPGRAPH_RUNTIME_BASE_CHECKED_H_
#define STEPGRAPH_RUNTIME_BASE_CHECKED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sg_checked_add(size_t a, size_t b, size_t* out) {
  if (b > SIZE_MAX - a) return false;
  *out = a + b;
  return true;
}

static inline bool sg_checked_mul(size_t a, size_t b, size_t* out) {
  if (a != 0 && b > SIZE_MAX / a) return false;
  *out = a * b;
  return true;
}

// Rounds |value| up to a multiple of |alignment|, a power of two.
static inline bool sg_checked_align(size_t value, size_t alignment,
                                    size_t* out) {
  size_t sum;
  if (!sg_checked_add(value, alignment - 1, &sum)) return false;
  *out = sum & ~(alignment - 1);
  return true;
}

static inline int64_t sg_ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

#endif  // STEPGRAPH_RUNTIME_BASE_CHECKED_H_
