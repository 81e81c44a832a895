// SPDX-License-Identifier: Apache-2.0
//
// The executor: hands batches to the device, each as one replay of a graph
// recorded before, or eagerly where no graph fits.
//
//   sg_executor_create    over a program and a shapes file
//   sg_executor_bind      the buffers, once
//   sg_executor_capture   the graphs of the shapes
//   sg_executor_run       a step; any number of times
//
// Threads: one executor is used by one thread at a time. Different executors
// may be used by different threads; their captures are serialised. Under the
// background policy the executor has a thread of its own for captures, which
// this rule does not concern.
//
// Waiting: the run calls, the slot calls and sg_executor_poll_error never wait
// for the device, query it or allocate, except in a run call that captures
// under the lazy policy. create, bind, capture and destroy may wait.
//
// Streams: steps take effect in the order of their run calls. Where a step is
// run on another stream than the one before, it is ordered behind it by an
// event. Buffers must be ready for a step on its stream, and the results are
// ready for what follows on that stream. A stream must live until a later call
// has used another one or its work has ended.

#ifndef STEPGRAPH_RUNTIME_EXECUTOR_H_
#define STEPGRAPH_RUNTIME_EXECUTOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/batch.h"
#include "runtime/context.h"
#include "runtime/node_table.h"
#include "runtime/program.h"
#include "runtime/shape_choice.h"
#include "runtime/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_executor_t sg_executor_t;

typedef struct sg_executor_options_t {
  // Steps that may be in flight. A verified step counts as two.
  int32_t ring_depth;
  // Every how many steps one is verified (runtime/base/verify_layout.h); 0 for
  // none. Programs with foreign work or cuts cannot be verified.
  int32_t verify_every;
  // Run every step eagerly.
  bool always_eager;
} sg_executor_options_t;

// 64 steps in flight, no verifying.
void sg_executor_options_initialize(sg_executor_options_t* out_options);

// Memory that an executor and its graphs take on the device, and pinned.
typedef struct sg_memory_estimate_t {
  // Scratch that all graphs of the executor share.
  size_t arena_bytes;
  // Second outputs and small pools, for verifying.
  size_t shadow_bytes;
  // Bound buffers, whoever owns them.
  size_t buffer_bytes;
  // Ring and mailbox, pinned.
  size_t pinned_bytes;
  // Launches in the graphs of all shapes, and what their nodes take by
  // SG_GRAPH_NODE_BYTES each.
  size_t node_count;
  size_t graph_bytes;
} sg_memory_estimate_t;

// Device memory of one node of an executable graph, for estimates: what an
// H200 was seen to take (bench/results/h200), rounded up.
enum { SG_GRAPH_NODE_BYTES = 4096 };

// Touches no device memory. Nodes are not counted, and left 0, where a program
// has foreign work.
SG_MUST_USE sg_status_t sg_executor_estimate(
    sg_context_t* context, const sg_executor_options_t* options,
    const sg_program_t* program, const sg_shapes_t* shapes,
    sg_memory_estimate_t* out_estimate);

// |program| and |shapes| must outlive the executor, which keeps a reference to
// |context|; the shapes' limits must be those that the program was made for.
// Allocates the arena, the ring and, for verifying, the shadow buffers.
SG_MUST_USE sg_status_t sg_executor_create(sg_context_t* context,
                                           const sg_executor_options_t* options,
                                           const sg_program_t* program,
                                           const sg_shapes_t* shapes,
                                           sg_executor_t** out_executor);

// Waits for the capture thread and the work in flight. Accepts NULL.
void sg_executor_destroy(sg_executor_t* executor);

// --- Buffers ---

typedef struct sg_buffer_binding_t {
  // Device memory of the caller's, or NULL for memory that the executor
  // allocates, zeroes and owns.
  void* address;
  // Size of the caller's memory; not read where address is NULL.
  size_t bytes;
} sg_buffer_binding_t;

// Binds memory to the program's buffers, one binding a buffer in their order.
// The caller's memory stays its own and must live as long as the executor, or
// until it is bound anew. SG_STATUS_INVALID_ARGUMENT names the first buffer
// that is too small or not aligned to 16 bytes. Binding again waits for the
// work in flight and drops the captured graphs.
SG_MUST_USE sg_status_t sg_executor_bind(sg_executor_t* executor,
                                         const sg_buffer_binding_t* bindings,
                                         size_t binding_count);

// Binds one buffer anew, e.g. a weight, and leaves the others. Graphs remember
// addresses, so they are dropped; to change a weight without a new capture,
// write to its memory.
SG_MUST_USE sg_status_t sg_executor_rebind(sg_executor_t* executor,
                                           size_t buffer_index,
                                           sg_buffer_binding_t binding);

// Device address of a buffer, or NULL before it is bound.
void* sg_executor_buffer(const sg_executor_t* executor, size_t buffer_index);

