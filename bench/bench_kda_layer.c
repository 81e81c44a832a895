// SPDX-License-Identifier: Apache-2.0
//
// bench_kda_layer [--threads N] [--repeats N] [--cases A,B,...] [--scaling N]
//                 [--out FILE]
//
// Times the op of one KDA layer on a stream of the host flavour, prefills of
// many lengths and decodes, each checked against the recurrence in double
// precision first. A build that was given a ggml times its op as well, in
// turns with ours. Then, with --scaling, N turns of what scaling.h says. Prints
// tables; FILE gets the same as JSON.

#include <stdio.h>
#include <string.h>

#include "bench/ggml_kda.h"
#include "bench/kda_layer.h"
#include "bench/options.h"
#include "bench/samples.h"
#include "bench/scaling.h"
#include "bench/timing.h"
#include "kernels/common/host_isa.h"
#include "runtime/hip/error.h"
#include "runtime/hip_host/hip_host.h"

enum { HEADS = 32 };

// The last ones are those of scaling.h too.
static const bench_case_t all_cases[] = {
    BENCH_CASE("decode-1", HEADS, 1, 1),
    BENCH_CASE("decode-8", HEADS, 8, 1),
    BENCH_CASE("decode-64", HEADS, 64, 1),
    BENCH_CASE("1x64", HEADS, 1, 64),
    BENCH_CASE("1x256", HEADS, 1, 256),
    BENCH_CASE("1x512", HEADS, 1, 512),
    BENCH_CASE("1x1024", HEADS, 1, 1024),
    BENCH_CASE("4x256", HEADS, 4, 256),
    BENCH_CASE("1x4096", HEADS, 1, 4096),
    BENCH_CASE("1x16384", HEADS, 1, 16384),
};

enum {
  CASE_COUNT = sizeof(all_cases) / sizeof(all_cases[0]),
  // Runs a repeat of cases that take less than a few milliseconds.
  SHORT_RUNS = 10,
};

typedef struct options_t {
  int32_t threads;
  int32_t repeats;
  // 0 for none.
  int32_t scaling_turns;
  bench_options_t common;
} options_t;

typedef struct result_t {
  sample_summary_t ours;
  sample_summary_t ggml;
} result_t;

static sg_status_t parse_options(int count, char** words,
                                 options_t* out_options) {
  *out_options = (options_t){.threads = 2, .repeats = 15};
  const bench_count_t counts[] = {
      {"--threads", 256, &out_options->threads},
      {"--repeats", BENCH_REPEATS_MAX, &out_options->repeats},
      {"--scaling", BENCH_REPEATS_MAX, &out_options->scaling_turns},
  };
  return bench_options_parse(
      count, words,
      "bench_kda_layer [--threads N] [--repeats N] [--cases A,B,...] "
      "[--scaling N] [--out FILE]",
      counts, sizeof(counts) / sizeof(counts[0]), &out_options->common);
}

// One run that is not counted, which wakes threads, then |runs| that are. Ours
// where |ggml| is NULL.
static sg_status_t time_runs(const kda_layer_t* layer, ggml_kda_t* ggml,
                             int32_t runs, samples_t* samples) {
  timing_rest();
  for (int32_t i = 0; i <= runs; ++i) {
    const double start = timing_now_ms();
    SG_RETURN_IF_ERROR(ggml == NULL ? kda_layer_run(layer)
                                    : ggml_kda_run(ggml));
    if (i > 0) samples_add(samples, timing_now_ms() - start);
  }
  return sg_status_ok();
}

static sg_status_t measure(const kda_layer_t* layer, ggml_kda_t* ggml,
                           int32_t repeats, result_t* out_result) {
  const int32_t runs = bench_case_tokens(&layer->shape) <= 64 ? SHORT_RUNS : 1;
  samples_t ours, theirs;
  const size_t capacity = (size_t)repeats * (size_t)runs;
  sg_status_t status = samples_initialize(capacity, &ours);
  SG_RETURN_IF_ERROR(status);
  status = samples_initialize(capacity, &theirs);
  for (int32_t i = 0; i < repeats && sg_status_is_ok(status); ++i) {
    status = time_runs(layer, NULL, runs, &ours);
    if (ggml != NULL && sg_status_is_ok(status)) {
      status = time_runs(layer, ggml, runs, &theirs);
    }
  }
  if (sg_status_is_ok(status)) {
    out_result->ours = samples_summarize(&ours);
    if (ggml != NULL) out_result->ggml = samples_summarize(&theirs);
  }
  samples_deinitialize(&ours);
  samples_deinitialize(&theirs);
  return status;
}

static sg_status_t run_case(const bench_case_t* shape, const options_t* options,
                            result_t* out_result) {
  memset(out_result, 0, sizeof(*out_result));
  kda_layer_t layer;
  ggml_kda_t* ggml = NULL;
  sg_status_t status = kda_layer_initialize(shape, &layer);
  if (sg_status_is_ok(status)) status = kda_layer_check(&layer);
  if (sg_status_is_ok(status) && ggml_kda_version() != NULL) {
    status = ggml_kda_create(shape, options->threads, &ggml);
  }
  if (sg_status_is_ok(status)) {
    status = measure(&layer, ggml, options->repeats, out_result);
  }
  ggml_kda_destroy(ggml);
  kda_layer_deinitialize(&layer);
  return status;
}

