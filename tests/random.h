// SPDX-License-Identifier: Apache-2.0
//
// Repeatable random numbers for tests: splitmix64.

#ifndef STEPGRAPH_TESTS_RANDOM_H_
#define STEPGRAPH_TESTS_RANDOM_H_

#include <stdint.h>

static inline uint64_t random_next(uint64_t* seed) {
  uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// From 0 to limit - 1.
static inline int32_t random_below(uint64_t* seed, int32_t limit) {
  return (int32_t)(random_next(seed) % (uint64_t)limit);
}

#endif  // STEPGRAPH_TESTS_RANDOM_H_
