// SPDX-License-Identifier: Apache-2.0

#include "bench/scaling.h"

#include <stdio.h>
#include <string.h>

#include "bench/samples.h"
#include "bench/timing.h"

enum {
  LONGEST = SCALING_CASES - 1,
  // Tokens of a case in each turn, at least.
  TURN_TOKENS = 4096,
};

typedef struct scaling_t {
  kda_layer_t layers[SCALING_CASES];
  samples_t token_us[SCALING_CASES];
  samples_t ratios[SCALING_CASES];
} scaling_t;

static sg_status_t initialize(const bench_case_t cases[SCALING_CASES],
                              int32_t repeats, scaling_t* scaling) {
  for (int32_t i = 0; i < SCALING_CASES; ++i) {
    SG_RETURN_IF_ERROR(
        samples_initialize((size_t)repeats, &scaling->token_us[i]));
    SG_RETURN_IF_ERROR(
        samples_initialize((size_t)repeats, &scaling->ratios[i]));
    SG_RETURN_IF_ERROR(kda_layer_initialize(&cases[i], &scaling->layers[i]));
  }
  return sg_status_ok();
}

static void deinitialize(scaling_t* scaling) {
  for (int32_t i = 0; i < SCALING_CASES; ++i) {
    samples_deinitialize(&scaling->token_us[i]);
    samples_deinitialize(&scaling->ratios[i]);
    kda_layer_deinitialize(&scaling->layers[i]);
  }
}

// Microseconds a token, after a run that is not counted.
static sg_status_t time_turn(const kda_layer_t* layer, double* out_token_us) {
  const int32_t tokens = bench_case_tokens(&layer->shape);
  const int32_t runs = (TURN_TOKENS + tokens - 1) / tokens;
  SG_RETURN_IF_ERROR(kda_layer_run(layer));
  const double start = timing_now_ms();
  for (int32_t i = 0; i < runs; ++i) SG_RETURN_IF_ERROR(kda_layer_run(layer));
  *out_token_us = (timing_now_ms() - start) * 1e3 / runs / tokens;
  return sg_status_ok();
}

static sg_status_t measure(int32_t repeats, scaling_t* scaling) {
  for (int32_t turn = 0; turn < repeats; ++turn) {
    double token_us[SCALING_CASES];
    for (int32_t i = 0; i < SCALING_CASES; ++i) {
      SG_RETURN_IF_ERROR(time_turn(&scaling->layers[i], &token_us[i]));
    }
    for (int32_t i = 0; i < SCALING_CASES; ++i) {
      samples_add(&scaling->token_us[i], token_us[i]);
      samples_add(&scaling->ratios[i], token_us[i] / token_us[LONGEST]);
    }
  }
  return sg_status_ok();
}

static void report(scaling_t* scaling, sg_json_writer_t* writer) {
  printf("%-10s %9s %9s %9s %9s\n", "case", "us/token", "ratio", "p10", "p90");
  sg_json_writer_key(writer, "scaling");
  sg_json_writer_begin_array(writer);
  for (int32_t i = 0; i < SCALING_CASES; ++i) {
    const sample_summary_t time = samples_summarize(&scaling->token_us[i]);
    const sample_summary_t ratio = samples_summarize(&scaling->ratios[i]);
    const char* name = scaling->layers[i].shape.name;
    printf("%-10s %9.2f %9.3f %9.3f %9.3f\n", name, time.median, ratio.median,
           ratio.p10, ratio.p90);
    sg_json_writer_begin_inline_object(writer);
    sg_json_writer_key(writer, "name");
    sg_json_writer_string(writer, name);
    sg_json_writer_key(writer, "token_us");
    sg_json_writer_double(writer, time.median);
    sg_json_writer_key(writer, "ratio");
    sg_json_writer_double(writer, ratio.median);
    sg_json_writer_key(writer, "p10");
    sg_json_writer_double(writer, ratio.p10);
    sg_json_writer_key(writer, "p90");
    sg_json_writer_double(writer, ratio.p90);
    sg_json_writer_end_object(writer);
  }
  sg_json_writer_end_array(writer);
}

sg_status_t scaling_run(const bench_case_t cases[SCALING_CASES],
                        int32_t repeats, sg_json_writer_t* writer) {
  scaling_t scaling;
  memset(&scaling, 0, sizeof(scaling));
  sg_status_t status = initialize(cases, repeats, &scaling);
  if (sg_status_is_ok(status)) status = measure(repeats, &scaling);
  if (sg_status_is_ok(status)) report(&scaling, writer);
  deinitialize(&scaling);
  return status;
}
