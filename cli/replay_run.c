// SPDX-License-Identifier: Apache-2.0

#include <inttypes.h>
#include <string.h>

#include "cli/fill.h"
#include "cli/replay.h"
#include "runtime/hip/error.h"

typedef struct replay_t {
  const sg_session_t* session;
  sg_source_t* source;
  uint64_t seed;
  sg_terminal_t* terminal;
  sg_report_t* report;
  uint64_t step;
  int64_t tokens_done;
  // Slots that hold the state of a sequence that ran here.
  bool* slots_used;
} replay_t;

// --- Capture ---

static void show_capture(void* self, size_t done_count, size_t shape_count,
                         const sg_shape_t* shape,
                         const sg_shape_statistics_t* statistics,
                         sg_status_t status) {
  sg_terminal_t* terminal = self;
  char detail[160];
  if (sg_status_is_ok(status)) {
    snprintf(detail, sizeof(detail), "%s: %zu nodes, %.1f ms, %.1f KiB",
             shape->name, statistics->node_count,
             (double)statistics->capture_ns / 1e6,
             (double)statistics->graph_bytes / 1024);
  } else {
    snprintf(detail, sizeof(detail), "%s: no graph", shape->name);
    sg_terminal_line(terminal, "capture of %s failed: %s", shape->name,
                     status.message);
  }
  sg_terminal_progress(terminal, "capture", (int64_t)done_count,
                       (int64_t)shape_count, detail);
}

sg_status_t sg_replay_capture(const sg_session_t* session,
                              sg_terminal_t* terminal, sg_report_t* report) {
  if (report->eager) {
    return sg_status_ok();
  }
  const int64_t start_ns = sg_clock_ns();
  sg_status_t status =
      sg_executor_capture(session->executor, show_capture, terminal);
  sg_terminal_clear(terminal);
  report->capture_ns = sg_clock_ns() - start_ns;
  return status;
}

// --- Steps ---

// A batch of a file may go on with sequences whose start is not in it. Their
// state is random then, rather than whatever the memory holds.
static sg_status_t prepare_slots(replay_t* r, const sg_batch_t* batch) {
  for (int32_t i = 0; i < batch->sequence_count; ++i) {
    const int32_t slot = batch->slots[i];
    if (batch->query_lens[i] == 0 || slot < 0 ||
        slot >= r->session->slot_count || r->slots_used[slot]) {
      continue;
    }
    r->slots_used[slot] = true;
    if (batch->computed_lens[i] == 0) continue;
    SG_RETURN_IF_ERROR(sg_fill_slot(r->session, r->seed, slot));
  }
  return sg_status_ok();
}

// Hands the batch to the executor. A full ring empties as the device goes on.
static sg_status_t run_batch(replay_t* r, const sg_batch_t* batch,
                             sg_step_report_t* out_report) {
  const sg_session_t* session = r->session;
  sg_status_t status =
      sg_executor_run(session->executor, batch, session->stream, out_report);
  if (status.code != SG_STATUS_BUSY) return status;
  SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, session->stream);
  return sg_executor_run(session->executor, batch, session->stream, out_report);
}

static void keep_error(sg_report_t* report,
                       const sg_step_error_record_t* error) {
  if (report->has_error) return;
  report->has_error = true;
  report->first_error = *error;
}

static sg_status_t run_step(replay_t* r, const sg_batch_t* batch) {
  const sg_session_t* session = r->session;
  ++r->step;
  SG_RETURN_IF_ERROR(prepare_slots(r, batch));
  SG_RETURN_IF_ERROR(sg_fill_inputs(session, r->seed, r->step,
                                    (int32_t)r->source->batch_tokens));
  SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, session->stream);
  const int64_t start_ns = sg_clock_ns();
  sg_step_report_t step;
  SG_RETURN_IF_ERROR(run_batch(r, batch, &step));
  SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, session->stream);
  const int64_t duration_ns = sg_clock_ns() - start_ns;
  if (step.has_error) keep_error(r->report, &step.error);
  sg_step_error_record_t error;
  if (sg_executor_poll_error(session->executor, &error)) {
    keep_error(r->report, &error);
  }
  return sg_report_add_step(r->report, &step, duration_ns);
}

static void show_step(replay_t* r) {
  r->tokens_done += r->source->batch_tokens;
  char detail[128];
  int used = snprintf(detail, sizeof(detail), "%" PRIu64 " steps", r->step);
  if (r->report->request_count >= 0) {
    snprintf(detail + used, sizeof(detail) - (size_t)used,
             ", %lld of %lld requests",
             (long long)sg_scheduler_finished(r->source->scheduler),
             (long long)r->report->request_count);
  }
  sg_terminal_progress(r->terminal, "replay", r->tokens_done,
                       r->source->total_tokens, detail);
}

static sg_status_t run_all(replay_t* r) {
  for (;;) {
    sg_batch_t batch;
    bool end;
    SG_RETURN_IF_ERROR(sg_source_next(r->source, &batch, &end));
    if (end) return sg_status_ok();
    sg_status_t status = run_step(r, &batch);
    if (!sg_status_is_ok(status)) {
      return sg_status_annotate(status, "step %" PRIu64, r->step);
    }
    sg_source_complete(r->source);
    show_step(r);
  }
}

// --- Results ---

static void gather(replay_t* r) {
  const sg_session_t* session = r->session;
  sg_report_t* report = r->report;
  sg_executor_statistics(session->executor, &report->statistics);
  for (size_t i = 0; i < session->shapes.shape_count; ++i) {
    sg_executor_shape_statistics(session->executor, i,
                                 &report->shape_statistics[i]);
  }
  if (r->source->scheduler != NULL) {
    report->requests_finished = sg_scheduler_finished(r->source->scheduler);
    report->schedule_ns = r->source->now_ns;
  }
  report->has_mismatch =
      sg_executor_first_mismatch(session->executor, &report->first_mismatch);
  if (!report->has_mismatch) return;
  const int32_t buffer = report->first_mismatch.buffer;
  report->mismatch_buffer =
      buffer >= 0 && (size_t)buffer < session->program->buffer_count
          ? session->program->buffers[buffer].name
          : "unknown";
}

sg_status_t sg_replay_run(const sg_session_t* session, sg_source_t* source,
                          uint64_t seed, sg_terminal_t* terminal,
                          sg_report_t* report) {
  replay_t replay = {.session = session,
                     .source = source,
                     .seed = seed,
                     .terminal = terminal,
                     .report = report};
  void* slots_used;
  SG_RETURN_IF_ERROR(sg_allocate(sg_allocator_system(), "slots",
                                 (size_t)session->slot_count, sizeof(bool),
                                 &slots_used));
  replay.slots_used = slots_used;
  sg_status_t status = run_all(&replay);
  sg_release(sg_allocator_system(), slots_used);
  sg_terminal_clear(terminal);
  gather(&replay);
  return status;
}
