// SPDX-License-Identifier: Apache-2.0

#include <inttypes.h>
#include <string.h>

#include "cli/report.h"
#include "cli/terminal.h"

enum { AMOUNT_BYTES = 32 };

// "1.234 ms" or "2.5 s".
static void time_text(int64_t duration_ns, char out_text[AMOUNT_BYTES]) {
  double value = (double)duration_ns;
  if (value < 1e6) {
    snprintf(out_text, AMOUNT_BYTES, "%.1f us", value / 1e3);
  } else if (value < 1e9) {
    snprintf(out_text, AMOUNT_BYTES, "%.3f ms", value / 1e6);
  } else {
    snprintf(out_text, AMOUNT_BYTES, "%.2f s", value / 1e9);
  }
}

static void bytes_text(double bytes, char out_text[AMOUNT_BYTES]) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  while (unit < 3 && (bytes >= 1024 || bytes <= -1024)) {
    bytes /= 1024;
    ++unit;
  }
  snprintf(out_text, AMOUNT_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", bytes,
           units[unit]);
}

static void print_label(const char* label, FILE* file) {
  fprintf(file, "  %-16s", label);
}

static void print_run(const sg_report_t* report, bool colours, FILE* file) {
  fprintf(file, "%smodel %s%s, %d layers, on %s (%s)\n",
          sg_style_begin(colours, SG_STYLE_STRONG), report->model->name,
          sg_style_end(colours, SG_STYLE_STRONG), report->model->layers,
          report->device, report->target);
  if (report->request_count < 0) return;
  char duration[AMOUNT_BYTES];
  time_text(report->schedule_ns, duration);
  print_label("requests", file);
  fprintf(file, "%lld of %lld finished, in %s of the %s clock\n",
          (long long)report->requests_finished,
          (long long)report->request_count, duration, report->clock);
}

static void print_steps(const sg_report_t* report, FILE* file) {
  const sg_statistics_t* statistics = &report->statistics;
  print_label("steps", file);
  fprintf(file, "%" PRIu64 " (", statistics->steps);
  for (int i = 0; i < SG_PHASE_COUNT; ++i) {
    fprintf(file, "%s%" PRIu64 " %s", i == 0 ? "" : ", ",
            statistics->steps_by_phase[i], sg_phase_name((sg_phase_t)i));
  }
  fprintf(file, ")\n");
  print_label("replayed", file);
  fprintf(file, "%" PRIu64 "\n", statistics->graph_steps);
  print_label("eager", file);
  fprintf(file, "%" PRIu64 "\n", statistics->eager_steps);
  for (int i = SG_EAGER_NONE + 1; i < SG_EAGER_REASON_COUNT; ++i) {
    if (statistics->eager_by_reason[i] == 0) continue;
    const sg_eager_example_t* example = &report->eager_examples[i];
    print_label("", file);
    fprintf(file, "%" PRIu64 " %s", statistics->eager_by_reason[i],
            sg_eager_reason_name((sg_eager_reason_t)i));
    if (example->actual != 0 || example->limit != 0) {
      fprintf(file, ", up to %.9g where the limit is %.9g", example->actual,
              example->limit);
    }
    fputc('\n', file);
  }
  const uint64_t rows = statistics->real_tokens + statistics->padded_tokens;
  print_label("tokens", file);
  fprintf(file, "%" PRIu64 " real, %" PRIu64 " padded (%.1f%% of the rows)\n",
          statistics->real_tokens, statistics->padded_tokens,
          rows == 0 ? 0.0
                    : 100.0 * (double)statistics->padded_tokens / (double)rows);
}

static sg_status_t print_time(const sg_report_t* report, int phase,
                              const char* label, FILE* file) {
  sg_time_summary_t summary;
  SG_RETURN_IF_ERROR(sg_report_summarize(report, phase, &summary));
  if (summary.steps == 0) return sg_status_ok();
  char median[AMOUNT_BYTES];
  char p99[AMOUNT_BYTES];
  time_text(summary.median_ns, median);
  time_text(summary.p99_ns, p99);
  print_label(label, file);
  fprintf(file, "median %s, p99 %s", median, p99);
  if (phase == SG_PHASE_COUNT) {
    fprintf(file, "; %.0f tokens/s%s",
            sg_report_tokens_per_second(report, &summary),
            report->verify ? "; verifying included" : "");
  }
  fputc('\n', file);
  return sg_status_ok();
}

