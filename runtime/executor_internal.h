// SPDX-License-Identifier: Apache-2.0
//
// The executor's insides, shared by executor.c (create, destroy, looking in),
// executor_buffers.c (bindings and slots), executor_enqueue.c (recordings and
// how they are enqueued), executor_capture.c (graphs) and executor_run.c
// (steps).

#ifndef STEPGRAPH_RUNTIME_EXECUTOR_INTERNAL_H_
#define STEPGRAPH_RUNTIME_EXECUTOR_INTERNAL_H_

#include <pthread.h>

#include "runtime/batch_ring.h"
#include "runtime/executor.h"
#include "runtime/graph_cache.h"
#include "runtime/shadow.h"

// A step of which not all pieces have been run.
typedef struct sg_open_step_t {
  bool is_open;
  int32_t next_piece;
  hipStream_t stream;
  // NULL once the step goes on eagerly.
  sg_graph_entry_t* entry;
  sg_step_capacity_t capacity;
} sg_open_step_t;

// The thread of the background policy.
typedef struct sg_capture_thread_t {
  bool is_started;
  pthread_t thread;
  // Set by the owner, read by the thread between two shapes.
  bool stop;
  sg_capture_progress_t progress;
  void* progress_self;
} sg_capture_thread_t;

struct sg_executor_t {
  sg_context_t* context;
  sg_allocator_t allocator;
  int device;
  sg_executor_options_t options;
  const sg_program_t* program;
  const sg_shapes_t* shapes;

  // Bound addresses, one a buffer; those in |owned| are the executor's.
  void** buffers;
  bool* owned;
  // How often buffers were bound.
  uint64_t binding_count;

  void* arena;
  sg_shadow_t shadow;
  // Captures and warm-ups run on a stream of our own.
  hipStream_t capture_stream;
  // Orders work behind that on another stream.
  hipEvent_t order_event;

  // The capture thread and the caller's thread meet in what follows: the ring,
  // the order of streams, the graphs. Held while a step is enqueued and while
  // a graph is put in its place, not during a capture.
  pthread_mutex_t lock;
  sg_batch_ring_t ring;
  sg_graph_cache_t cache;
  uint64_t budget_bytes;
  // Where work was enqueued last, if anywhere, and whether that may be anything
  // besides steps, whose end the ring tells.
  hipStream_t last_stream;
  bool has_last_stream;
  bool has_slot_work;
  // Set once the device is lost, or a step broke off in the middle; OK until
  // then.
  sg_status_t fatal;
  sg_statistics_t statistics;

  sg_open_step_t open_step;
  sg_capture_thread_t capture_thread;
};

// Makes |status| the answer of every later call, with code SG_STATUS_DEVICE.
SG_MUST_USE sg_status_t sg_executor_lose_device(sg_executor_t* executor,
                                                sg_status_t status);

// SG_STATUS_FAILED_PRECONDITION where steps or slot work cannot be enqueued.
// The lock is held.
SG_MUST_USE sg_status_t sg_executor_check_runnable(
    const sg_executor_t* executor, hipStream_t stream, const char* call);

// A recording of piece 0 of |capacity| on the bound buffers.
sg_recording_t sg_executor_recording(const sg_executor_t* executor,
                                     sg_step_capacity_t capacity,
                                     hipStream_t stream, sg_record_mode_t mode);

// Enqueues a piece, and the step's end behind the last one.
SG_MUST_USE sg_status_t sg_executor_record_piece(
    const sg_executor_t* executor, const sg_recording_t* recording);

// Something that enqueues launches.
typedef sg_status_t (*sg_enqueue_function_t)(const sg_executor_t* executor,
                                             const sg_recording_t* recording);

// Calls |function|. Where a launch of ours fails after others were enqueued, it
// is called again up to twice and passes over those, so that a passing fault
// does not break a step in two. |out_launch_count| is how many launches are
// enqueued in the end.
SG_MUST_USE sg_status_t sg_executor_enqueue(const sg_executor_t* executor,
                                            sg_enqueue_function_t function,
                                            const sg_recording_t* recording,
                                            uint64_t* out_launch_count);

// Makes what is enqueued on |stream| from now on run behind the work that is in
// flight on another stream. The lock is held.
SG_MUST_USE sg_status_t sg_executor_order_stream(sg_executor_t* executor,
                                                 hipStream_t stream);

// The entry of a shape; there is one for each from the first binding on.
sg_graph_entry_t* sg_executor_entry(const sg_executor_t* executor,
                                    size_t shape_index);

// Forgets all graphs and makes absent entries for all shapes.
SG_MUST_USE sg_status_t sg_executor_reset_entries(sg_executor_t* executor);

// Captures the graphs of |entry|. A failure is kept as the entry's state and
// returned. May wait for the device. The lock is not held.
SG_MUST_USE sg_status_t sg_executor_capture_entry(sg_executor_t* executor,
                                                  sg_graph_entry_t* entry);

// Ends the capture thread after the shape that it is at.
void sg_executor_stop_captures(sg_executor_t* executor);

#endif  // STEPGRAPH_RUNTIME_EXECUTOR_INTERNAL_H_
