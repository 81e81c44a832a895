// SPDX-License-Identifier: Apache-2.0
//
// Words that host and device, or two threads, pass to each other without a
// lock: one side stores with release, the other loads with acquire.

#ifndef STEPGRAPH_RUNTIME_BASE_SHARED_WORD_H_
#define STEPGRAPH_RUNTIME_BASE_SHARED_WORD_H_

#include <stdint.h>

static inline uint64_t sg_load_acquire(const uint64_t* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void sg_store_release(uint64_t* word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#endif  // STEPGRAPH_RUNTIME_BASE_SHARED_WORD_H_
