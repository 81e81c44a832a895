// SPDX-License-Identifier: Apache-2.0

#include "bench/samples.h"

#include <stdlib.h>

sg_status_t samples_initialize(size_t capacity, samples_t* out_samples) {
  *out_samples = (samples_t){.capacity = capacity};
  out_samples->values = malloc(sizeof(double) * (capacity + 1));
  return out_samples->values == NULL
             ? sg_status_make(SG_STATUS_OUT_OF_MEMORY, "%zu samples", capacity)
             : sg_status_ok();
}

void samples_deinitialize(samples_t* samples) { free(samples->values); }

void samples_add(samples_t* samples, double value) {
  if (samples->count < samples->capacity)
    samples->values[samples->count++] = value;
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

// Between the two samples next to |part| of the way.
static double quantile(const samples_t* samples, double part) {
  const double at = part * (double)(samples->count - 1);
  const size_t low = (size_t)at;
  const size_t high = low + 1 < samples->count ? low + 1 : low;
  const double weight = at - (double)low;
  return samples->values[low] * (1.0 - weight) + samples->values[high] * weight;
}

sample_summary_t samples_summarize(samples_t* samples) {
  qsort(samples->values, samples->count, sizeof(double), compare);
  return (sample_summary_t){
      .median = quantile(samples, 0.5),
      .min = samples->values[0],
      .p10 = quantile(samples, 0.1),
      .p90 = quantile(samples, 0.9),
  };
}

void samples_write(sg_json_writer_t* writer, const sample_summary_t* summary,
                   double tokens) {
  const struct {
    const char* key;
    double value;
  } members[] = {
      {"median_ms", summary->median},
      {"min_ms", summary->min},
      {"p10_ms", summary->p10},
      {"p90_ms", summary->p90},
      {"token_us", summary->median * 1e3 / tokens},
  };
  sg_json_writer_begin_inline_object(writer);
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    sg_json_writer_key(writer, members[i].key);
    sg_json_writer_double(writer, members[i].value);
  }
  sg_json_writer_end_object(writer);
}
