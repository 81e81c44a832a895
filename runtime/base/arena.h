// SPDX-License-Identifier: Apache-2.0
//
// Lays out one block of device memory. A layout is only arithmetic: the block
// itself is allocated by whoever asked for the total, and offsets become
// pointers by adding its base.

#ifndef STEPGRAPH_RUNTIME_BASE_ARENA_H_
#define STEPGRAPH_RUNTIME_BASE_ARENA_H_

#include <stddef.h>

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Every region starts at a multiple of this, which suits any vector load.
enum { SG_ARENA_ALIGNMENT_BYTES = 256 };

// Zero-initialise to start an empty layout.
typedef struct sg_arena_layout_t {
  size_t total_bytes;
} sg_arena_layout_t;

// Appends a region of |count| elements of |element_bytes| and returns its
// offset. |what| names the region when the size overflows.
SG_MUST_USE sg_status_t sg_arena_reserve(sg_arena_layout_t* layout,
                                         const char* what, size_t count,
                                         size_t element_bytes,
                                         size_t* out_offset);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_BASE_ARENA_H_