// Copies slot from[i] to slot to[i] in every pool, for prefix hits; in order,
// on |stream|, behind the steps before. Slots are checked:
// SG_STATUS_OUT_OF_RANGE, nothing enqueued. No slot may be the null slot.
SG_MUST_USE sg_status_t sg_executor_copy_slots(sg_executor_t* executor,
                                               const int32_t* from,
                                               const int32_t* to, size_t count,
                                               hipStream_t stream);

// Sets slots to zero in every pool, for preemption; otherwise the same.
SG_MUST_USE sg_status_t sg_executor_zero_slots(sg_executor_t* executor,
                                               const int32_t* slots,
                                               size_t count,
                                               hipStream_t stream);

// --- Graphs ---

// Called after each shape was captured, or has failed to be; under the
// background policy from the capture thread.
typedef void (*sg_capture_progress_t)(void* self, size_t done_count,
                                      size_t shape_count,
                                      const sg_shape_t* shape,
                                      const sg_shape_statistics_t* statistics,
                                      sg_status_t status);

// Captures graphs as the shapes' policy says, largest first:
//   startup     all shapes that have none, before the call returns
//   lazy        nothing now; a shape on the second step that wants it
//   background  all shapes, by a thread that the call starts; steps run
//               eagerly until their graph is there
// A shape whose capture fails runs eagerly and does not stop the others.
// SG_STATUS_DEVICE when the device is lost, as in sg_executor_run. |progress|
// may be NULL.
SG_MUST_USE sg_status_t sg_executor_capture(sg_executor_t* executor,
                                            sg_capture_progress_t progress,
                                            void* progress_self);

// Waits for the capture thread to end; at once where there is none.
void sg_executor_wait_captured(sg_executor_t* executor);

// Changes the budget for the memory of graphs, 0 for none. While they take
// more, the least used graphs are dropped; their shapes then run eagerly with
// SG_EAGER_MEMORY_BUDGET. Raising it lets such shapes be captured again.
void sg_executor_set_memory_budget(sg_executor_t* executor,
                                   uint64_t budget_bytes);

// --- Steps ---

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
// one (runtime/batch.h); nothing was enqueued. SG_STATUS_FAILED_PRECONDITION:
// no buffers, a step that is not complete, or |stream| is capturing; nothing
// was enqueued. SG_STATUS_OUT_OF_MEMORY: the runtime had none for a launch;
// nothing was enqueued. SG_STATUS_DEVICE: the device is lost to this executor,
// with or without this step; later calls return the same.
// |out_report| may be NULL.
SG_MUST_USE sg_status_t sg_executor_run(sg_executor_t* executor,
                                        const sg_batch_t* batch,
                                        hipStream_t stream,
                                        sg_step_report_t* out_report);

// The same for a batch on the device. Its step is not verified.
// SG_STATUS_UNSUPPORTED where the host builds the chunk tables.
SG_MUST_USE sg_status_t sg_executor_run_device(sg_executor_t* executor,
                                               const sg_device_batch_t* batch,
                                               hipStream_t stream,
                                               sg_step_report_t* out_report);

// For a program with cuts, runs the first piece of a step only; exactly one of
// |batch| and |device_batch| is not NULL. Each of the other pieces is then run
// by sg_executor_run_piece, in order and on the same stream, with whatever the
// caller puts between. No other call but sg_executor_poll_error is legal before
// the last one.
SG_MUST_USE sg_status_t sg_executor_begin(sg_executor_t* executor,
                                          const sg_batch_t* batch,
                                          const sg_device_batch_t* device_batch,
                                          hipStream_t stream,
                                          sg_step_report_t* out_report);
SG_MUST_USE sg_status_t sg_executor_run_piece(sg_executor_t* executor,
                                              int32_t piece);

// Takes the first fault that the device found in a batch since the last time
// one was taken. Reads pinned memory, never waits.
bool sg_executor_poll_error(sg_executor_t* executor,
                            sg_step_error_record_t* out_error);

// The first difference that verifying found, if any. Reads pinned memory.
bool sg_executor_first_mismatch(const sg_executor_t* executor,
                                sg_mismatch_record_t* out_mismatch);

// --- Looking in ---

void sg_executor_statistics(const sg_executor_t* executor,
                            sg_statistics_t* out_statistics);

// |shape_index| is below the shapes' count.
void sg_executor_shape_statistics(const sg_executor_t* executor,
                                  size_t shape_index,
                                  sg_shape_statistics_t* out_statistics);

// The nodes of a piece of a shape's graph, or NULL while it has none. Valid
// until the executor is destroyed or bound anew, or the graph is dropped.
const sg_node_table_t* sg_executor_nodes(const sg_executor_t* executor,
                                         size_t shape_index, int32_t piece);

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
