// SPDX-License-Identifier: Apache-2.0
//
// Numbers of repeated runs, times or ratios of times, and what is reported of
// them.

#ifndef STEPGRAPH_BENCH_SAMPLES_H_
#define STEPGRAPH_BENCH_SAMPLES_H_

#include <stddef.h>

#include "schemas/json_writer.h"

typedef struct samples_t {
  double* values;
  size_t count;
  size_t capacity;
} samples_t;

typedef struct sample_summary_t {
  double median;
  double min;
  double p10;
  double p90;
} sample_summary_t;

SG_MUST_USE sg_status_t samples_initialize(size_t capacity,
                                           samples_t* out_samples);
void samples_deinitialize(samples_t* samples);

// At most |capacity| are kept.
void samples_add(samples_t* samples, double value);

// Sorts them. There must be one at least.
sample_summary_t samples_summarize(samples_t* samples);

// An object of times in ms, with the median's share of each of |tokens| tokens.
void samples_write(sg_json_writer_t* writer, const sample_summary_t* summary,
                   double tokens);

#endif  // STEPGRAPH_BENCH_SAMPLES_H_
