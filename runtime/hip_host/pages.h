// SPDX-License-Identifier: Apache-2.0
//
// Memory straight from the system: page-aligned, zeroed, reserved now and
// backed when it is touched, with an inaccessible page behind it, so that an
// access past the end faults.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_PAGES_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_PAGES_H_

#include <stddef.h>

// |bytes| rounded up to whole pages; 0 if that overflows.
size_t sg_host_pages_round(size_t bytes);

// At least |bytes| bytes, or NULL.
void* sg_host_pages_map(size_t bytes);

// Gives back what sg_host_pages_map returned for the same |bytes|.
void sg_host_pages_unmap(void* address, size_t bytes);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_PAGES_H_
