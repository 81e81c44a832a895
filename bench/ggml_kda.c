// SPDX-License-Identifier: Apache-2.0

#include "bench/ggml_kda.h"

#include <ggml-cpu.h>
#include <ggml.h>
#include <math.h>
#include <stdlib.h>

enum {
  // Of each tensor: ggml's own contexts align to 16 bytes, at which vectors of
  // 64 cross a cache line each and the op takes twice as long.
  ALIGNMENT = 64,
};

struct ggml_kda_t {
  struct ggml_context* context;
  // The data of all tensors.
  char* arena;
  size_t arena_used;
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

static size_t whole_lines(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void place(ggml_kda_t* kda, struct ggml_tensor* tensor) {
  tensor->data = kda->arena + kda->arena_used;
  kda->arena_used += whole_lines(ggml_nbytes(tensor));
}

static struct ggml_tensor* tensor_of(ggml_kda_t* kda, int64_t width,
                                     const bench_case_t* shape, float low,
                                     float high) {
  struct ggml_tensor* tensor =
      ggml_new_tensor_4d(kda->context, GGML_TYPE_F32, width, shape->heads,
                         shape->tokens, shape->sequences);
  place(kda, tensor);
  fill(tensor, low, high);
  return tensor;
}

// Inputs of unit length and gates over the range of the lower bound.
static struct ggml_tensor* op_of(ggml_kda_t* kda, const bench_case_t* shape) {
  const float unit = sqrtf(3.0f / BENCH_DIM);
  struct ggml_tensor* state =
      ggml_new_tensor_4d(kda->context, GGML_TYPE_F32, BENCH_DIM, BENCH_DIM,
                         shape->heads, shape->sequences);
  place(kda, state);
  fill(state, -1.0f, 1.0f);
  struct ggml_tensor* op = ggml_gated_delta_net(
      kda->context, tensor_of(kda, BENCH_DIM, shape, -unit, unit),
      tensor_of(kda, BENCH_DIM, shape, -unit, unit),
      tensor_of(kda, BENCH_DIM, shape, -1.0f, 1.0f),
      tensor_of(kda, BENCH_DIM, shape, -5.0f, 0.0f),
      tensor_of(kda, 1, shape, 0.0f, 1.0f), state, /*K=*/1);
  place(kda, op);
  return op;
}

// Of all tensors: four inputs and the outputs of a token and head, betas, and
// the state before and after.
static size_t arena_bytes_of(const bench_case_t* shape) {
  const size_t rows =
      (size_t)shape->tokens * (size_t)shape->sequences * (size_t)shape->heads;
  const size_t states =
      (size_t)shape->sequences * (size_t)shape->heads * BENCH_DIM;
  return sizeof(float) * (BENCH_DIM * (5 * rows + 2 * states) + rows) +
         (size_t)8 * ALIGNMENT;
}

sg_status_t ggml_kda_create(const bench_case_t* shape, int32_t threads,
                            ggml_kda_t** out_kda) {
  *out_kda = NULL;
  ggml_kda_t* kda = calloc(1, sizeof(*kda));
  if (kda == NULL) return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "ggml_kda");
  const size_t bytes = arena_bytes_of(shape);
  kda->context = ggml_init(
      (struct ggml_init_params){.mem_size = (size_t)1 << 20, .no_alloc = true});
  kda->arena = aligned_alloc(ALIGNMENT, whole_lines(bytes));
  if (kda->context == NULL || kda->arena == NULL) {
    ggml_kda_destroy(kda);
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "%s: ggml's tensors",
                          shape->name);
  }
  kda->graph = ggml_new_graph(kda->context);
  ggml_build_forward_expand(kda->graph, op_of(kda, shape));
  kda->plan = ggml_graph_plan(kda->graph, threads, /*threadpool=*/NULL);
  kda->plan.work_data =
      aligned_alloc(ALIGNMENT, whole_lines(kda->plan.work_size + 1));
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
  free(kda->arena);
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
