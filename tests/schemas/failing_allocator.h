// SPDX-License-Identifier: Apache-2.0
//
// An allocator that counts what is in use and fails from a chosen call on.

#ifndef STEPGRAPH_TESTS_SCHEMAS_FAILING_ALLOCATOR_H_
#define STEPGRAPH_TESTS_SCHEMAS_FAILING_ALLOCATOR_H_

#include <stddef.h>

#include "runtime/base/allocator.h"

typedef struct failing_allocator_t {
  // Allocations that succeed before every later one fails.
  size_t successes;
  size_t calls;
  size_t blocks_in_use;
} failing_allocator_t;

// |self| outlives the result.
sg_allocator_t failing_allocator(failing_allocator_t* self);

// Runs |read| with 0, 1, 2, ... successful allocations until it succeeds, and
// asserts that every failure is SG_STATUS_OUT_OF_MEMORY and leaves nothing in
// use, and that at least |min_failures| were seen. |read| frees what it read.
typedef sg_status_t (*failing_read_t)(sg_allocator_t allocator,
                                      const void* argument);
void assert_survives_failing_allocations(failing_read_t read,
                                         const void* argument,
                                         size_t min_failures);

#endif  // STEPGRAPH_TESTS_SCHEMAS_FAILING_ALLOCATOR_H_
