// SPDX-License-Identifier: Apache-2.0

#include "kernels/kda_chunk/configure.h"

#include <string.h>

#include "kernels/common/kda_configure.h"
#include "kernels/kda_chunk/panel.h"
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
    SG_PARAM_FIELD(sg_kda_chunk_params_t, panels, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, chunk_size, SG_PARAM_I32),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, split_count, SG_PARAM_I32),
};
_Static_assert(offsetof(sg_kda_chunk_params_t, kda) == 0,
               "SG_KDA_PARAM_FIELDS has offsets from the start");

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

#define KERNEL(kernel, accessor)                                     \
  {                                                                  \
    .op = "kda_chunk", .name = (kernel), .handle = (accessor),       \
    .params_bytes = sizeof(sg_kda_chunk_params_t), .fields = fields, \
    .field_count = FIELD_COUNT,                                      \
  }
#define PREPARE(variant) \
  KERNEL("kda_chunk_prepare", kda_chunk_prepare_##variant##_handle),
#define SCAN(variant) \
  KERNEL("kda_chunk_scan", kda_chunk_scan_##variant##_handle),

static const sg_kernel_t prepare_kernels[SG_KDA_CHUNK_VARIANT_COUNT] = {
    SG_KDA_CHUNK_VARIANTS(PREPARE)};
static const sg_kernel_t scan_kernels[SG_KDA_CHUNK_VARIANT_COUNT] = {
    SG_KDA_CHUNK_VARIANTS(SCAN)};

static int32_t variant_of(const sg_kda_geometry_t* geometry) {
  const int32_t key_class = sg__kda_key_class(geometry->key_dim);
  return geometry->activation_dtype == SG_DTYPE_BF16
             ? key_class
             : SG_KDA_KEY_CLASSES + key_class;
}

// Offsets in bytes from the start of the workspace: on the host decays, scores
// and factors, on GPUs panels.
typedef struct workspace_t {
  size_t decays;
  size_t scores;
  size_t factors;
  size_t panels;
  size_t total_bytes;
} workspace_t;

static int32_t element_bytes_of(const sg_kda_geometry_t* geometry) {
  return geometry->activation_dtype == SG_DTYPE_BF16 ? 2 : 4;
}

static int32_t key_tiles_of(const sg_kda_geometry_t* geometry) {
  return SG_KDA_KEY_TILES(sg__kda_key_class(geometry->key_dim));
}

static sg_status_t lay_out_host(const sg_kda_geometry_t* geometry, size_t rows,
                                workspace_t* out_workspace) {
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

static sg_status_t lay_out_device(const sg_kda_geometry_t* geometry,
                                  size_t rows, workspace_t* out_workspace) {
  const int32_t panel_bytes =
      SG_KDA_PANEL_BYTES(key_tiles_of(geometry), element_bytes_of(geometry));
  sg_arena_layout_t layout = {0};
  SG_RETURN_IF_ERROR(
      sg_arena_reserve(&layout, "kda_chunk panels", rows / SG_KDA_BLOCK_TOKENS,
                       (size_t)panel_bytes, &out_workspace->panels));
  out_workspace->total_bytes = layout.total_bytes;
  return sg_status_ok();
}

static sg_status_t lay_out_workspace(const sg_target_t* target,
                                     const sg_kda_geometry_t* geometry,
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
  return target->flavour == SG_FLAVOUR_HOST
             ? lay_out_host(geometry, rows, out_workspace)
             : lay_out_device(geometry, rows, out_workspace);
}

sg_status_t sg_kda_chunk_supports(const sg_kda_geometry_t* geometry,
                                  const sg_target_t* target) {
  (void)target;
  SG_RETURN_IF_ERROR(sg__kda_check_geometry("kda_chunk", geometry));
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
  SG_RETURN_IF_ERROR(lay_out_workspace(target, geometry, capacity, &workspace));
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

static sg_kda_chunk_params_t fill_params(const sg_kda_args_t* args,
                                         const workspace_t* workspace,
                                         int32_t split_count) {
  char* base = (char*)args->workspace;
  return (sg_kda_chunk_params_t){
      .kda = sg__kda_fill_params(args),
      .chunk_indices = args->tables.chunk_indices,
      .chunk_offsets = args->tables.chunk_offsets,
      .decays = (float*)(void*)(base + workspace->decays),
      .scores = (float*)(void*)(base + workspace->scores),
      .factors = (float*)(void*)(base + workspace->factors),
      .panels = (unsigned char*)(base + workspace->panels),
      .chunk_size = args->geometry->chunk_size,
      .split_count = split_count,
  };
}

static void configure_host(sg_launch_t launches[SG_KDA_CHUNK_LAUNCHES]) {
  launches[0].block = launches[1].block = 1;
  launches[0].shared_bytes = sizeof(sg_kda_prepare_scratch_t);
  launches[1].shared_bytes = sizeof(sg_kda_scan_scratch_t);
}

// The grids hold one block a work item so far.
static void configure_device(const sg_target_t* target,
                             const sg_kda_geometry_t* geometry,
                             sg_launch_t launches[SG_KDA_CHUNK_LAUNCHES]) {
  const int32_t tiles = key_tiles_of(geometry);
  const int32_t bytes = element_bytes_of(geometry);
  const int32_t threads = tiles * SG_KDA_TILE;
  launches[0].block = (uint32_t)threads;
  launches[0].shared_bytes = (uint32_t)SG_KDA_PREPARE_SHARED_BYTES(
      tiles, bytes, threads / target->wave_size);
  launches[0].grid =
      sg__kda_persistent_grid(target, launches[0].grid, SG_KDA_PREPARE_GRID);
  const int32_t stages = target->flavour == SG_FLAVOUR_NVIDIA
                             ? SG_KDA_SCAN_STAGES_NVIDIA
                             : SG_KDA_SCAN_STAGES_AMD;
  launches[1].block = (uint32_t)(SG_KDA_SCAN_WAVES * target->wave_size);
  launches[1].shared_bytes =
      (uint32_t)(stages * SG_KDA_PANEL_BYTES(tiles, bytes));
  launches[1].grid =
      sg__kda_persistent_grid(target, launches[1].grid, SG_KDA_SCAN_GRID);
}

sg_status_t sg__kda_chunk_configure(const sg_target_t* target, int32_t layer,
                                    const sg_kda_args_t* args,
                                    sg_kda_chunk_plan_t* out_plan) {
  memset(out_plan, 0, sizeof(*out_plan));
  const sg_kda_geometry_t* geometry = args->geometry;
  SG_RETURN_IF_ERROR(sg_kda_chunk_supports(geometry, target));
  SG_RETURN_IF_ERROR(check_capacity(geometry, &args->capacity));
  SG_RETURN_IF_ERROR(sg__kda_check_args("kda_chunk", args, target));
  SG_RETURN_IF_ERROR(check_chunk_pointers(args));
  workspace_t workspace = {0};
  SG_RETURN_IF_ERROR(
      lay_out_workspace(target, geometry, &args->capacity, &workspace));

  const bool on_host = target->flavour == SG_FLAVOUR_HOST;
  const int32_t columns =
      on_host ? SG_KDA_CHUNK_SPLIT_COLUMNS : SG_KDA_SCAN_WAVES * SG_KDA_TILE;
  const int32_t splits = (int32_t)sg_ceil_div(geometry->value_dim, columns);
  const int32_t variant = variant_of(geometry);
  sg_launch_t* launches = out_plan->launches;
  out_plan->params = fill_params(args, &workspace, splits);
  launches[0].kernel = &prepare_kernels[variant];
  launches[1].kernel = &scan_kernels[variant];
  for (int32_t i = 0; i < SG_KDA_CHUNK_LAUNCHES; ++i) {
    launches[i].layer = layer;
    launches[i].params = &out_plan->params;
  }
  SG_RETURN_IF_ERROR(sg__kda_grid(
      "kda_chunk_prepare", args->capacity.chunks, geometry->value_heads,
      on_host ? 1 : geometry->chunk_size / SG_KDA_TILE, &launches[0].grid));
  SG_RETURN_IF_ERROR(sg__kda_grid("kda_chunk_scan", args->capacity.sequences,
                                  geometry->value_heads, splits,
                                  &launches[1].grid));
  if (on_host) {
    configure_host(launches);
  } else {
    configure_device(target, geometry, launches);
  }
  return sg_status_ok();
}
