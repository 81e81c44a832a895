// SPDX-License-Identifier: Apache-2.0
//
// Rows of one head are too far apart for the processor to foresee them, and
// each is in a page of its own. They are asked for while the block before them
// is worked on, evenly: only a dozen requests can be under way at once, and one
// too many stops everything.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_PREFETCH_HOST_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_PREFETCH_HOST_H_

#include "kernels/common/host_compiler.h"
#include "kernels/kda_chunk/scratch_host.h"
#include "runtime/base/dtype.h"

// The lines of |count| elements.
static inline void sg_kda_queue_row(sg_kda_line_queue_t* queue, int32_t dtype,
                                    const void* tensor, int64_t offset,
                                    int32_t count) {
  const size_t bytes = sg_dtype_bytes((sg_dtype_t)dtype);
  const char* first = (const char*)tensor + (size_t)offset * bytes;
  for (size_t i = 0; i < (size_t)count * bytes; i += 64) {
    queue->lines[queue->count++] = first + i;
  }
}

// Asks for the next |count| lines.
static inline void sg_kda_queue_prefetch(sg_kda_line_queue_t* queue,
                                         int32_t count) {
  const int32_t left = queue->count - queue->next;
  if (count > left) count = left;
  for (int32_t i = 0; i < count; ++i) {
    sg_prefetch(queue->lines[queue->next + i]);
  }
  queue->next += count;
}

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_PREFETCH_HOST_H_
