// SPDX-License-Identifier: Apache-2.0

#include "bench/ggml_kda.h"

#include <ggml-cpu.h>
#include <ggml.h>
#include <math.h>
#include <stdlib.h>

struct ggml_kda_t {
  struct ggml_context* context;
  struct ggml_cgraph* graph;
  struct ggml_cplan plan;
};

const char* ggml_kda_version(void) { return ggml_version(); }

// Uniform in [low, high), by splitmix64.
static void fill(struct ggml_tensor* tensor, float low, float high) {
  float* data = tensor->data;
  const int64_t count = ggml_nelements(tensor);
  uint64_t stream = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t z = stream += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    data[i] = low + (high - low) * (float)((z ^ (z >> 31)) >> 40) * 0x1p-24f;
  }
}

static struct ggml_tensor* tensor_of(struct ggml_context* context,
                                     int64_t width, int64_t rows,
                                     const bench_case_t* shape, float low,
                                     float high) {
  struct ggml_tensor* tensor = ggml_new_tensor_4d(
      context, GGML_TYPE_F32, width, rows, shape->tokens, shape->sequences);
  fill(tensor, low, high);
  return tensor;
}

// Inputs of unit length and gates over the range of the lower bound.
static struct ggml_tensor* op_of(struct ggml_context* context,
                                 const bench_case_t* shape) {
  const float unit = sqrtf(3.0f / BENCH_DIM);
  struct ggml_tensor* state =
      ggml_new_tensor_4d(context, GGML_TYPE_F32, BENCH_DIM, BENCH_DIM,
                         BENCH_HEADS, shape->sequences);
  fill(state, -1.0f, 1.0f);
  return ggml_gated_delta_net(
      context, tensor_of(context, BENCH_DIM, BENCH_HEADS, shape, -unit, unit),
      tensor_of(context, BENCH_DIM, BENCH_HEADS, shape, -unit, unit),
      tensor_of(context, BENCH_DIM, BENCH_HEADS, shape, -1.0f, 1.0f),
      tensor_of(context, BENCH_DIM, BENCH_HEADS, shape, -5.0f, 0.0f),
      tensor_of(context, 1, BENCH_HEADS, shape, 0.0f, 1.0f), state,
      /*K=*/1);
}

sg_status_t ggml_kda_create(const bench_case_t* shape, int32_t threads,
                            ggml_kda_t** out_kda) {
  *out_kda = NULL;
  const size_t rows =
      (size_t)shape->tokens * (size_t)shape->sequences * BENCH_HEADS;
  const size_t states = (size_t)shape->sequences * BENCH_HEADS * BENCH_DIM;
  ggml_kda_t* kda = calloc(1, sizeof(*kda));
  if (kda == NULL) return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "ggml_kda");
  // Five inputs, the output, the state twice, and ggml's own structures.
  kda->context = ggml_init((struct ggml_init_params){
      .mem_size = sizeof(float) * BENCH_DIM * (6 * rows + 2 * states) +
                  ((size_t)16 << 20)});
  if (kda->context == NULL) {
    ggml_kda_destroy(kda);
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "%s: ggml_init",
                          shape->name);
  }
  kda->graph = ggml_new_graph(kda->context);
  ggml_build_forward_expand(kda->graph, op_of(kda->context, shape));
  kda->plan = ggml_graph_plan(kda->graph, threads, /*threadpool=*/NULL);
  kda->plan.work_data = malloc(kda->plan.work_size + 1);
  if (kda->plan.work_data == NULL) {
    ggml_kda_destroy(kda);
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "%s: ggml's work buffer",
                          shape->name);
  }
  *out_kda = kda;
  return sg_status_ok();
}

void ggml_kda_destroy(ggml_kda_t* kda) {
  if (kda == NULL) return;
  free(kda->plan.work_data);
  ggml_free(kda->context);
  free(kda);
}

sg_status_t ggml_kda_run(ggml_kda_t* kda) {
  const enum ggml_status status = ggml_graph_compute(kda->graph, &kda->plan);
  if (status != GGML_STATUS_SUCCESS) {
    return sg_status_make(SG_STATUS_INTERNAL, "ggml_graph_compute: %d",
                          (int)status);
  }
  return sg_status_ok();
}
