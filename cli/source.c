// SPDX-License-Identifier: Apache-2.0

#define _POSIX_C_SOURCE 200809L

#include "cli/source.h"

#include <time.h>

#include "cli/terminal.h"

sg_status_t sg_source_open_requests(const char* path, int64_t limit,
                                    sg_source_t* out_source) {
  *out_source = (sg_source_t){.max_slot = -1};
  SG_RETURN_IF_ERROR(sg_requests_load(sg_allocator_system(), path,
                                      (size_t)limit, &out_source->requests));
  out_source->total_tokens = sg_requests_work_tokens(&out_source->requests);
  return sg_status_ok();
}

static void scan_line(const sg_batch_line_t* line, sg_source_t* source) {
  source->total_tokens += line->token_count;
  ++source->batch_count;
  for (int32_t i = 0; i < line->sequence_count; ++i) {
    if (line->slots[i] > source->max_slot) source->max_slot = line->slots[i];
  }
}

static sg_batch_t batch_of_line(const sg_batch_line_t* line) {
  return (sg_batch_t){.sequence_count = line->sequence_count,
                      .query_lens = line->query_lens,
                      .computed_lens = line->computed_lens,
                      .slots = line->slots};
}

static sg_status_t scan(sg_batch_reader_t* reader, const char* path,
                        int64_t limit, sg_shape_limits_t limits,
                        sg_source_t* source) {
  while (limit == 0 || source->batch_count < limit) {
    sg_batch_line_t line;
    bool end;
    SG_RETURN_IF_ERROR(sg_batch_reader_next(reader, &line, &end));
    if (end) return sg_status_ok();
    sg_batch_t batch = batch_of_line(&line);
    sg_batch_summary_t summary;
    sg_status_t status = sg_batch_summarize(&batch, limits, &summary);
    if (!sg_status_is_ok(status)) {
      return sg_status_annotate(status, "%.120s:%lld", path,
                                (long long)sg_batch_reader_line(reader));
    }
    scan_line(&line, source);
  }
  return sg_status_ok();
}

sg_status_t sg_source_open_batches(const char* path, int64_t limit,
                                   sg_shape_limits_t limits,
                                   sg_source_t* out_source) {
  *out_source = (sg_source_t){.max_slot = -1};
  sg_batch_reader_t* reader;
  SG_RETURN_IF_ERROR(
      sg_batch_reader_open(sg_allocator_system(), path, &reader));
  sg_status_t status = scan(reader, path, limit, limits, out_source);
  sg_batch_reader_destroy(reader);
  SG_RETURN_IF_ERROR(status);
  out_source->batches_left = out_source->batch_count;
  return sg_batch_reader_open(sg_allocator_system(), path, &out_source->reader);
}

sg_status_t sg_source_start(sg_source_t* source, sg_shape_limits_t limits,
                            int32_t slot_count, sg_source_clock_t clock) {
  source->clock = clock;
  source->start_ns = sg_clock_ns();
  if (source->reader != NULL) return sg_status_ok();
  return sg_scheduler_create(sg_allocator_system(), &source->requests, limits,
                             slot_count, &source->scheduler);
}

static void sleep_ns(int64_t duration_ns) {
  struct timespec left = {.tv_sec = (time_t)(duration_ns / 1000000000),
                          .tv_nsec = (long)(duration_ns % 1000000000)};
  while (nanosleep(&left, &left) != 0) {
  }
}

// Lets the clock go on to the next arrival.
static void wait_for_arrival(sg_source_t* source, int64_t arrival_ns) {
  if (source->clock == SG_CLOCK_REAL && arrival_ns > source->now_ns) {
    sleep_ns(arrival_ns - source->now_ns);
  }
  if (arrival_ns > source->now_ns) source->now_ns = arrival_ns;
}

static void next_of_scheduler(sg_source_t* source, sg_batch_t* out_batch,
                              bool* out_end) {
  if (source->clock == SG_CLOCK_REAL) {
    source->now_ns = sg_clock_ns() - source->start_ns;
  }
  while (!sg_scheduler_next(source->scheduler, source->now_ns, out_batch)) {
    int64_t arrival_ns = sg_scheduler_next_arrival_ns(source->scheduler);
    if (arrival_ns == INT64_MAX) {
      *out_end = true;
      return;
    }
    wait_for_arrival(source, arrival_ns);
  }
}

static sg_status_t next_of_file(sg_source_t* source, sg_batch_t* out_batch,
                                bool* out_end) {
  if (source->batches_left == 0) {
    *out_end = true;
    return sg_status_ok();
  }
  sg_batch_line_t line;
  SG_RETURN_IF_ERROR(sg_batch_reader_next(source->reader, &line, out_end));
  if (*out_end) return sg_status_ok();
  --source->batches_left;
  *out_batch = batch_of_line(&line);
  return sg_status_ok();
}

sg_status_t sg_source_next(sg_source_t* source, sg_batch_t* out_batch,
                           bool* out_end) {
  *out_batch = (sg_batch_t){0};
  *out_end = false;
  if (source->reader != NULL) {
    SG_RETURN_IF_ERROR(next_of_file(source, out_batch, out_end));
  } else {
    next_of_scheduler(source, out_batch, out_end);
  }
  source->batch_tokens = 0;
  for (int32_t i = 0; i < out_batch->sequence_count; ++i) {
    source->batch_tokens += out_batch->query_lens[i];
  }
  return sg_status_ok();
}

void sg_source_complete(sg_source_t* source) {
  if (source->scheduler == NULL) return;
  sg_scheduler_complete(source->scheduler);
  if (source->clock == SG_CLOCK_VIRTUAL) {
    source->now_ns += sg_virtual_step_ns(source->batch_tokens);
  } else {
    source->now_ns = sg_clock_ns() - source->start_ns;
  }
}

void sg_source_close(sg_source_t* source) {
  if (source == NULL) return;
  sg_scheduler_destroy(source->scheduler);
  sg_requests_deinitialize(&source->requests);
  sg_batch_reader_destroy(source->reader);
  *source = (sg_source_t){0};
}
