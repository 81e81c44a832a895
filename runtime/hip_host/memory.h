// SPDX-License-Identifier: Apache-2.0
//
// What the runtime knows of addresses. All functions need the runtime's lock.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_MEMORY_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_MEMORY_H_

#include "runtime/hip_host/runtime.h"

// Checks that |copy| goes in its direction, between memory that holds it.
// |out_is_pageable| says whether one side is memory of the host that the
// runtime does not know.
hipError_t sg_host_memory_check_copy(const sg_host_copy_t* copy,
                                     bool* out_is_pageable);

// Checks that |fill| stays within memory of the runtime.
hipError_t sg_host_memory_check_fill(const sg_host_fill_t* fill);

// Whether |pointer| is in pinned memory of the runtime.
bool sg_host_memory_is_pinned(const void* pointer);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_MEMORY_H_
