// SPDX-License-Identifier: Apache-2.0

#include "cli/report.h"

static void put_text(sg_json_writer_t* w, const char* key, const char* text) {
  sg_json_writer_key(w, key);
  sg_json_writer_string(w, text);
}

static void put_integer(sg_json_writer_t* w, const char* key, int64_t value) {
  sg_json_writer_key(w, key);
  sg_json_writer_int64(w, value);
}

static void put_count(sg_json_writer_t* w, const char* key, uint64_t value) {
  sg_json_writer_key(w, key);
  sg_json_writer_uint64(w, value);
}

static void put_double(sg_json_writer_t* w, const char* key, double value) {
  sg_json_writer_key(w, key);
  sg_json_writer_double(w, value);
}

static void put_bool(sg_json_writer_t* w, const char* key, bool value) {
  sg_json_writer_key(w, key);
  sg_json_writer_bool(w, value);
}

static void write_run(const sg_report_t* report, sg_json_writer_t* w) {
  put_text(w, "model", report->model->name);
  put_integer(w, "layers", report->model->layers);
  put_text(w, "flavour", report->flavour);
  put_text(w, "target", report->target);
  put_text(w, "device", report->device);
  sg_json_writer_key(w, "options");
  sg_json_writer_begin_object(w);
  put_integer(w, "slots", report->slot_count);
  put_integer(w, "ring_depth", report->ring_depth);
  put_count(w, "seed", report->seed);
  put_bool(w, "verify", report->verify);
  put_bool(w, "eager", report->eager);
  put_text(w, "clock", report->clock);
  put_text(w, "tables", report->tables);
  sg_json_writer_end_object(w);
}

static void write_requests(const sg_report_t* report, sg_json_writer_t* w) {
  sg_json_writer_key(w, "requests");
  if (report->request_count < 0) {
    sg_json_writer_null(w);
    return;
  }
  sg_json_writer_begin_object(w);
  put_integer(w, "count", report->request_count);
  put_integer(w, "finished", report->requests_finished);
  put_integer(w, "input_tokens", report->input_tokens);
  put_integer(w, "output_tokens", report->output_tokens);
  put_integer(w, "schedule_ns", report->schedule_ns);
  sg_json_writer_end_object(w);
}

static void write_eager_reasons(const sg_report_t* report,
                                sg_json_writer_t* w) {
  sg_json_writer_key(w, "eager_by_reason");
  sg_json_writer_begin_array(w);
  for (int i = SG_EAGER_NONE + 1; i < SG_EAGER_REASON_COUNT; ++i) {
    if (report->statistics.eager_by_reason[i] == 0) continue;
    sg_json_writer_begin_inline_object(w);
    put_text(w, "reason", sg_eager_reason_name((sg_eager_reason_t)i));
    put_count(w, "steps", report->statistics.eager_by_reason[i]);
    put_double(w, "largest_actual", report->eager_examples[i].actual);
    put_double(w, "limit", report->eager_examples[i].limit);
    sg_json_writer_end_object(w);
  }
  sg_json_writer_end_array(w);
}

static void write_steps(const sg_report_t* report, sg_json_writer_t* w) {
  const sg_statistics_t* statistics = &report->statistics;
  sg_json_writer_key(w, "steps");
  sg_json_writer_begin_object(w);
  put_count(w, "total", statistics->steps);
  put_count(w, "graph", statistics->graph_steps);
  put_count(w, "eager", statistics->eager_steps);
  sg_json_writer_key(w, "by_phase");
  sg_json_writer_begin_inline_object(w);
  for (int i = 0; i < SG_PHASE_COUNT; ++i) {
    put_count(w, sg_phase_name((sg_phase_t)i), statistics->steps_by_phase[i]);
  }
  sg_json_writer_end_object(w);
  write_eager_reasons(report, w);
  put_count(w, "busy_calls", statistics->busy_calls);
  sg_json_writer_end_object(w);
  sg_json_writer_key(w, "tokens");
  sg_json_writer_begin_object(w);
  put_count(w, "real", statistics->real_tokens);
  put_count(w, "padded", statistics->padded_tokens);
  sg_json_writer_end_object(w);
  put_count(w, "sequences", statistics->sequences);
}

