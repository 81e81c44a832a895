// SPDX-License-Identifier: Apache-2.0
//
// Where the batches of a replay come from: a file of batches, or a trace of
// requests through the scheduler.

#ifndef STEPGRAPH_CLI_SOURCE_H_
#define STEPGRAPH_CLI_SOURCE_H_

#include <stdbool.h>
#include <stdint.h>

#include "cli/scheduler.h"
#include "schemas/batches.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_source_clock_t {
  SG_CLOCK_VIRTUAL = 0,
  SG_CLOCK_REAL = 1,
} sg_source_clock_t;

// Fields are read-only outside source.c.
typedef struct sg_source_t {
  // Of requests; all zero for a file of batches.
  sg_requests_t requests;
  sg_scheduler_t* scheduler;
  sg_source_clock_t clock;
  // On the clock, since the first arrival.
  int64_t now_ns;
  int64_t start_ns;
  // Of batches.
  sg_batch_reader_t* reader;
  int64_t batches_left;

  // Tokens that all batches will have together.
  int64_t total_tokens;
  // Batches of the file; 0 for requests, whose batches are not known before.
  int64_t batch_count;
  // The largest slot in the file, or -1.
  int32_t max_slot;
  // Tokens of the batch handed out last.
  int64_t batch_tokens;
} sg_source_t;

// Reads a trace, of which |limit| above 0 takes that many requests.
SG_MUST_USE sg_status_t sg_source_open_requests(const char* path, int64_t limit,
                                                sg_source_t* out_source);

// Reads a file of batches through once, so that its faults are found before
// anything runs, and goes back to its start. Batches must stay within |limits|.
SG_MUST_USE sg_status_t sg_source_open_batches(const char* path, int64_t limit,
                                               sg_shape_limits_t limits,
                                               sg_source_t* out_source);

// Starts the scheduler and the clock; does nothing for batches.
SG_MUST_USE sg_status_t sg_source_start(sg_source_t* source,
                                        sg_shape_limits_t limits,
                                        int32_t slot_count,
                                        sg_source_clock_t clock);

// The next batch, or |out_end|. Waits for an arrival on the real clock. The
// arrays belong to the source and last until its next call.
SG_MUST_USE sg_status_t sg_source_next(sg_source_t* source,
                                       sg_batch_t* out_batch, bool* out_end);

// To be called when the step of the batch is done.
void sg_source_complete(sg_source_t* source);

// Accepts NULL and a zeroed source.
void sg_source_close(sg_source_t* source);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_SOURCE_H_
