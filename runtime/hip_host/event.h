// SPDX-License-Identifier: Apache-2.0
//
// Events. A recorded event is a ticket of a stream: it has happened when the
// stream has finished that ticket. An event recorded in a capture is a set of
// nodes instead.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_EVENT_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_EVENT_H_

#include "runtime/hip_host/runtime.h"

struct sg_host_event_t {
  sg_host_device_t* device;
  bool has_timing;
  // Held by the handle and by queued record commands.
  uint32_t references;
  // The last record; |stream| is NULL if there was none, or in a capture.
  sg_host_stream_t* stream;
  uint64_t ticket;
  // When |ticket| was executed.
  uint64_t timestamp_ns;
  // Id of the capture that the event was last recorded in, or 0, and the nodes
  // that it stands for.
  uint64_t capture_id;
  sg_host_nodes_t nodes;
};

// Does what the record command with |ticket| on |stream| does.
void sg_host_event_happen(sg_host_event_t* event,
                          const sg_host_stream_t* stream, uint64_t ticket);
void sg_host_event_release(sg_host_event_t* event);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_EVENT_H_
