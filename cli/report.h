// SPDX-License-Identifier: Apache-2.0
//
// What a replay did, as a table to read and as JSON
// (schemas/report.schema.json).

#ifndef STEPGRAPH_CLI_REPORT_H_
#define STEPGRAPH_CLI_REPORT_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/executor.h"
#include "schemas/json_writer.h"
#include "schemas/model.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

// The time of one step, from the run call until the device was done.
typedef struct sg_step_time_t {
  int64_t duration_ns;
  sg_phase_t phase;
} sg_step_time_t;

// The eager steps of one reason: the largest number that was met, and the
// limit that it was held against.
typedef struct sg_eager_example_t {
  double actual;
  double limit;
} sg_eager_example_t;

// Zero-initialise; sg_report_deinitialize frees the times.
typedef struct sg_report_t {
  // What ran, on what, and how.
  const sg_model_t* model;
  const sg_shapes_t* shapes;
  const char* flavour;
  const char* target;
  char device[256];
  int32_t slot_count;
  int32_t ring_depth;
  uint64_t seed;
  bool verify;
  bool eager;
  // Names as the options spell them.
  const char* clock;
  const char* tables;

  // Of a trace of requests; request_count is -1 for a file of batches.
  int64_t request_count;
  int64_t requests_finished;
  int64_t input_tokens;
  int64_t output_tokens;
  // Time on the clock from the first arrival to the end.
  int64_t schedule_ns;

  sg_statistics_t statistics;
  // One a shape.
  sg_shape_statistics_t* shape_statistics;
  int64_t capture_ns;
  sg_eager_example_t eager_examples[SG_EAGER_REASON_COUNT];

  sg_step_time_t* times;
  size_t time_count;
  size_t time_capacity;

  bool has_error;
  sg_step_error_record_t first_error;
  bool has_mismatch;
  sg_mismatch_record_t first_mismatch;
  // Name of the buffer that differed.
  const char* mismatch_buffer;
} sg_report_t;

typedef struct sg_time_summary_t {
  int64_t steps;
  int64_t total_ns;
  // Nearest rank: the smallest time that at least that share of all reach.
  int64_t median_ns;
  int64_t p99_ns;
} sg_time_summary_t;

void sg_report_deinitialize(sg_report_t* report);

// Adds the time of a step and, where it ran eagerly, its reason.
SG_MUST_USE sg_status_t sg_report_add_step(sg_report_t* report,
                                           const sg_step_report_t* step,
                                           int64_t duration_ns);

// The times of the steps of |phase|, or of all with SG_PHASE_COUNT.
SG_MUST_USE sg_status_t sg_report_summarize(const sg_report_t* report,
                                            int phase,
                                            sg_time_summary_t* out_summary);

// Tokens of batches over the time of their steps; 0 without steps.
double sg_report_tokens_per_second(const sg_report_t* report,
                                   const sg_time_summary_t* summary);

SG_MUST_USE sg_status_t sg_report_print(const sg_report_t* report, bool colours,
                                        FILE* file);

SG_MUST_USE sg_status_t sg_report_write_json(const sg_report_t* report,
                                             sg_json_writer_t* writer);

// "stale_entry" and so on, for a code of an error record.
const char* sg_step_error_name(int32_t code);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_REPORT_H_
