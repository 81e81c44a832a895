// SPDX-License-Identifier: Apache-2.0
//
// The executor: hands batches to the device, each as one replay of a graph
// recorded before, or eagerly where no graph fits.
//
//   sg_executor_create    over a program and a shapes file
//   sg_executor_bind      the buffers, once
//   sg_executor_capture   the graphs of the shapes (startup policy)
//   sg_executor_run       a step; any number of times
//
// Threads: one executor is used by one thread at a time. Different executors
// may be used by different threads; their captures are serialised.
//
// Waiting: sg_executor_run and sg_executor_poll_error never wait for the
// device, query it or allocate, except in a run call that captures under the
// lazy policy. create, bind, capture and destroy may wait.
//
// Streams: steps take effect in the order of their run calls. Where a step is
// run on another stream than the one before, it is ordered behind it by an
// event. Buffers must be ready for a step on its stream, and the results are
// ready for what follows on that stream.

#ifndef STEPGRAPH_RUNTIME_EXECUTOR_H_
#define STEPGRAPH_RUNTIME_EXECUTOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/allocator.h"
#include "runtime/batch.h"
#include "runtime/node_table.h"
#include "runtime/program.h"
#include "runtime/shape_choice.h"
#include "runtime/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_executor_t sg_executor_t;

typedef struct sg_executor_options_t {
  sg_allocator_t allocator;
  // HIP device; it is set at the entry of each call and restored at its end.
  int device;
  // What launches are configured for; NULL for the device's own. Another one
  // makes an executor that records graphs to look at and runs nothing.
  const sg_target_t* target;
  // Steps that may be in flight. A verified step counts as two.
  int32_t ring_depth;
  // Every how many steps one is verified (runtime/base/verify_layout.h); 0 for
  // none.
  int32_t verify_every;
  // Run every step eagerly.
  bool always_eager;
} sg_executor_options_t;

// The system allocator, device 0, 64 steps in flight, no verifying.
void sg_executor_options_initialize(sg_executor_options_t* out_options);

// |program| and |shapes| must outlive the executor; the shapes' limits must be
// those that the program was made for. Allocates the arena, the ring and, for
// verifying, the shadow buffers.
SG_MUST_USE sg_status_t sg_executor_create(const sg_executor_options_t* options,
                                           const sg_program_t* program,
                                           const sg_shapes_t* shapes,
                                           sg_executor_t** out_executor);

// Waits for the steps in flight. Accepts NULL.
void sg_executor_destroy(sg_executor_t* executor);

typedef struct sg_buffer_binding_t {
  void* address;
  size_t bytes;
} sg_buffer_binding_t;

// Binds device memory to the program's buffers, one binding a buffer in their
// order. The memory stays the caller's and must live as long as the executor,
// or until it is bound anew. SG_STATUS_INVALID_ARGUMENT names the first buffer
// that is missing, too small or not aligned to 16 bytes. Binding again waits
// for the steps in flight and drops the captured graphs.
SG_MUST_USE sg_status_t sg_executor_bind(sg_executor_t* executor,
                                         const sg_buffer_binding_t* bindings,
                                         size_t binding_count);

// Called after each shape was captured, or has failed to be.
typedef void (*sg_capture_progress_t)(void* self, size_t done_count,
                                      size_t shape_count,
                                      const sg_shape_t* shape,
                                      const sg_shape_statistics_t* statistics,
                                      sg_status_t status);

// Captures the graphs of all shapes that have none, largest first. A shape
// whose capture fails runs eagerly and does not stop the others.
// SG_STATUS_DEVICE when the device is lost, as in sg_executor_run. |progress|
// may be NULL.
SG_MUST_USE sg_status_t sg_executor_capture(sg_executor_t* executor,
                                            sg_capture_progress_t progress,
                                            void* progress_self);

// What became of a step.
typedef struct sg_step_report_t {
  // Number of the step, as error records name it.
  uint64_t step;
  sg_batch_summary_t batch;
  // The shape whose graph ran, or -1 for an eager step with its reason.
  int32_t shape_index;
  sg_eager_reason_t reason;
  double reason_actual;
  double reason_limit;
  // A graph was captured in this call (lazy policy).
  bool captured;
  bool verified;
  // The oldest error of an earlier step that was not reported yet.
  bool has_error;
  sg_step_error_record_t error;
} sg_step_report_t;

// Enqueues one step on |stream| and returns; the batch's arrays are free then.
// SG_STATUS_BUSY: the ring is full, nothing was enqueued, call again later.
// SG_STATUS_NOT_FOUND: no shape fits and the policy says error; nothing was
// enqueued. SG_STATUS_OUT_OF_RANGE and SG_STATUS_INVALID_DATA: the batch is not
// one (runtime/batch.h); nothing was enqueued. SG_STATUS_OUT_OF_MEMORY: the
// runtime had none for a launch; nothing was enqueued. SG_STATUS_DEVICE: the
// device is lost to this executor, with or without this step; later calls
// return the same.
// |out_report| may be NULL.
SG_MUST_USE sg_status_t sg_executor_run(sg_executor_t* executor,
                                        const sg_batch_t* batch,
                                        hipStream_t stream,
                                        sg_step_report_t* out_report);

// Takes the first fault that the device found in a batch since the last time
// one was taken. Reads pinned memory, never waits.
bool sg_executor_poll_error(sg_executor_t* executor,
                            sg_step_error_record_t* out_error);

// The first difference that verifying found, if any. Reads pinned memory.
bool sg_executor_first_mismatch(const sg_executor_t* executor,
                                sg_mismatch_record_t* out_mismatch);

void sg_executor_statistics(const sg_executor_t* executor,
                            sg_statistics_t* out_statistics);

// |shape_index| is below the shapes' count.
void sg_executor_shape_statistics(const sg_executor_t* executor,
                                  size_t shape_index,
                                  sg_shape_statistics_t* out_statistics);

// The nodes of a shape's graph, or NULL while it has none. Valid until the
// executor is destroyed or bound anew.
const sg_node_table_t* sg_executor_nodes(const sg_executor_t* executor,
                                         size_t shape_index);

// Memory that pointers in node params may lie in.
typedef struct sg_memory_region_t {
  const char* name;
  uintptr_t base;
  size_t bytes;
} sg_memory_region_t;

// Bound buffers, parts of the arena, ring, cursor and mailbox; |out_regions|
// has room for |capacity|, and |out_count| is how many there are.
void sg_executor_regions(const sg_executor_t* executor, size_t capacity,
                         sg_memory_region_t* out_regions, size_t* out_count);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_EXECUTOR_H_
