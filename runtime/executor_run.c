// SPDX-License-Identifier: Apache-2.0
//
// One step: check, choose, write the ring, enqueue. Nothing here waits, queries
// or allocates, except a capture under the lazy policy.

#include <assert.h>

#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"
#include "runtime/hip/range.h"

// What a run call was given: one of the two.
typedef struct input_t {
  const sg_batch_t* batch;
  const sg_device_batch_t* device_batch;
} input_t;

static sg_step_capacity_t exact_capacity(const sg_batch_summary_t* batch) {
  return (sg_step_capacity_t){.phase = batch->phase,
                              .max_tokens = batch->token_count,
                              .max_sequences = batch->sequence_count};
}

sg_status_t sg_executor_check_runnable(const sg_executor_t* executor,
                                       hipStream_t stream, const char* call) {
  SG_RETURN_IF_ERROR(executor->fatal);
  const char* fault = NULL;
  if (executor->binding_count == 0) fault = "no buffers are bound";
  if (executor->open_step.is_open) {
    fault = "a step has pieces that were not run";
  }
  if (!sg_context_runs_here(executor->context)) {
    fault = "the executor records for another device than this one";
  }
  if (fault == NULL) {
    hipStreamCaptureStatus capture = hipStreamCaptureStatusNone;
    hipError_t error = hipStreamIsCapturing(stream, &capture);
    // The legacy stream, while a stream that it waits for is capturing.
    bool implicit = error == hipErrorStreamCaptureImplicit;
    if (!implicit) {
      SG_RETURN_IF_ERROR(sg_status_from_hip(error, "hipStreamIsCapturing"));
      if (capture == hipStreamCaptureStatusNone) return sg_status_ok();
    }
    (void)hipGetLastError();
    // The ring's place is the host's to count: it cannot be replayed.
    fault = "the stream is capturing";
  }
  return sg_status_make(SG_STATUS_FAILED_PRECONDITION, "%s: %s", call, fault);
}

// --- The graph of a step ---

// Why the entry of a fitting shape has no graph to launch.
static void explain_entry(const sg_executor_t* executor,
                          const sg_graph_entry_t* entry,
                          sg_shape_choice_t* choice) {
  choice->shape_index = -1;
  switch (entry->state) {
    case SG_GRAPH_ABSENT:
    case SG_GRAPH_READY:
      choice->reason = SG_EAGER_NOT_CAPTURED;
      break;
    case SG_GRAPH_CAPTURE_FAILED:
      choice->reason = SG_EAGER_CAPTURE_FAILED;
      break;
    case SG_GRAPH_LAUNCH_FAILED:
      choice->reason = SG_EAGER_LAUNCH_FAILED;
      break;
    case SG_GRAPH_OVER_BUDGET:
      choice->reason = SG_EAGER_MEMORY_BUDGET;
      choice->actual = (double)(sg_graph_cache_bytes(&executor->cache) +
                                (uint64_t)entry->statistics.graph_bytes);
      choice->limit = (double)executor->budget_bytes;
      break;
  }
}

// Captures a shape's graph under the lazy policy. The first use runs eagerly:
// many shapes are met only once.
static sg_status_t capture_lazily(sg_executor_t* executor,
                                  const sg_shape_choice_t* choice,
                                  bool* out_captured) {
  *out_captured = false;
  if (choice->shape_index < 0) return sg_status_ok();
  sg_graph_entry_t* entry =
      sg_executor_entry(executor, (size_t)choice->shape_index);
  bool wanted_before = entry->wanted_count > 0;
  ++entry->wanted_count;
  if (executor->shapes->policy.capture != SG_CAPTURE_LAZY || !wanted_before ||
      entry->state != SG_GRAPH_ABSENT) {
    return sg_status_ok();
  }
  sg_status_t status = sg_executor_capture_entry(executor, entry);
  *out_captured = sg_status_is_ok(status);
  return executor->fatal;
}

// The graph to launch, or NULL with the reason in |choice|.
static sg_graph_entry_t* find_graph(const sg_executor_t* executor,
                                    sg_shape_choice_t* choice) {
  if (choice->shape_index < 0) return NULL;
  sg_graph_entry_t* entry =
      sg_executor_entry(executor, (size_t)choice->shape_index);
  if (entry->state == SG_GRAPH_READY) return entry;
  explain_entry(executor, entry, choice);
  return NULL;
}

