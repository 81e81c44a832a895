// SPDX-License-Identifier: Apache-2.0
//
// One step: check, choose, write the ring, enqueue. Nothing here waits, queries
// or allocates, except a capture under the lazy policy.

#include <assert.h>

#include "runtime/executor_internal.h"
#include "runtime/hip/error.h"

static sg_step_capacity_t exact_capacity(const sg_batch_summary_t* batch) {
  return (sg_step_capacity_t){.phase = batch->phase,
                              .max_tokens = batch->token_count,
                              .max_sequences = batch->sequence_count};
}

static sg_status_t run_eagerly(sg_executor_t* executor,
                               const sg_batch_summary_t* batch,
                               hipStream_t stream) {
  uint64_t launch_count;
  sg_status_t status = sg_executor_record_eagerly(
      executor, exact_capacity(batch), stream, &launch_count);
  if (sg_status_is_ok(status) || launch_count == 0) return status;
  // The first layers may have advanced their state: the step can neither be
  // completed nor taken back.
  return sg_executor_lose_device(
      executor,
      sg_status_annotate(status, "step %llu broke off after %llu launches",
                         (unsigned long long)executor->ring.next_step,
                         (unsigned long long)launch_count));
}

// Repeats the step that was just enqueued on the shadow buffers and compares.
static sg_status_t run_shadow(sg_executor_t* executor,
                              const sg_batch_summary_t* batch,
                              hipStream_t stream) {
  const sg_program_t* program = executor->program;
  sg_recording_t recording = sg_executor_recording(
      executor, exact_capacity(batch), stream, /*trace=*/NULL);
  sg_recording_t shadow = recording;
  shadow.buffers = executor->shadow.merged;
  shadow.slot_count = executor->shadow.slot_count;
  SG_RETURN_IF_ERROR(program->record_step(program->self, &shadow));
  SG_RETURN_IF_ERROR(program->record_compare(program->self, &recording));
  return program->record_done(program->self, &recording);
}

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
      choice->limit = (double)executor->shapes->policy.memory_budget_bytes;
      break;
  }
}

// The graph to launch, or NULL with the reason in |choice|.
static sg_status_t find_graph(sg_executor_t* executor,
                              sg_shape_choice_t* choice, bool* out_captured,
                              sg_graph_entry_t** out_entry) {
  *out_captured = false;
  *out_entry = NULL;
  if (choice->shape_index < 0) return sg_status_ok();
  sg_graph_entry_t* entry;
  SG_RETURN_IF_ERROR(
      sg_executor_entry(executor, (size_t)choice->shape_index, &entry));
  ++entry->wanted_count;
  // The first use runs eagerly: many shapes are met only once.
  if (entry->state == SG_GRAPH_ABSENT && entry->wanted_count > 1 &&
      executor->shapes->policy.capture == SG_CAPTURE_LAZY) {
    sg_status_t status = sg_executor_capture_entry(executor, entry);
    *out_captured = sg_status_is_ok(status);
    SG_RETURN_IF_ERROR(executor->fatal);
  }
  if (entry->state == SG_GRAPH_READY) {
    *out_entry = entry;
  } else {
    explain_entry(executor, entry, choice);
  }
  return sg_status_ok();
}

// Replays the graph; where the runtime refuses to, nothing has run, and the
// step runs eagerly.
static sg_status_t run_live(sg_executor_t* executor,
                            const sg_batch_summary_t* batch, hipStream_t stream,
                            sg_graph_entry_t* entry,
                            sg_shape_choice_t* choice) {
  if (entry != NULL) {
    hipError_t error = hipGraphLaunch(entry->graph.exec, stream);
    if (error == hipSuccess) {
      ++entry->statistics.hits;
      return sg_status_ok();
    }
    (void)hipGetLastError();
    entry->state = SG_GRAPH_LAUNCH_FAILED;
    explain_entry(executor, entry, choice);
  }
  return run_eagerly(executor, batch, stream);
}

static bool is_verified(const sg_executor_t* executor) {
  int32_t every = executor->options.verify_every;
  return every > 0 && executor->statistics.steps % (uint64_t)every == 0;
}

static sg_status_t write_entries(sg_executor_t* executor,
                                 const sg_batch_t* batch, bool verified) {
  const sg_program_t* program = executor->program;
  if (verified) {
    sg_batch_t renumbered = sg_shadow_batch(&executor->shadow, program, batch);
    SG_RETURN_IF_ERROR(sg_batch_ring_write(&executor->ring, program,
                                           &renumbered, batch->slots, 1));
  }
  return sg_batch_ring_write(&executor->ring, program, batch,
                             /*source_slots=*/NULL, 0);
}

