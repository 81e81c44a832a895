// SPDX-License-Identifier: Apache-2.0

#include "runtime/base/allocator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/checked.h"

static void* system_allocate(void* self, size_t bytes) {
  (void)self;
  return calloc(1, bytes);
}

static void system_release(void* self, void* memory) {
  (void)self;
  free(memory);
}

sg_allocator_t sg_allocator_system(void) {
  return (sg_allocator_t){
      .self = NULL, .allocate = system_allocate, .release = system_release};
}

sg_status_t sg_allocate(sg_allocator_t allocator, const char* what,
                        size_t count, size_t element_bytes, void** out_memory) {
  *out_memory = NULL;
  size_t bytes;
  if (!sg_checked_mul(count, element_bytes, &bytes)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "%s: %zu elements of %zu bytes overflow", what, count,
                          element_bytes);
  }
  void* memory = allocator.allocate(allocator.self, bytes == 0 ? 1 : bytes);
  if (memory == NULL) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "%s: allocating %zu bytes of host memory failed",
                          what, bytes);
  }
  *out_memory = memory;
  return sg_status_ok();
}

void sg_release(sg_allocator_t allocator, void* memory) {
  if (memory != NULL) allocator.release(allocator.self, memory);
}

sg_status_t sg_allocate_string(sg_allocator_t allocator, const char* text,
                               char** out_copy) {
  *out_copy = NULL;
  size_t bytes = strlen(text) + 1;
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "string", bytes, 1, &memory));
  assert(memory != NULL);
  memcpy(memory, text, bytes);
  *out_copy = memory;
  return sg_status_ok();
}
