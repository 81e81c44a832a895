// SPDX-License-Identifier: Apache-2.0
//
// stepgraph replay: a trace of requests or a file of batches, step by step.

#include "cli/replay.h"

#include <inttypes.h>
#include <stddef.h>

#include "cli/command.h"
#include "cli/fill.h"
#include "cli/output_file.h"
#include "runtime/hip/error.h"

static const char* const clock_names[] = {"virtual", "real", NULL};
static const char* const table_names[] = {"device", "host", NULL};

typedef struct replay_options_t {
  const char* model;
  const char* shapes;
  const char* requests;
  const char* batches;
  const char* report;
  int64_t slots;
  int64_t limit;
  int64_t ring_depth;
  int64_t seed;
  int clock;
  int tables;
  bool verify;
  bool eager;
  bool quiet;
} replay_options_t;

#define VALUE(member) .value_offset = offsetof(replay_options_t, member)

static const sg_option_t option_list[] = {
    SG_OPTION_MODEL(replay_options_t),
    SG_OPTION_SHAPES(replay_options_t),
    {.name = "requests",
     .kind = SG_OPTION_TEXT,
     VALUE(requests),
     .placeholder = "FILE",
     .help = "a trace of requests: JSON lines, or Azure's CSV"},
    {.name = "batches",
     .kind = SG_OPTION_TEXT,
     VALUE(batches),
     .placeholder = "FILE",
     .help = "batches as JSON lines"},
    {.name = "slots",
     .kind = SG_OPTION_INTEGER,
     VALUE(slots),
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1 << 20,
     .help = "state slots [as many as sequences, or as the batches need]"},
    {.name = "limit",
     .kind = SG_OPTION_INTEGER,
     VALUE(limit),
     .placeholder = "N",
     .minimum = 1,
     .maximum = INT64_MAX,
     .help = "stop after so many requests or batches"},
    {.name = "verify",
     .kind = SG_OPTION_FLAG,
     VALUE(verify),
     .help = "run each step twice and compare the results bit by bit"},
    {.name = "eager",
     .kind = SG_OPTION_FLAG,
     VALUE(eager),
     .help = "run every step without graphs"},
    {.name = "ring-depth",
     .kind = SG_OPTION_INTEGER,
     VALUE(ring_depth),
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1 << 16,
     .help = "steps that may be in flight [64]"},
    {.name = "clock",
     .kind = SG_OPTION_CHOICE,
     VALUE(clock),
     .placeholder = "virtual|real",
     .choices = {"virtual", "real"},
     .help = "when requests arrive [virtual: 1 ms + 1 us a token a step]"},
    {.name = "seed",
     .kind = SG_OPTION_INTEGER,
     VALUE(seed),
     .placeholder = "N",
     .minimum = 0,
     .maximum = INT64_MAX,
     .help = "of the random weights and inputs [0]"},
    {.name = "tables",
     .kind = SG_OPTION_CHOICE,
     VALUE(tables),
     .placeholder = "device|host",
     .choices = {"device", "host"},
     .help = "who builds the chunk tables [device]"},
    {.name = "report",
     .kind = SG_OPTION_TEXT,
     VALUE(report),
     .placeholder = "FILE",
     .help = "write the results as JSON"},
    {.name = "quiet",
     .kind = SG_OPTION_FLAG,
     VALUE(quiet),
     .help = "show no progress"},
};

#undef VALUE

static const sg_option_table_t table = {
    .command = "replay",
    .summary =
        "Replays a trace of requests, or batches, and reports what happened.",
    .options = option_list,
    .option_count = sizeof(option_list) / sizeof(option_list[0]),
};

static sg_status_t check_options(const replay_options_t* o) {
  if ((o->requests == NULL) == (o->batches == NULL)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "replay: expected one of --requests and --batches, "
                          "found %s",
                          o->requests == NULL ? "neither" : "both");
  }
  if (o->verify && o->ring_depth < 2) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "replay: --ring-depth is %" PRId64
                          ", --verify needs at least 2",
                          o->ring_depth);
  }
  if (o->report != NULL) return sg_output_file_check(o->report);
  return sg_status_ok();
}

static sg_status_t open_source(const replay_options_t* o,
                               const sg_session_t* session,
                               sg_source_t* out_source) {
  if (o->batches != NULL) {
    return sg_source_open_batches(o->batches, o->limit, session->shapes.limits,
                                  out_source);
  }
  return sg_source_open_requests(o->requests, o->limit, out_source);
}

static sg_status_t count_slots(const replay_options_t* o,
                               const sg_session_t* session,
                               const sg_source_t* source,
                               int32_t* out_slot_count) {
  *out_slot_count = (int32_t)o->slots;
  if (o->slots > 0 && o->slots <= source->max_slot) {
    return sg_status_make(SG_STATUS_INVALID_DATA,
                          "%.120s: slot %d, expected slots below %" PRId64
                          " (--slots)",
                          o->batches, source->max_slot, o->slots);
  }
  if (o->slots > 0) return sg_status_ok();
  *out_slot_count = o->batches != NULL ? source->max_slot + 1
                                       : session->shapes.limits.max_sequences;
  if (*out_slot_count < 1) *out_slot_count = 1;
  return sg_status_ok();
}

