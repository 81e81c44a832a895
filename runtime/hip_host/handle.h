// SPDX-License-Identifier: Apache-2.0
//
// Handles of streams, events, graphs, nodes and executable graphs. A handle is
// a number, not an address: the index of a slot and the slot's generation. A
// destroyed or foreign handle is therefore always recognised and never
// followed. All functions need the runtime's lock.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_HANDLE_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_HANDLE_H_

#include <stdint.h>

typedef enum sg_host_type_t {
  SG_HOST_STREAM = 1,
  SG_HOST_EVENT,
  SG_HOST_GRAPH,
  SG_HOST_NODE,
  SG_HOST_EXEC,
} sg_host_type_t;

// A handle for |object|, or NULL if memory is exhausted.
void* sg_host_handle_create(sg_host_type_t type, void* object);

// The object of |handle|, or NULL if it is not a live handle of that type.
void* sg_host_handle_find(sg_host_type_t type, const void* handle);

// Ends a live handle.
void sg_host_handle_destroy(const void* handle);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_HANDLE_H_
