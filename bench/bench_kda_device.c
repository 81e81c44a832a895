// SPDX-License-Identifier: Apache-2.0
//
// bench_kda_device [--repeats N] [--cases A,B,...] [--out FILE]
//
// Times the op of one KDA layer on a GPU, captured in a graph and measured with
// events: prefills whole and by kernel, and decodes. Each case is checked
// against the recurrence in double precision first. Prints a table; FILE gets
// the same as JSON.

#include <stdio.h>
#include <string.h>

#include "bench/kda_layer.h"
#include "bench/options.h"
#include "bench/samples.h"
#include "kernels/kda_chunk/configure.h"
#include "runtime/hip/error.h"

#define USAGE "bench_kda_device [--repeats N] [--cases A,B,...] [--out FILE]"

enum {
  // Runs of the op that a graph holds, so that what lies between two graphs
  // does not count.
  GRAPH_RUNS = 20,
  RAGGED_SEQUENCES = 128,
  MEASURES = 3,
};

static const int32_t mixed_lens[] = {1300, 547, 2048, 963, 271, 3063};
static int32_t ragged_lens[RAGGED_SEQUENCES];

static const bench_case_t all_cases[] = {
    BENCH_CASE("1x8192-h64", 64, 1, 8192),
    {.name = "mixed-h64", .heads = 64, .sequences = 6, .lens = mixed_lens},
    BENCH_CASE("8x1024-h64", 64, 8, 1024),
    BENCH_CASE("1x8192-h32", 32, 1, 8192),
    BENCH_CASE("8x1024-h32", 32, 8, 1024),
    BENCH_CASE("32x256-h32", 32, 32, 256),
    {.name = "ragged-h32",
     .heads = 32,
     .sequences = RAGGED_SEQUENCES,
     .lens = ragged_lens},
    BENCH_CASE("1x2048-h32", 32, 1, 2048),
    BENCH_CASE("1x512-h32", 32, 1, 512),
    {.name = "1x512-h32-in-8192x128",
     .heads = 32,
     .sequences = 1,
     .tokens = 512,
     .spare_tokens = 8192 - 512,
     .spare_sequences = 127},
    BENCH_CASE("1x8192-h12", 12, 1, 8192),
    BENCH_CASE("1x8192-h8", 8, 1, 8192),
    BENCH_CASE("decode-1-h32", 32, 1, 1),
    BENCH_CASE("decode-8-h32", 32, 8, 1),
    BENCH_CASE("decode-64-h32", 32, 64, 1),
    BENCH_CASE("decode-256-h32", 32, 256, 1),
    BENCH_CASE("decode-256-h64", 64, 256, 1),
};

enum { CASE_COUNT = sizeof(all_cases) / sizeof(all_cases[0]) };

// What a graph holds: the op, or one kernel of a prefill.
typedef enum part_t { PART_OP = 0, PART_PREPARE, PART_SCAN } part_t;

static const char* const part_names[MEASURES] = {"op", "prepare", "scan"};

typedef struct result_t {
  sample_summary_t part[MEASURES];
} result_t;

static sg_status_t enqueue_part(const kda_layer_t* layer, part_t part) {
  if (part == PART_OP) return kda_layer_enqueue(layer);
  sg_kda_chunk_plan_t plan;
  SG_RETURN_IF_ERROR(sg__kda_chunk_configure(layer->where.target, /*layer=*/0,
                                             &layer->args, &plan));
  return sg_launch_enqueue(&layer->where,
                           &plan.launches[part == PART_PREPARE ? 0 : 1]);
}