static sg_status_t describe(const replay_options_t* o,
                            const sg_session_t* session,
                            const sg_source_t* source, sg_report_t* report) {
  report->model = &session->model;
  report->shapes = &session->shapes;
  report->flavour = sg_flavour_name(sg_flavour_of_build());
  report->target = session->target->name;
  report->slot_count = session->slot_count;
  report->ring_depth = (int32_t)o->ring_depth;
  report->seed = (uint64_t)o->seed;
  report->verify = o->verify;
  report->eager = o->eager;
  report->clock = clock_names[o->clock];
  report->tables = table_names[o->tables];
  report->request_count =
      o->batches != NULL ? -1 : (int64_t)source->requests.request_count;
  for (size_t i = 0; i < source->requests.request_count; ++i) {
    report->input_tokens += source->requests.requests[i].input_tokens;
    report->output_tokens += source->requests.requests[i].output_tokens;
  }
  hipDeviceProp_t properties;
  SG_RETURN_IF_HIP_ERROR(hipGetDeviceProperties, &properties, /*device=*/0);
  snprintf(report->device, sizeof(report->device), "%s", properties.name);
  void* shape_statistics;
  SG_RETURN_IF_ERROR(sg_allocate(
      sg_allocator_system(), "shape statistics", session->shapes.shape_count,
      sizeof(*report->shape_statistics), &shape_statistics));
  report->shape_statistics = shape_statistics;
  return sg_status_ok();
}

static sg_status_t write_report(const char* path, const sg_report_t* report) {
  if (path == NULL) return sg_status_ok();
  sg_output_file_t file;
  SG_RETURN_IF_ERROR(sg_output_file_open(path, &file));
  sg_json_writer_t writer;
  sg_json_writer_initialize_file(&writer, file.file, /*indent_spaces=*/2);
  sg_status_t status = sg_report_write_json(report, &writer);
  sg_json_writer_deinitialize(&writer);
  return sg_output_file_finish(&file, status);
}

// What makes a replay that ran to its end a failed one.
static sg_status_t judge(const sg_report_t* report) {
  if (report->statistics.error_steps > 0) {
    return sg_status_make(
        SG_STATUS_MISMATCH,
        "replay: the device refused %" PRIu64 " steps, first step %" PRIu64
        " (%s, sequence %d, value %lld)",
        report->statistics.error_steps, report->first_error.step,
        sg_step_error_name(report->first_error.code),
        report->first_error.sequence, (long long)report->first_error.value);
  }
  if (report->statistics.mismatched_rows > 0) {
    return sg_status_make(SG_STATUS_MISMATCH,
                          "replay: %" PRIu64
                          " rows differ from the eager steps, one of the "
                          "first in step %" PRIu64 ", %s row %d",
                          report->statistics.mismatched_rows,
                          report->first_mismatch.step, report->mismatch_buffer,
                          report->first_mismatch.row);
  }
  if (report->request_count > report->requests_finished) {
    return sg_status_make(
        SG_STATUS_INTERNAL, "replay: %lld of %lld requests finished",
        (long long)report->requests_finished, (long long)report->request_count);
  }
  return sg_status_ok();
}

// Runs and reports. The table and the file are written also where a step has
// failed; the exit code is that of the first fault.
static int run_session(const replay_options_t* o, sg_session_t* session,
                       sg_source_t* source, sg_report_t* report) {
  sg_terminal_t terminal;
  sg_terminal_initialize(o->quiet, &terminal);
  sg_status_t status = sg_fill_weights(session, (uint64_t)o->seed);
  if (sg_status_is_ok(status)) {
    status = sg_replay_capture(session, &terminal, report);
  }
  if (!sg_status_is_ok(status)) return sg_command_fail(status);
  status = sg_source_start(source, session->shapes.limits, session->slot_count,
                           (sg_source_clock_t)o->clock);
  if (!sg_status_is_ok(status)) return sg_command_fail(status);
  sg_status_t run =
      sg_replay_run(session, source, (uint64_t)o->seed, &terminal, report);
  status = sg_report_print(report, sg_terminal_wants_colours(stdout), stdout);
  if (sg_status_is_ok(status)) status = write_report(o->report, report);
  if (sg_status_is_ok(run)) run = judge(report);
  if (!sg_status_is_ok(run)) {
    sg_command_print_error(run);
    return SG_EXIT_FAILED;
  }
  if (!sg_status_is_ok(status)) return sg_command_fail(status);
  return sg_command_finish(SG_EXIT_DONE);
}

static sg_status_t start(const replay_options_t* o, sg_session_t* session,
                         sg_source_t* source, sg_report_t* report) {
  SG_RETURN_IF_ERROR(open_source(o, session, source));
  int32_t slot_count;
  SG_RETURN_IF_ERROR(count_slots(o, session, source, &slot_count));
  const sg_session_options_t options = {
      .slot_count = slot_count,
      .ring_depth = (int32_t)o->ring_depth,
      .verify_every = o->verify ? 1 : 0,
      .always_eager = o->eager,
      .tables = o->tables == 0 ? SG_TABLES_DEVICE : SG_TABLES_HOST,
  };
  SG_RETURN_IF_ERROR(sg_session_start(session, &options));
  return describe(o, session, source, report);
}

int sg_command_replay(int argc, char** argv) {
  replay_options_t o = {.shapes = "default", .ring_depth = 64};
  int exit_code;
  int positional_count;
  if (!sg_command_parse(&table, argc, argv, &o, &positional_count,
                        &exit_code)) {
    return exit_code;
  }
  sg_session_t session = {0};
  sg_source_t source = {0};
  sg_report_t report = {0};
  sg_status_t status = check_options(&o);
  if (sg_status_is_ok(status)) {
    status = sg_session_open(o.model, o.shapes, &session);
  }
  if (sg_status_is_ok(status)) status = start(&o, &session, &source, &report);
  exit_code = sg_status_is_ok(status)
                  ? run_session(&o, &session, &source, &report)
                  : sg_command_fail(status);
  sg_report_deinitialize(&report);
  sg_source_close(&source);
  sg_session_close(&session);
  return exit_code;
}