static sg_status_t print_times(const sg_report_t* report, FILE* file) {
  SG_RETURN_IF_ERROR(print_time(report, SG_PHASE_COUNT, "time a step", file));
  for (int i = 0; i < SG_PHASE_COUNT; ++i) {
    char label[32];
    snprintf(label, sizeof(label), "  %s", sg_phase_name((sg_phase_t)i));
    SG_RETURN_IF_ERROR(print_time(report, i, label, file));
  }
  return sg_status_ok();
}

static void print_checks(const sg_report_t* report, bool colours, FILE* file) {
  const sg_statistics_t* statistics = &report->statistics;
  sg_style_t style =
      statistics->error_steps == 0 ? SG_STYLE_GOOD : SG_STYLE_BAD;
  print_label("errors", file);
  fprintf(file, "%s%" PRIu64 "%s", sg_style_begin(colours, style),
          statistics->error_steps, sg_style_end(colours, style));
  if (report->has_error) {
    fprintf(file, ", first: step %" PRIu64 " %s, sequence %d, value %lld",
            report->first_error.step,
            sg_step_error_name(report->first_error.code),
            report->first_error.sequence, (long long)report->first_error.value);
  }
  fputc('\n', file);
  if (!report->verify) return;
  style = statistics->mismatched_rows == 0 ? SG_STYLE_GOOD : SG_STYLE_BAD;
  print_label("verified", file);
  fprintf(file, "%" PRIu64 " steps, %s%" PRIu64 " mismatches%s",
          statistics->verified_steps, sg_style_begin(colours, style),
          statistics->mismatched_rows, sg_style_end(colours, style));
  if (report->has_mismatch) {
    fprintf(file, ", one at step %" PRIu64 " in %s, row %d",
            report->first_mismatch.step, report->mismatch_buffer,
            report->first_mismatch.row);
  }
  fputc('\n', file);
}

static void print_shapes(const sg_report_t* report, bool colours, FILE* file) {
  if (report->shapes->shape_count == 0) return;
  int width = (int)strlen("shape");
  for (size_t i = 0; i < report->shapes->shape_count; ++i) {
    int length = (int)strlen(report->shapes->shapes[i].name);
    if (length > width) width = length;
  }
  fprintf(file, "\n  %s%-*s  %-7s  %7s  %9s  %6s  %11s  %10s  %8s%s\n",
          sg_style_begin(colours, SG_STYLE_STRONG), width, "shape", "phase",
          "tokens", "sequences", "nodes", "captured in", "memory", "hits",
          sg_style_end(colours, SG_STYLE_STRONG));
  for (size_t i = 0; i < report->shapes->shape_count; ++i) {
    const sg_shape_t* shape = &report->shapes->shapes[i];
    const sg_shape_statistics_t* statistics = &report->shape_statistics[i];
    char duration[AMOUNT_BYTES] = "no graph";
    char memory[AMOUNT_BYTES] = "-";
    if (statistics->captured) {
      time_text((int64_t)statistics->capture_ns, duration);
      bytes_text((double)statistics->graph_bytes, memory);
    }
    fprintf(file, "  %-*s  %-7s  %7d  %9d  %6zu  %11s  %10s  %8" PRIu64 "%s\n",
            width, shape->name, sg_phase_name(shape->phase), shape->max_tokens,
            shape->max_sequences, statistics->node_count, duration, memory,
            statistics->hits,
            statistics->captured && statistics->hits == 0 ? "  never hit" : "");
  }
}

sg_status_t sg_report_print(const sg_report_t* report, bool colours,
                            FILE* file) {
  print_run(report, colours, file);
  print_steps(report, file);
  SG_RETURN_IF_ERROR(print_times(report, file));
  print_checks(report, colours, file);
  print_shapes(report, colours, file);
  return sg_status_ok();
}
