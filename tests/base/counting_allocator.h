// SPDX-License-Identifier: Apache-2.0
//
// An allocator for tests: counts calls and live blocks and can fail the n-th
// allocation.

#ifndef STEPGRAPH_TESTS_BASE_COUNTING_ALLOCATOR_H_
#define STEPGRAPH_TESTS_BASE_COUNTING_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/base/allocator.h"

// Valid when zeroed. Used by one thread at a time.
typedef struct counting_allocator_t {
  uint64_t allocations;
  uint64_t releases;
  int64_t live;
  size_t last_bytes;
  // The allocation of this number, from 1, fails; 0 for none.
  uint64_t fail_nth;
} counting_allocator_t;

static inline void* counting_allocate(void* self, size_t bytes) {
  counting_allocator_t* counting = (counting_allocator_t*)self;
  counting->last_bytes = bytes;
  if (++counting->allocations == counting->fail_nth) return NULL;
  void* memory = calloc(1, bytes);
  if (memory != NULL) ++counting->live;
  return memory;
}

static inline void counting_release(void* self, void* memory) {
  counting_allocator_t* counting = (counting_allocator_t*)self;
  ++counting->releases;
  if (memory != NULL) --counting->live;
  free(memory);
}

static inline sg_allocator_t counting_allocator(counting_allocator_t* self) {
  sg_allocator_t allocator = {self, counting_allocate, counting_release};
  return allocator;
}

#endif  // STEPGRAPH_TESTS_BASE_COUNTING_ALLOCATOR_H_