static void write_shapes(const sg_report_t* report, sg_json_writer_t* w) {
  put_integer(w, "capture_ns", report->capture_ns);
  sg_json_writer_key(w, "shapes");
  sg_json_writer_begin_array(w);
  for (size_t i = 0; i < report->shapes->shape_count; ++i) {
    const sg_shape_t* shape = &report->shapes->shapes[i];
    const sg_shape_statistics_t* statistics = &report->shape_statistics[i];
    sg_json_writer_begin_object(w);
    put_text(w, "name", shape->name);
    put_text(w, "phase", sg_phase_name(shape->phase));
    put_integer(w, "max_tokens", shape->max_tokens);
    put_integer(w, "max_sequences", shape->max_sequences);
    put_bool(w, "captured", statistics->captured);
    put_count(w, "hits", statistics->hits);
    put_count(w, "node_count", statistics->node_count);
    put_count(w, "capture_ns", statistics->capture_ns);
    put_integer(w, "graph_bytes", statistics->graph_bytes);
    sg_json_writer_end_object(w);
  }
  sg_json_writer_end_array(w);
}

static sg_status_t write_time(const sg_report_t* report, int phase,
                              const char* name, sg_json_writer_t* w) {
  sg_time_summary_t summary;
  SG_RETURN_IF_ERROR(sg_report_summarize(report, phase, &summary));
  sg_json_writer_key(w, name);
  if (summary.steps == 0) {
    sg_json_writer_null(w);
    return sg_status_ok();
  }
  sg_json_writer_begin_inline_object(w);
  put_integer(w, "steps", summary.steps);
  put_integer(w, "median_ns", summary.median_ns);
  put_integer(w, "p99_ns", summary.p99_ns);
  put_integer(w, "total_ns", summary.total_ns);
  sg_json_writer_end_object(w);
  return sg_status_ok();
}

static sg_status_t write_times(const sg_report_t* report, sg_json_writer_t* w) {
  sg_time_summary_t all;
  SG_RETURN_IF_ERROR(sg_report_summarize(report, SG_PHASE_COUNT, &all));
  sg_json_writer_key(w, "step_time");
  sg_json_writer_begin_object(w);
  SG_RETURN_IF_ERROR(write_time(report, SG_PHASE_COUNT, "all", w));
  for (int i = 0; i < SG_PHASE_COUNT; ++i) {
    SG_RETURN_IF_ERROR(write_time(report, i, sg_phase_name((sg_phase_t)i), w));
  }
  sg_json_writer_end_object(w);
  put_double(w, "tokens_per_second", sg_report_tokens_per_second(report, &all));
  return sg_status_ok();
}

static void write_memory(const sg_report_t* report, sg_json_writer_t* w) {
  sg_json_writer_key(w, "memory");
  sg_json_writer_begin_object(w);
  put_count(w, "pinned_bytes", report->statistics.pinned_bytes);
  put_count(w, "device_bytes", report->statistics.device_bytes);
  sg_json_writer_end_object(w);
}

static void write_checks(const sg_report_t* report, sg_json_writer_t* w) {
  sg_json_writer_key(w, "errors");
  sg_json_writer_begin_object(w);
  put_count(w, "steps", report->statistics.error_steps);
  sg_json_writer_key(w, "first");
  if (report->has_error) {
    sg_json_writer_begin_inline_object(w);
    put_count(w, "step", report->first_error.step);
    put_text(w, "error", sg_step_error_name(report->first_error.code));
    put_integer(w, "sequence", report->first_error.sequence);
    put_integer(w, "value", report->first_error.value);
    sg_json_writer_end_object(w);
  } else {
    sg_json_writer_null(w);
  }
  sg_json_writer_end_object(w);
  sg_json_writer_key(w, "verified");
  sg_json_writer_begin_object(w);
  put_count(w, "steps", report->statistics.verified_steps);
  put_count(w, "mismatched_rows", report->statistics.mismatched_rows);
  sg_json_writer_key(w, "first");
  if (report->has_mismatch) {
    sg_json_writer_begin_inline_object(w);
    put_count(w, "step", report->first_mismatch.step);
    put_text(w, "buffer", report->mismatch_buffer);
    put_integer(w, "row", report->first_mismatch.row);
    sg_json_writer_end_object(w);
  } else {
    sg_json_writer_null(w);
  }
  sg_json_writer_end_object(w);
}

sg_status_t sg_report_write_json(const sg_report_t* report,
                                 sg_json_writer_t* writer) {
  sg_json_writer_begin_object(writer);
  put_integer(writer, "version", 1);
  write_run(report, writer);
  write_requests(report, writer);
  write_steps(report, writer);
  write_shapes(report, writer);
  SG_RETURN_IF_ERROR(write_times(report, writer));
  write_memory(report, writer);
  write_checks(report, writer);
  sg_json_writer_end_object(writer);
  return sg_json_writer_finish(writer);
}
