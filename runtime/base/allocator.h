// SPDX-License-Identifier: Apache-2.0
//
// Host memory for the library's own objects. Every object takes an allocator
// when it is created, keeps a copy and frees with it.

#ifndef STEPGRAPH_RUNTIME_BASE_ALLOCATOR_H_
#define STEPGRAPH_RUNTIME_BASE_ALLOCATOR_H_

#include <stddef.h>

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Both functions may be called by several threads at once.
typedef struct sg_allocator_t {
  void* self;
  // Returns zeroed memory aligned for any object, or NULL.
  void* (*allocate)(void* self, size_t bytes);
  // Accepts NULL.
  void (*release)(void* self, void* memory);
} sg_allocator_t;

// calloc and free of the C library.
sg_allocator_t sg_allocator_system(void);

// Allocates |count| zeroed elements of |element_bytes| each. A count of 0 gives
// one byte, so that a pointer is never NULL on success. |what| names the
// object in the message of SG_STATUS_OUT_OF_MEMORY.
SG_MUST_USE sg_status_t sg_allocate(sg_allocator_t allocator, const char* what,
                                    size_t count, size_t element_bytes,
                                    void** out_memory);

// Accepts NULL memory and an allocator that was never set (all zero) with it.
void sg_release(sg_allocator_t allocator, void* memory);

// Copies the string |text| of any length.
SG_MUST_USE sg_status_t sg_allocate_string(sg_allocator_t allocator,
                                           const char* text, char** out_copy);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_BASE_ALLOCATOR_H_
