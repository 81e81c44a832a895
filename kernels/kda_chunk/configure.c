// SPDX-License-Identifier: Apache-2.0

#include "kernels/kda_chunk/configure.h"

#include <string.h>

#include "kernels/common/kda_configure.h"
#include "kernels/kda_chunk/scratch_host.h"
#include "runtime/base/arena.h"
#include "runtime/base/checked.h"

static const sg_param_field_t fields[] = {
    SG_KDA_PARAM_FIELDS,
    SG_PARAM_FIELD(sg_kda_chunk_params_t, chunk_indices, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, chunk_offsets, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, decays, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, scores, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, factors, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, chunk_size, SG_PARAM_I32),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, split_count, SG_PARAM_I32),
};
_Static_assert(offsetof(sg_kda_chunk_params_t, kda) == 0,
               "SG_KDA_PARAM_FIELDS has offsets from the start");

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static const sg_kernel_t prepare_kernel = {
    .op = "kda_chunk",
    .name = "kda_chunk_prepare",
    .handle = kda_chunk_prepare_handle,
    .params_bytes = sizeof(sg_kda_chunk_params_t),
    .fields = fields,
    .field_count = FIELD_COUNT,
};

static const sg_kernel_t scan_kernel = {
    .op = "kda_chunk",
    .name = "kda_chunk_scan",
    .handle = kda_chunk_scan_handle,
    .params_bytes = sizeof(sg_kda_chunk_params_t),
    .fields = fields,
    .field_count = FIELD_COUNT,
};

// Offsets in bytes from the start of the workspace.
typedef struct workspace_t {
  size_t decays;
  size_t scores;
  size_t factors;
  size_t total_bytes;
} workspace_t;

static sg_status_t lay_out_workspace(const sg_kda_geometry_t* geometry,
                                     const sg_batch_capacity_t* capacity,
                                     workspace_t* out_workspace) {
  memset(out_workspace, 0, sizeof(*out_workspace));
  size_t rows;
  if (!sg_checked_mul((size_t)capacity->chunks, (size_t)geometry->value_heads,
                      &rows) ||
      !sg_checked_mul(rows, (size_t)geometry->chunk_size, &rows)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "kda_chunk workspace: %d chunks of %d tokens in %d "
                          "heads overflow",
                          capacity->chunks, geometry->chunk_size,
                          geometry->value_heads);
  }
  sg_arena_layout_t layout = {0};
  SG_RETURN_IF_ERROR(sg_arena_reserve(&layout, "kda_chunk decays", rows,
                                      sizeof(float) * (size_t)geometry->key_dim,
                                      &out_workspace->decays));
  SG_RETURN_IF_ERROR(sg_arena_reserve(&layout, "kda_chunk scores", rows,
                                      sizeof(float) * 2 * SG_KDA_BLOCK_TOKENS,
                                      &out_workspace->scores));
  SG_RETURN_IF_ERROR(sg_arena_reserve(&layout, "kda_chunk factors", rows,
                                      sizeof(sg_kda_row_factors_t),
                                      &out_workspace->factors));
  out_workspace->total_bytes = layout.total_bytes;
  return sg_status_ok();
}

sg_status_t sg_kda_chunk_supports(const sg_kda_geometry_t* geometry,
                                  const sg_target_t* target) {
  SG_RETURN_IF_ERROR(sg__kda_check_geometry("kda_chunk", geometry, target));
  if (geometry->chunk_size != 16 && geometry->chunk_size != 32 &&
      geometry->chunk_size != 64) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "kda_chunk: chunk_size %d, supported are 16, 32 and "
                          "64",
                          geometry->chunk_size);
  }
  return sg_status_ok();
}

static sg_status_t check_capacity(const sg_kda_geometry_t* geometry,
                                  const sg_batch_capacity_t* capacity) {
  const int64_t chunks = sg_chunk_capacity(
      capacity->tokens, capacity->sequences, geometry->chunk_size);
  if (capacity->tokens < 0 || capacity->sequences < 0 ||
      capacity->chunks != chunks) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "kda_chunk: capacity of %d chunks, %d tokens in %d "
                          "sequences make %lld",
                          capacity->chunks, capacity->tokens,
                          capacity->sequences, (long long)chunks);
  }
  return sg_status_ok();
}

sg_status_t sg_kda_chunk_workspace_bytes(const sg_kda_geometry_t* geometry,
                                         const sg_target_t* target,
                                         const sg_batch_capacity_t* capacity,
                                         size_t* out_bytes) {
  *out_bytes = 0;
  SG_RETURN_IF_ERROR(sg_kda_chunk_supports(geometry, target));
  SG_RETURN_IF_ERROR(check_capacity(geometry, capacity));
  workspace_t workspace;
  SG_RETURN_IF_ERROR(lay_out_workspace(geometry, capacity, &workspace));
  *out_bytes = workspace.total_bytes;
  return sg_status_ok();
}

static sg_status_t check_chunk_pointers(const sg_kda_args_t* args) {
  if (args->tables.chunk_indices == NULL ||
      args->tables.chunk_offsets == NULL) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "kda_chunk: chunk_indices or chunk_offsets is NULL");
  }
  if (args->workspace == NULL && args->capacity.chunks > 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "kda_chunk: workspace is NULL");
  }
  return sg_status_ok();
}

sg_status_t sg__kda_chunk_configure(const sg_target_t* target, int32_t layer,
                                    const sg_kda_args_t* args,
                                    sg_kda_chunk_plan_t* out_plan) {
  memset(out_plan, 0, sizeof(*out_plan));
  const sg_kda_geometry_t* geometry = args->geometry;
  SG_RETURN_IF_ERROR(sg_kda_chunk_supports(geometry, target));
  SG_RETURN_IF_ERROR(check_capacity(geometry, &args->capacity));
  SG_RETURN_IF_ERROR(sg__kda_check_args("kda_chunk", args));
  SG_RETURN_IF_ERROR(check_chunk_pointers(args));
  workspace_t workspace;
  SG_RETURN_IF_ERROR(lay_out_workspace(geometry, &args->capacity, &workspace));

  char* base = (char*)args->workspace;
  const int32_t splits =
      (int32_t)sg_ceil_div(geometry->value_dim, SG_KDA_CHUNK_SPLIT_COLUMNS);
  out_plan->params = (sg_kda_chunk_params_t){
      .kda = sg__kda_fill_params(args),
      .chunk_indices = args->tables.chunk_indices,
      .chunk_offsets = args->tables.chunk_offsets,
      .decays = (float*)(void*)(base + workspace.decays),
      .scores = (float*)(void*)(base + workspace.scores),
      .factors = (float*)(void*)(base + workspace.factors),
      .chunk_size = geometry->chunk_size,
      .split_count = splits,
  };
  out_plan->launches[0] = (sg_launch_t){
      .kernel = &prepare_kernel,
      .layer = layer,
      .block = 1,
      .shared_bytes = sizeof(sg_kda_prepare_scratch_t),
      .params = &out_plan->params,
  };
  SG_RETURN_IF_ERROR(sg__kda_grid(prepare_kernel.name, args->capacity.chunks,
                                  geometry->value_heads, /*splits=*/1,
                                  &out_plan->launches[0].grid));
  out_plan->launches[1] = (sg_launch_t){
      .kernel = &scan_kernel,
      .layer = layer,
      .block = 1,
      .shared_bytes = sizeof(sg_kda_scan_scratch_t),
      .params = &out_plan->params,
  };
  return sg__kda_grid(scan_kernel.name, args->capacity.sequences,
                      geometry->value_heads, splits,
                      &out_plan->launches[1].grid);
}