static sg_status_t capture(const kda_layer_t* layer, part_t part,
                           hipGraphExec_t* out_exec) {
  hipGraph_t graph = NULL;
  SG_RETURN_IF_HIP_ERROR(hipStreamBeginCapture, layer->where.stream,
                         hipStreamCaptureModeThreadLocal);
  sg_status_t status = sg_status_ok();
  for (int32_t i = 0; i < GRAPH_RUNS && sg_status_is_ok(status); ++i) {
    status = enqueue_part(layer, part);
  }
  const hipError_t error = hipStreamEndCapture(layer->where.stream, &graph);
  if (sg_status_is_ok(status)) {
    status = sg_status_from_hip(error, "hipStreamEndCapture");
  }
  if (sg_status_is_ok(status)) {
    status =
        sg_status_from_hip(hipGraphInstantiate(out_exec, graph, NULL, NULL, 0),
                           "hipGraphInstantiate");
  }
  if (graph != NULL) (void)hipGraphDestroy(graph);
  return status;
}

static sg_status_t time_replay(hipGraphExec_t exec, hipStream_t stream,
                               hipEvent_t start, hipEvent_t end,
                               float* out_ms) {
  SG_RETURN_IF_HIP_ERROR(hipEventRecord, start, stream);
  SG_RETURN_IF_HIP_ERROR(hipGraphLaunch, exec, stream);
  SG_RETURN_IF_HIP_ERROR(hipEventRecord, end, stream);
  SG_RETURN_IF_HIP_ERROR(hipEventSynchronize, end);
  SG_RETURN_IF_HIP_ERROR(hipEventElapsedTime, out_ms, start, end);
  return sg_status_ok();
}

// Replays a graph |repeats| times after one that does not count.
static sg_status_t time_replays(const kda_layer_t* layer, hipGraphExec_t exec,
                                int32_t repeats, samples_t* samples) {
  hipEvent_t start, end;
  SG_RETURN_IF_HIP_ERROR(hipEventCreate, &start);
  SG_RETURN_IF_HIP_ERROR(hipEventCreate, &end);
  sg_status_t status = sg_status_ok();
  for (int32_t i = 0; i <= repeats && sg_status_is_ok(status); ++i) {
    float ms = 0.0f;
    status = time_replay(exec, layer->where.stream, start, end, &ms);
    if (i > 0) samples_add(samples, (double)ms / GRAPH_RUNS);
  }
  (void)hipEventDestroy(start);
  (void)hipEventDestroy(end);
  return status;
}

static sg_status_t measure(const kda_layer_t* layer, part_t part,
                           int32_t repeats, sample_summary_t* out_summary) {
  hipGraphExec_t exec = NULL;
  samples_t samples;
  SG_RETURN_IF_ERROR(samples_initialize((size_t)repeats, &samples));
  sg_status_t status = capture(layer, part, &exec);
  if (sg_status_is_ok(status)) {
    status = time_replays(layer, exec, repeats, &samples);
  }
  if (sg_status_is_ok(status)) *out_summary = samples_summarize(&samples);
  if (exec != NULL) (void)hipGraphExecDestroy(exec);
  samples_deinitialize(&samples);
  return status;
}

static int32_t part_count(const bench_case_t* shape) {
  return bench_case_is_decode(shape) ? 1 : MEASURES;
}

static sg_status_t run_case(const bench_case_t* shape, int32_t repeats,
                            result_t* out_result) {
  memset(out_result, 0, sizeof(*out_result));
  kda_layer_t layer;
  sg_status_t status = kda_layer_initialize(shape, &layer);
  if (sg_status_is_ok(status)) status = kda_layer_check(&layer);
  for (int32_t i = 0; i < part_count(shape) && sg_status_is_ok(status); ++i) {
    status = measure(&layer, (part_t)i, repeats, &out_result->part[i]);
  }
  kda_layer_deinitialize(&layer);
  return status;
}

static void print_case(const bench_case_t* shape, const result_t* result) {
  const sample_summary_t* op = &result->part[PART_OP];
  printf("%-22s %8.1f %8.1f %8.1f %8.1f", shape->name, op->median * 1e3,
         op->min * 1e3, op->p10 * 1e3, op->p90 * 1e3);
  for (int32_t i = 1; i < part_count(shape); ++i) {
    printf(" %8.1f", result->part[i].median * 1e3);
  }
  printf("\n");
  (void)fflush(stdout);
}