static sg_status_t choose(const sg_executor_t* executor,
                          const sg_batch_summary_t* batch,
                          sg_shape_choice_t* out_choice) {
  if (executor->options.always_eager) {
    *out_choice =
        (sg_shape_choice_t){.shape_index = -1, .reason = SG_EAGER_REQUESTED};
    return sg_status_ok();
  }
  sg_shape_choose(executor->shapes, batch, out_choice);
  if (out_choice->shape_index < 0 &&
      executor->shapes->policy.on_no_match == SG_NO_MATCH_ERROR) {
    return sg_status_make(
        SG_STATUS_NOT_FOUND,
        "run: no shape fits a %s batch of %d tokens in %d sequences (%s: %g, "
        "at most %g)",
        sg_phase_name(batch->phase), batch->token_count, batch->sequence_count,
        sg_eager_reason_name(out_choice->reason), out_choice->actual,
        out_choice->limit);
  }
  return sg_status_ok();
}

// --- Enqueueing ---

static sg_status_t run_piece_eagerly(sg_executor_t* executor,
                                     const sg_open_step_t* step,
                                     int32_t piece) {
  sg_recording_t recording = sg_executor_recording(
      executor, step->capacity, step->stream, SG_RECORD_EAGER);
  recording.piece = piece;
  uint64_t launch_count;
  sg_status_t status = sg_executor_enqueue(executor, sg_executor_record_piece,
                                           &recording, &launch_count);
  if (sg_status_is_ok(status) || (launch_count == 0 && piece == 0)) {
    return status;
  }
  // The first layers may have advanced their state: the step can neither be
  // completed nor taken back.
  return sg_executor_lose_device(
      executor,
      sg_status_annotate(status, "step %llu broke off after %llu launches",
                         (unsigned long long)executor->ring.next_step,
                         (unsigned long long)launch_count));
}

// Replays a piece; where the runtime refuses to, nothing of it has run, and the
// step goes on eagerly.
static sg_status_t run_piece(sg_executor_t* executor, sg_open_step_t* step,
                             int32_t piece) {
  if (step->entry != NULL) {
    hipError_t error =
        hipGraphLaunch(step->entry->pieces[piece].exec, step->stream);
    if (error == hipSuccess) return sg_status_ok();
    (void)hipGetLastError();
    sg_context_log(executor->context, SG_LOG_WARNING,
                   "hipGraphLaunch returned %s, the shape runs eagerly",
                   hipGetErrorName(error));
    step->entry->state = SG_GRAPH_LAUNCH_FAILED;
    step->entry = NULL;
  }
  return run_piece_eagerly(executor, step, piece);
}

static sg_status_t record_snapshot(const sg_executor_t* executor,
                                   const sg_recording_t* recording) {
  return executor->program->record_snapshot(executor->program->self, recording);
}

// Repeats the step on the shadow buffers and compares.
static sg_status_t record_shadow(const sg_executor_t* executor,
                                 const sg_recording_t* recording) {
  const sg_program_t* program = executor->program;
  sg_recording_t shadow = *recording;
  shadow.buffers = executor->shadow.merged;
  shadow.slot_count = executor->shadow.slot_count;
  SG_RETURN_IF_ERROR(program->record_piece(program->self, &shadow));
  SG_RETURN_IF_ERROR(program->record_compare(program->self, recording));
  return program->record_done(program->self, recording);
}

static sg_status_t run_verified(sg_executor_t* executor, sg_open_step_t* step,
                                const sg_batch_summary_t* batch) {
  sg_recording_t recording = sg_executor_recording(
      executor, exact_capacity(batch), step->stream, SG_RECORD_EAGER);
  uint64_t launch_count;
  SG_RETURN_IF_ERROR(sg_executor_enqueue(executor, record_snapshot, &recording,
                                         &launch_count));
  SG_RETURN_IF_ERROR(run_piece(executor, step, 0));
  sg_batch_ring_advance(&executor->ring, 1);
  sg_status_t status =
      sg_executor_enqueue(executor, record_shadow, &recording, &launch_count);
  if (!sg_status_is_ok(status)) {
    return sg_executor_lose_device(
        executor, sg_status_annotate(status, "verifying a step"));
  }
  sg_batch_ring_advance(&executor->ring, 1);
  return sg_status_ok();
}

static sg_status_t enqueue_first_piece(sg_executor_t* executor,
                                       sg_open_step_t* step,
                                       const sg_batch_summary_t* batch,
                                       bool verified) {
  SG_RETURN_IF_ERROR(sg_executor_order_stream(executor, step->stream));
  if (verified) return run_verified(executor, step, batch);
  SG_RETURN_IF_ERROR(run_piece(executor, step, 0));
  sg_batch_ring_advance(&executor->ring, 1);
  return sg_status_ok();
}

