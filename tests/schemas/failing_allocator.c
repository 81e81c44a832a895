// SPDX-License-Identifier: Apache-2.0

#include "tests/schemas/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void* allocate(void* self, size_t bytes) {
  failing_allocator_t* allocator = self;
  if (allocator->calls++ >= allocator->successes) return NULL;
  ++allocator->blocks_in_use;
  return calloc(1, bytes);
}

static void release(void* self, void* memory) {
  failing_allocator_t* allocator = self;
  if (memory != NULL) --allocator->blocks_in_use;
  free(memory);
}

sg_allocator_t failing_allocator(failing_allocator_t* self) {
  return (sg_allocator_t){
      .self = self, .allocate = allocate, .release = release};
}

void assert_survives_failing_allocations(failing_read_t read,
                                         const void* argument,
                                         size_t min_failures) {
  for (size_t successes = 0;; ++successes) {
    failing_allocator_t state = {.successes = successes};
    sg_status_t status = read(failing_allocator(&state), argument);
    assert_int_equal(state.blocks_in_use, 0);
    if (sg_status_is_ok(status)) {
      assert_true(successes >= min_failures);
      return;
    }
    assert_int_equal(status.code, SG_STATUS_OUT_OF_MEMORY);
    assert_true(successes < 1000);
  }
}