static sg_status_t enqueue_step(sg_executor_t* executor,
                                const sg_batch_summary_t* batch,
                                hipStream_t stream, bool verified,
                                sg_shape_choice_t* choice,
                                sg_graph_entry_t* entry) {
  const sg_program_t* program = executor->program;
  SG_RETURN_IF_ERROR(sg_executor_order_stream(executor, stream));
  if (verified) {
    sg_recording_t recording = sg_executor_recording(
        executor, exact_capacity(batch), stream, /*trace=*/NULL);
    SG_RETURN_IF_ERROR(program->record_snapshot(program->self, &recording));
  }
  SG_RETURN_IF_ERROR(run_live(executor, batch, stream, entry, choice));
  sg_batch_ring_advance(&executor->ring, 1);
  executor->last_stream = stream;
  if (!verified) return sg_status_ok();
  sg_status_t status = run_shadow(executor, batch, stream);
  if (!sg_status_is_ok(status)) {
    return sg_executor_lose_device(
        executor, sg_status_annotate(status, "verifying a step"));
  }
  sg_batch_ring_advance(&executor->ring, 1);
  return sg_status_ok();
}

static void count_step(sg_executor_t* executor, const sg_step_report_t* report,
                       const sg_graph_entry_t* entry) {
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
  ++statistics->graph_steps;
  statistics->padded_tokens +=
      (uint64_t)(entry->key.max_tokens - report->batch.token_count);
}

static sg_status_t check_runnable(const sg_executor_t* executor) {
  SG_RETURN_IF_ERROR(executor->fatal);
  if (executor->binding_count == 0) {
    return sg_status_make(SG_STATUS_FAILED_PRECONDITION,
                          "run: no buffers are bound");
  }
  if (!executor->runs_here) {
    return sg_status_make(SG_STATUS_FAILED_PRECONDITION,
                          "run: the executor records for %s, which is not "
                          "this device",
                          executor->target->name);
  }
  return sg_status_ok();
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

static sg_status_t run_on_device(sg_executor_t* executor,
                                 const sg_batch_t* batch, hipStream_t stream,
                                 sg_step_report_t* report) {
  SG_RETURN_IF_ERROR(check_runnable(executor));
  SG_RETURN_IF_ERROR(
      sg_batch_summarize(batch, executor->shapes->limits, &report->batch));
  sg_shape_choice_t choice;
  SG_RETURN_IF_ERROR(choose(executor, &report->batch, &choice));
  report->verified = is_verified(executor);
  sg_status_t room =
      sg_batch_ring_check_room(&executor->ring, report->verified ? 2 : 1);
  if (!sg_status_is_ok(room)) {
    ++executor->statistics.busy_calls;
    return room;
  }
  sg_graph_entry_t* entry;
  SG_RETURN_IF_ERROR(find_graph(executor, &choice, &report->captured, &entry));
  SG_RETURN_IF_ERROR(write_entries(executor, batch, report->verified));
  report->step = executor->ring.next_step;
  SG_RETURN_IF_ERROR(enqueue_step(executor, &report->batch, stream,
                                  report->verified, &choice, entry));
  report->shape_index = choice.shape_index;
  report->reason = choice.reason;
  report->reason_actual = choice.actual;
  report->reason_limit = choice.limit;
  count_step(executor, report, entry);
  return sg_status_ok();
}

sg_status_t sg_executor_run(sg_executor_t* executor, const sg_batch_t* batch,
                            hipStream_t stream, sg_step_report_t* out_report) {
  sg_step_report_t report = {.shape_index = -1};
  if (out_report != NULL) *out_report = report;
  sg_device_scope_t scope;
  sg_status_t entered = sg_device_scope_enter(executor->options.device, &scope);
  if (!sg_status_is_ok(entered)) {
    return sg_executor_lose_device(executor, entered);
  }
  // Looked up before this step can add its own, taken once the step is on its
  // way: a refused call must not swallow an error.
  bool has_error = sg_batch_ring_has_error(&executor->ring);
  sg_status_t status = run_on_device(executor, batch, stream, &report);
  sg_device_scope_leave(&scope);
  // Whatever was queued on a device with a fault may never run, and a later
  // step must not run without it.
  if (status.code == SG_STATUS_DEVICE) {
    return sg_executor_lose_device(executor, status);
  }
  if (!sg_status_is_ok(status) || out_report == NULL) return status;
  if (has_error) {
    report.has_error = sg_batch_ring_take_error(&executor->ring, &report.error);
  }
  *out_report = report;
  return status;
}