// --- One call ---

static bool is_verified(const sg_executor_t* executor, const input_t* input) {
  int32_t every = executor->options.verify_every;
  return every > 0 && input->batch != NULL &&
         executor->statistics.steps % (uint64_t)every == 0;
}

static sg_status_t write_entries(sg_executor_t* executor, const input_t* input,
                                 bool verified) {
  const sg_program_t* program = executor->program;
  if (input->device_batch != NULL) {
    return sg_batch_ring_write_device(&executor->ring, input->device_batch);
  }
  if (verified) {
    sg_batch_t renumbered =
        sg_shadow_batch(&executor->shadow, program, input->batch);
    SG_RETURN_IF_ERROR(sg_batch_ring_write(
        &executor->ring, program, &renumbered, input->batch->slots, 1));
  }
  return sg_batch_ring_write(&executor->ring, program, input->batch,
                             /*source_slots=*/NULL, 0);
}

static void count_step(sg_executor_t* executor, const sg_step_report_t* report,
                       sg_graph_entry_t* entry) {
  sg_statistics_t* statistics = &executor->statistics;
  ++statistics->steps;
  ++statistics->steps_by_phase[report->batch.phase];
  ++statistics->eager_by_reason[report->reason];
  statistics->real_tokens += (uint64_t)report->batch.token_count;
  statistics->sequences += (uint64_t)report->batch.sequence_count;
  if (report->verified) ++statistics->verified_steps;
  if (report->shape_index < 0) {
    ++statistics->eager_steps;
    return;
  }
  assert(entry != NULL);
  ++entry->statistics.hits;
  ++statistics->graph_steps;
  statistics->padded_tokens +=
      (uint64_t)(entry->key.max_tokens - report->batch.token_count);
}

static sg_status_t summarize(const sg_executor_t* executor,
                             const input_t* input,
                             sg_batch_summary_t* out_summary) {
  sg_shape_limits_t limits = executor->shapes->limits;
  if (input->batch != NULL) {
    return sg_batch_summarize(input->batch, limits, out_summary);
  }
  if (executor->program->ring_chunk_capacity > 0) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "run: the host builds the chunk tables, which it "
                          "cannot do for a device batch");
  }
  return sg_device_batch_summarize(input->device_batch, limits, out_summary);
}

// Writes the batch and enqueues the first piece. The lock is held.
static sg_status_t start_step(sg_executor_t* executor, const input_t* input,
                              sg_shape_choice_t* choice,
                              sg_step_report_t* report) {
  // The capture thread may have lost the device since the call began.
  SG_RETURN_IF_ERROR(executor->fatal);
  report->verified = is_verified(executor, input);
  sg_status_t room =
      sg_batch_ring_check_room(&executor->ring, report->verified ? 2 : 1);
  if (!sg_status_is_ok(room)) {
    ++executor->statistics.busy_calls;
    return room;
  }
  sg_open_step_t* step = &executor->open_step;
  step->entry = find_graph(executor, choice);
  SG_RETURN_IF_ERROR(write_entries(executor, input, report->verified));
  report->step = executor->ring.next_step;
  sg_graph_entry_t* wanted = step->entry;
  SG_RETURN_IF_ERROR(
      enqueue_first_piece(executor, step, &report->batch, report->verified));
  if (step->entry != wanted) explain_entry(executor, wanted, choice);
  report->shape_index = choice->shape_index;
  report->reason = choice->reason;
  report->reason_actual = choice->actual;
  report->reason_limit = choice->limit;
  count_step(executor, report, step->entry);
  step->next_piece = 1;
  step->is_open = executor->program->piece_count > 1;
  return sg_status_ok();
}

static sg_status_t begin_on_device(sg_executor_t* executor,
                                   const input_t* input, hipStream_t stream,
                                   sg_step_report_t* report) {
  pthread_mutex_lock(&executor->lock);
  sg_status_t status = sg_executor_check_runnable(executor, stream, "run");
  pthread_mutex_unlock(&executor->lock);
  SG_RETURN_IF_ERROR(status);
  SG_RETURN_IF_ERROR(summarize(executor, input, &report->batch));
  sg_shape_choice_t choice;
  SG_RETURN_IF_ERROR(choose(executor, &report->batch, &choice));
  SG_RETURN_IF_ERROR(capture_lazily(executor, &choice, &report->captured));
  executor->open_step = (sg_open_step_t){
      .stream = stream, .capacity = exact_capacity(&report->batch)};
  pthread_mutex_lock(&executor->lock);
  status = start_step(executor, input, &choice, report);
  pthread_mutex_unlock(&executor->lock);
  return status;
}

