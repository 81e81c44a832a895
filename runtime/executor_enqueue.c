// SPDX-License-Identifier: Apache-2.0
//
// Recordings of the executor's program, and how they are enqueued.

#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"

enum { ENQUEUE_ATTEMPTS = 3 };

sg_recording_t sg_executor_recording(const sg_executor_t* executor,
                                     sg_step_capacity_t capacity,
                                     hipStream_t stream,
                                     sg_record_mode_t mode) {
  return (sg_recording_t){
      .stream = stream,
      .target = sg_context_target(executor->context),
      .mode = mode,
      .capacity = capacity,
      .buffers = executor->buffers,
      .arena = executor->arena,
      .ring = executor->ring.entries_device,
      .ring_layout = &executor->ring.layout,
      .ring_depth = executor->ring.depth,
      .cursor = executor->ring.cursor_device,
      .mailbox = executor->ring.mailbox_device,
      .slot_count = executor->program->slot_count,
      .shadow_buffers = executor->shadow.buffers,
      .shadow_slot_count = executor->shadow.slot_count,
      .mismatches = executor->shadow.mismatches_device,
  };
}

sg_status_t sg_executor_record_piece(const sg_executor_t* executor,
                                     const sg_recording_t* recording) {
  const sg_program_t* program = executor->program;
  SG_RETURN_IF_ERROR(program->record_piece(program->self, recording));
  if (recording->piece + 1 < program->piece_count) return sg_status_ok();
  return program->record_done(program->self, recording);
}

// Which launch of a recording is at hand, and how many are enqueued already.
typedef struct launch_progress_t {
  uint64_t seen;
  uint64_t enqueued;
} launch_progress_t;

static bool wants_launch(void* self, const sg_launch_t* launch) {
  (void)launch;
  launch_progress_t* progress = self;
  return ++progress->seen > progress->enqueued;
}

static sg_status_t count_launch(void* self, const sg_launch_t* launch) {
  (void)launch;
  ++((launch_progress_t*)self)->enqueued;
  return sg_status_ok();
}

sg_status_t sg_executor_enqueue(const sg_executor_t* executor,
                                sg_enqueue_function_t function,
                                const sg_recording_t* recording,
                                uint64_t* out_launch_count) {
  launch_progress_t progress = {0};
  sg_launch_trace_t trace = {
      .self = &progress, .wants = wants_launch, .add = count_launch};
  sg_recording_t traced = *recording;
  traced.trace = &trace;
  // Foreign launches cannot be passed over, so such a recording has one go.
  int attempts = executor->program->has_foreign_work ? 1 : ENQUEUE_ATTEMPTS;
  sg_status_t status = sg_status_ok();
  for (int attempt = 0; attempt < attempts; ++attempt) {
    progress.seen = 0;
    status = function(executor, &traced);
    if (sg_status_is_ok(status) || progress.enqueued == 0) break;
  }
  *out_launch_count = progress.enqueued;
  return status;
}

sg_status_t sg_executor_order_stream(sg_executor_t* executor,
                                     hipStream_t stream) {
  // With nothing in flight there is nothing to be behind, and the other stream
  // may be gone.
  bool idle =
      !executor->has_slot_work && sg_batch_ring_in_flight(&executor->ring) == 0;
  if (executor->has_last_stream && executor->last_stream != stream && !idle) {
    SG_RETURN_IF_HIP_ERROR(hipEventRecord, executor->order_event,
                           executor->last_stream);
    SG_RETURN_IF_HIP_ERROR(hipStreamWaitEvent, stream, executor->order_event,
                           0);
  }
  if (executor->last_stream != stream) executor->has_slot_work = false;
  executor->last_stream = stream;
  executor->has_last_stream = true;
  return sg_status_ok();
}