static void write_case(sg_json_writer_t* writer, const bench_case_t* shape,
                       const result_t* result) {
  sg_json_writer_begin_object(writer);
  sg_json_writer_key(writer, "name");
  sg_json_writer_string(writer, shape->name);
  sg_json_writer_key(writer, "heads");
  sg_json_writer_int64(writer, shape->heads);
  sg_json_writer_key(writer, "sequences");
  sg_json_writer_int64(writer, shape->sequences);
  sg_json_writer_key(writer, "tokens");
  sg_json_writer_int64(writer, bench_case_tokens(shape));
  for (int32_t i = 0; i < part_count(shape); ++i) {
    sg_json_writer_key(writer, part_names[i]);
    samples_write(writer, &result->part[i], bench_case_tokens(shape));
  }
  sg_json_writer_end_object(writer);
}

static sg_status_t write_head(sg_json_writer_t* writer, int32_t repeats) {
  hipDeviceProp_t properties;
  int driver = 0, runtime = 0;
  SG_RETURN_IF_HIP_ERROR(hipGetDeviceProperties, &properties, 0);
  SG_RETURN_IF_HIP_ERROR(hipDriverGetVersion, &driver);
  SG_RETURN_IF_HIP_ERROR(hipRuntimeGetVersion, &runtime);
  const struct {
    const char* key;
    int64_t value;
  } numbers[] = {
      {"driver", driver},     {"runtime", runtime},
      {"repeats", repeats},   {"runs_a_repeat", GRAPH_RUNS},
      {"key_dim", BENCH_DIM}, {"value_dim", BENCH_DIM},
  };
  sg_json_writer_key(writer, "version");
  sg_json_writer_int64(writer, 1);
  sg_json_writer_key(writer, "benchmark");
  sg_json_writer_string(writer, "kda_device");
  sg_json_writer_key(writer, "device");
  sg_json_writer_string(writer, properties.name);
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    sg_json_writer_key(writer, numbers[i].key);
    sg_json_writer_int64(writer, numbers[i].value);
  }
  return sg_status_ok();
}

static sg_status_t run_cases(const bench_options_t* options, int32_t repeats,
                             sg_json_writer_t* writer) {
  printf("%-22s %8s %8s %8s %8s %8s %8s\n", "case, us", "median", "min", "p10",
         "p90", "prepare", "scan");
  sg_json_writer_begin_object(writer);
  SG_RETURN_IF_ERROR(write_head(writer, repeats));
  sg_json_writer_key(writer, "cases");
  sg_json_writer_begin_array(writer);
  for (size_t i = 0; i < CASE_COUNT; ++i) {
    if (!bench_options_has_case(options, all_cases[i].name)) continue;
    result_t result;
    SG_RETURN_IF_ERROR(run_case(&all_cases[i], repeats, &result));
    print_case(&all_cases[i], &result);
    write_case(writer, &all_cases[i], &result);
  }
  sg_json_writer_end_array(writer);
  sg_json_writer_end_object(writer);
  return sg_json_writer_finish(writer);
}

int main(int count, char** words) {
  int32_t repeats = 15;
  const bench_count_t counts[] = {
      {"--repeats", BENCH_REPEATS_MAX, &repeats},
  };
  bench_options_t options;
  sg_json_writer_t writer;
  sg_json_writer_initialize_buffer(&writer, sg_allocator_system(),
                                   /*indent_spaces=*/2);
  for (int32_t i = 0; i < RAGGED_SEQUENCES; ++i) {
    // The sequence of one token comes last: first it would be a decode.
    ragged_lens[i] = 37 * (RAGGED_SEQUENCES - 1 - i) % 120 + 1;
  }
  sg_status_t status =
      bench_options_parse(count, words, USAGE, counts,
                          sizeof(counts) / sizeof(counts[0]), &options);
  if (sg_status_is_ok(status)) status = run_cases(&options, repeats, &writer);
  return bench_finish("bench_kda_device", &options, status, &writer);
}