// Whatever was queued on a device with a fault may never run, and a later step
// must not run without it.
static sg_status_t end_call(sg_executor_t* executor, sg_status_t status) {
  if (status.code != SG_STATUS_DEVICE) return status;
  pthread_mutex_lock(&executor->lock);
  status = sg_executor_lose_device(executor, status);
  pthread_mutex_unlock(&executor->lock);
  return status;
}

static sg_status_t begin(sg_executor_t* executor, const input_t* input,
                         hipStream_t stream, sg_step_report_t* out_report) {
  sg_step_report_t report = {.shape_index = -1};
  if (out_report != NULL) *out_report = report;
  sg_device_scope_t scope;
  sg_status_t status = sg_device_scope_enter(executor->device, &scope);
  if (!sg_status_is_ok(status)) return end_call(executor, status);
  // Looked up before this step can add its own, taken once the step is on its
  // way: a refused call must not swallow an error.
  bool has_error = sg_batch_ring_has_error(&executor->ring);
  sg_range_push("stepgraph step");
  status = begin_on_device(executor, input, stream, &report);
  sg_range_pop();
  sg_device_scope_leave(&scope);
  status = end_call(executor, status);
  if (!sg_status_is_ok(status) || out_report == NULL) return status;
  if (has_error) {
    report.has_error = sg_batch_ring_take_error(&executor->ring, &report.error);
  }
  *out_report = report;
  return status;
}

static sg_status_t check_piece(const sg_executor_t* executor, int32_t piece) {
  SG_RETURN_IF_ERROR(executor->fatal);
  const sg_open_step_t* step = &executor->open_step;
  if (step->is_open && step->next_piece == piece) return sg_status_ok();
  return sg_status_make(
      SG_STATUS_FAILED_PRECONDITION, "run piece %d: expected %s%d", piece,
      step->is_open ? "piece " : "a step to begin with piece ",
      step->is_open ? step->next_piece : 0);
}

// The lock is held.
static sg_status_t run_next_piece(sg_executor_t* executor, int32_t piece) {
  SG_RETURN_IF_ERROR(check_piece(executor, piece));
  sg_open_step_t* step = &executor->open_step;
  sg_range_push("stepgraph piece");
  sg_status_t status = run_piece(executor, step, piece);
  sg_range_pop();
  if (sg_status_is_ok(status)) ++step->next_piece;
  step->is_open = step->next_piece < executor->program->piece_count;
  return status;
}

sg_status_t sg_executor_run_piece(sg_executor_t* executor, int32_t piece) {
  sg_device_scope_t scope;
  sg_status_t status = sg_device_scope_enter(executor->device, &scope);
  if (sg_status_is_ok(status)) {
    pthread_mutex_lock(&executor->lock);
    status = run_next_piece(executor, piece);
    pthread_mutex_unlock(&executor->lock);
    sg_device_scope_leave(&scope);
  }
  return end_call(executor, status);
}

static sg_status_t run_whole(sg_executor_t* executor, const input_t* input,
                             hipStream_t stream, sg_step_report_t* out_report) {
  SG_RETURN_IF_ERROR(begin(executor, input, stream, out_report));
  for (int32_t piece = 1; piece < executor->program->piece_count; ++piece) {
    SG_RETURN_IF_ERROR(sg_executor_run_piece(executor, piece));
  }
  return sg_status_ok();
}

sg_status_t sg_executor_run(sg_executor_t* executor, const sg_batch_t* batch,
                            hipStream_t stream, sg_step_report_t* out_report) {
  return run_whole(executor, &(input_t){.batch = batch}, stream, out_report);
}

sg_status_t sg_executor_run_device(sg_executor_t* executor,
                                   const sg_device_batch_t* batch,
                                   hipStream_t stream,
                                   sg_step_report_t* out_report) {
  return run_whole(executor, &(input_t){.device_batch = batch}, stream,
                   out_report);
}

sg_status_t sg_executor_begin(sg_executor_t* executor, const sg_batch_t* batch,
                              const sg_device_batch_t* device_batch,
                              hipStream_t stream,
                              sg_step_report_t* out_report) {
  if ((batch == NULL) == (device_batch == NULL)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "begin: expected a batch or a device batch, found %s",
                          batch == NULL ? "neither" : "both");
  }
  return begin(executor, &(input_t){batch, device_batch}, stream, out_report);
}