static void print_case(const bench_case_t* shape, const result_t* result) {
  const sample_summary_t* ours = &result->ours;
  printf("%-10s %9.3f %9.3f %9.3f %9.3f %9.2f", shape->name, ours->median,
         ours->min, ours->p10, ours->p90,
         ours->median * 1e3 / bench_case_tokens(shape));
  if (ggml_kda_version() != NULL) {
    printf(" %9.3f %6.2f", result->ggml.median,
           result->ggml.median / ours->median);
  }
  printf("\n");
  (void)fflush(stdout);
}

static void write_case(sg_json_writer_t* writer, const bench_case_t* shape,
                       const result_t* result) {
  const double tokens = bench_case_tokens(shape);
  sg_json_writer_begin_object(writer);
  sg_json_writer_key(writer, "name");
  sg_json_writer_string(writer, shape->name);
  sg_json_writer_key(writer, "op");
  sg_json_writer_string(
      writer, bench_case_is_decode(shape) ? "kda_recurrent" : "kda_chunk");
  sg_json_writer_key(writer, "sequences");
  sg_json_writer_int64(writer, shape->sequences);
  sg_json_writer_key(writer, "tokens");
  sg_json_writer_int64(writer, shape->tokens);
  sg_json_writer_key(writer, "stepgraph");
  samples_write(writer, &result->ours, tokens);
  if (ggml_kda_version() != NULL) {
    sg_json_writer_key(writer, "ggml");
    samples_write(writer, &result->ggml, tokens);
    sg_json_writer_key(writer, "speedup");
    sg_json_writer_double(writer, result->ggml.median / result->ours.median);
  }
  sg_json_writer_end_object(writer);
}

// The processor as Linux names it.
static void read_cpu_model(char* model, size_t bytes) {
  (void)snprintf(model, bytes, "unknown");
  FILE* file = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    const char* colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    line[strcspn(line, "\n")] = '\0';
    (void)snprintf(model, bytes, "%s", colon + 2);
    break;
  }
  if (file != NULL) (void)fclose(file);
}

static void write_head(sg_json_writer_t* writer, const options_t* options) {
  char model[256];
  read_cpu_model(model, sizeof(model));
  sg_json_writer_key(writer, "version");
  sg_json_writer_int64(writer, 1);
  sg_json_writer_key(writer, "benchmark");
  sg_json_writer_string(writer, "kda_layer");
  sg_json_writer_key(writer, "cpu");
  sg_json_writer_string(writer, model);
  sg_json_writer_key(writer, "instruction_set");
  sg_json_writer_string(writer, sg__host_isa_name(sg__host_isa_best()));
  sg_json_writer_key(writer, "threads");
  sg_json_writer_int64(writer, options->threads);
  sg_json_writer_key(writer, "repeats");
  sg_json_writer_int64(writer, options->repeats);
  sg_json_writer_key(writer, "heads");
  sg_json_writer_int64(writer, HEADS);
  sg_json_writer_key(writer, "key_dim");
  sg_json_writer_int64(writer, BENCH_DIM);
  sg_json_writer_key(writer, "value_dim");
  sg_json_writer_int64(writer, BENCH_DIM);
  sg_json_writer_key(writer, "ggml_version");
  sg_json_writer_string(writer, ggml_kda_version());
}

static sg_status_t run_cases(const options_t* options,
                             sg_json_writer_t* writer) {
  printf("%-10s %9s %9s %9s %9s %9s", "case", "median ms", "min", "p10", "p90",
         "us/token");
  printf(ggml_kda_version() == NULL ? "\n" : " %9s %6s\n", "ggml ms", "ratio");
  sg_json_writer_begin_object(writer);
  write_head(writer, options);
  sg_json_writer_key(writer, "cases");
  sg_json_writer_begin_array(writer);
  for (size_t i = 0; i < CASE_COUNT; ++i) {
    if (!bench_options_has_case(&options->common, all_cases[i].name)) continue;
    result_t result;
    SG_RETURN_IF_ERROR(run_case(&all_cases[i], options, &result));
    print_case(&all_cases[i], &result);
    write_case(writer, &all_cases[i], &result);
  }
  sg_json_writer_end_array(writer);
  if (options->scaling_turns > 0) {
    SG_RETURN_IF_ERROR(scaling_run(&all_cases[CASE_COUNT - SCALING_CASES],
                                   options->scaling_turns, writer));
  }
  sg_json_writer_end_object(writer);
  return sg_json_writer_finish(writer);
}

int main(int count, char** words) {
  options_t options;
  sg_json_writer_t writer;
  sg_json_writer_initialize_buffer(&writer, sg_allocator_system(),
                                   /*indent_spaces=*/2);
  sg_status_t status = parse_options(count, words, &options);
  if (sg_status_is_ok(status)) {
    status = sg_status_from_hip(sg_hip_host_set_worker_count(options.threads),
                                "sg_hip_host_set_worker_count");
  }
  if (sg_status_is_ok(status)) status = run_cases(&options, &writer);
  return bench_finish("bench_kda_layer", &options.common, status, &writer);
}
