// SPDX-License-Identifier: Apache-2.0
//
// Gathers the figures of a report; report_table.c and report_json.c write it.

#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/allocator.h"

const char* sg_step_error_name(int32_t code) {
  switch ((sg_step_error_t)code) {
    case SG_STEP_ERROR_NONE:
      return "none";
    case SG_STEP_ERROR_STALE_ENTRY:
      return "stale_entry";
    case SG_STEP_ERROR_SEQUENCE_COUNT:
      return "sequence_count";
    case SG_STEP_ERROR_FIRST_OFFSET:
      return "first_offset";
    case SG_STEP_ERROR_DECREASING_OFFSET:
      return "decreasing_offset";
    case SG_STEP_ERROR_TOKEN_COUNT:
      return "token_count";
    case SG_STEP_ERROR_SLOT_RANGE:
      return "slot_range";
    case SG_STEP_ERROR_SLOT_DUPLICATE:
      return "slot_duplicate";
    case SG_STEP_ERROR_PHASE:
      return "phase";
    case SG_STEP_ERROR_TABLES:
      return "tables";
    case SG_STEP_ERROR_COMPUTED_LENGTH:
      return "computed_length";
  }
  return "unknown";
}

void sg_report_deinitialize(sg_report_t* report) {
  sg_release(sg_allocator_system(), report->times);
  sg_release(sg_allocator_system(), report->shape_statistics);
  *report = (sg_report_t){0};
}

static sg_status_t grow(sg_report_t* report) {
  size_t capacity =
      report->time_capacity == 0 ? 1024 : report->time_capacity * 2;
  void* times;
  SG_RETURN_IF_ERROR(sg_allocate(sg_allocator_system(), "step times", capacity,
                                 sizeof(*report->times), &times));
  if (report->time_count > 0) {
    memcpy(times, report->times, report->time_count * sizeof(*report->times));
  }
  sg_release(sg_allocator_system(), report->times);
  report->times = times;
  report->time_capacity = capacity;
  return sg_status_ok();
}

sg_status_t sg_report_add_step(sg_report_t* report,
                               const sg_step_report_t* step,
                               int64_t duration_ns) {
  if (report->time_count == report->time_capacity) {
    SG_RETURN_IF_ERROR(grow(report));
  }
  report->times[report->time_count++] =
      (sg_step_time_t){.duration_ns = duration_ns, .phase = step->batch.phase};
  sg_eager_example_t* example = &report->eager_examples[step->reason];
  if (step->reason != SG_EAGER_NONE && step->reason_actual >= example->actual) {
    *example = (sg_eager_example_t){.actual = step->reason_actual,
                                    .limit = step->reason_limit};
  }
  return sg_status_ok();
}

static int compare_durations(const void* a, const void* b) {
  const int64_t left = *(const int64_t*)a;
  const int64_t right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

// The smallest of |sorted| that |percent| of them reach.
static int64_t percentile(const int64_t* sorted, int64_t count,
                          int64_t percent) {
  int64_t rank = (count * percent + 99) / 100;
  return sorted[rank > 0 ? rank - 1 : 0];
}

sg_status_t sg_report_summarize(const sg_report_t* report, int phase,
                                sg_time_summary_t* out_summary) {
  *out_summary = (sg_time_summary_t){0};
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(sg_allocator_system(), "step times",
                                 report->time_count, sizeof(int64_t), &memory));
  int64_t* durations = memory;
  int64_t count = 0;
  for (size_t i = 0; i < report->time_count; ++i) {
    const sg_step_time_t* time = &report->times[i];
    if (phase != SG_PHASE_COUNT && (int)time->phase != phase) continue;
    durations[count++] = time->duration_ns;
    out_summary->total_ns += time->duration_ns;
  }
  if (count > 0) {
    qsort(durations, (size_t)count, sizeof(*durations), compare_durations);
    out_summary->steps = count;
    out_summary->median_ns = percentile(durations, count, 50);
    out_summary->p99_ns = percentile(durations, count, 99);
  }
  sg_release(sg_allocator_system(), memory);
  return sg_status_ok();
}

double sg_report_tokens_per_second(const sg_report_t* report,
                                   const sg_time_summary_t* summary) {
  if (summary->total_ns == 0) return 0;
  return (double)report->statistics.real_tokens * 1e9 /
         (double)summary->total_ns;
}
