// SPDX-License-Identifier: Apache-2.0
//
// The executor's insides, shared by executor.c (create, bind, destroy, read),
// executor_capture.c (graphs) and executor_run.c (steps).

#ifndef STEPGRAPH_RUNTIME_EXECUTOR_INTERNAL_H_
#define STEPGRAPH_RUNTIME_EXECUTOR_INTERNAL_H_

#include "runtime/batch_ring.h"
#include "runtime/executor.h"
#include "runtime/graph_cache.h"
#include "runtime/shadow.h"

struct sg_executor_t {
  sg_executor_options_t options;
  const sg_program_t* program;
  const sg_shapes_t* shapes;
  // The target of launches, and whether it is the device's own.
  const sg_target_t* target;
  bool runs_here;

  // Bound addresses, one a buffer, and how often they were bound.
  void** buffers;
  uint64_t binding_count;

  void* arena;
  sg_batch_ring_t ring;
  sg_shadow_t shadow;
  sg_graph_cache_t cache;
  // Captures and warm-ups run on a stream of our own.
  hipStream_t capture_stream;
  // Orders a step behind those on another stream.
  hipEvent_t order_event;
  hipStream_t last_stream;

  // Set once the device is lost, or a step broke off in the middle; OK until
  // then.
  sg_status_t fatal;
  sg_statistics_t statistics;
};

// Sets the executor's device for the length of a call.
typedef struct sg_device_scope_t {
  int previous;
  bool changed;
} sg_device_scope_t;

SG_MUST_USE sg_status_t sg_device_scope_enter(int device,
                                              sg_device_scope_t* out_scope);
void sg_device_scope_leave(const sg_device_scope_t* scope);

// A recording of |capacity| on the bound buffers.
sg_recording_t sg_executor_recording(const sg_executor_t* executor,
                                     sg_step_capacity_t capacity,
                                     hipStream_t stream,
                                     const sg_launch_trace_t* trace);

// Enqueues a whole step.
SG_MUST_USE sg_status_t sg_executor_record(const sg_executor_t* executor,
                                           const sg_recording_t* recording);

// The same outside a capture. |out_launch_count| is how many launches were
// enqueued, also where it fails: with none of them nothing has happened, with
// some the device has taken the step.
SG_MUST_USE sg_status_t sg_executor_record_eagerly(
    const sg_executor_t* executor, sg_step_capacity_t capacity,
    hipStream_t stream, uint64_t* out_launch_count);

// Keeps |status|, with the code SG_STATUS_DEVICE, as what later calls return.
sg_status_t sg_executor_lose_device(sg_executor_t* executor,
                                    sg_status_t status);

sg_graph_key_t sg_executor_key(const sg_executor_t* executor,
                               size_t shape_index);

// The entry of a shape, added where it is missing.
SG_MUST_USE sg_status_t sg_executor_entry(sg_executor_t* executor,
                                          size_t shape_index,
                                          sg_graph_entry_t** out_entry);

// Captures the graph of |entry|. A failure is kept as the entry's state and
// returned. May wait for the device.
SG_MUST_USE sg_status_t sg_executor_capture_entry(sg_executor_t* executor,
                                                  sg_graph_entry_t* entry);

// Makes what is enqueued on |stream| from now on run behind the steps that are
// in flight on another stream.
SG_MUST_USE sg_status_t sg_executor_order_stream(sg_executor_t* executor,
                                                 hipStream_t stream);

#endif  // STEPGRAPH_RUNTIME_EXECUTOR_INTERNAL_H_
