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

// Bytes of a panel's elements: fp16 only where it has their range.
static int32_t element_bytes_of(const sg_kda_geometry_t* geometry) {
  const bool is_small = geometry->qk_l2norm &&
                        geometry->scale >= SG_KDA_PANEL_SCALE_MIN &&
                        geometry->scale <= 1.0f;
  return geometry->activation_dtype == SG_DTYPE_BF16 && is_small ? 2 : 4;
}

static int32_t variant_of(const sg_kda_geometry_t* geometry) {
  const int32_t key_class = sg__kda_key_class(geometry->key_dim);
  return element_bytes_of(geometry) == 2 ? key_class
                                         : SG_KDA_KEY_CLASSES + key_class;
}

static int32_t key_tiles_of(const sg_kda_geometry_t* geometry) {
  return SG_KDA_KEY_TILES(sg__kda_key_class(geometry->key_dim));
}

// Bytes of the panels; 0 on the host.
static sg_status_t panel_bytes(const sg_target_t* target,
                               const sg_kda_geometry_t* geometry,
                               const sg_batch_capacity_t* capacity,
                               size_t* out_bytes) {
  *out_bytes = 0;
  if (target->flavour == SG_FLAVOUR_HOST) return sg_status_ok();
  const size_t bytes = (size_t)SG_KDA_PANEL_BYTES(key_tiles_of(geometry),
                                                  element_bytes_of(geometry));
  const size_t blocks = (size_t)(geometry->chunk_size / SG_KDA_BLOCK_TOKENS);
  size_t count;
  if (!sg_checked_mul((size_t)capacity->chunks, (size_t)geometry->value_heads,
                      &count) ||
      !sg_checked_mul(count, blocks, &count)) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY,
                          "kda_chunk workspace: %d chunks of %d tokens in %d "
                          "heads overflow",
                          capacity->chunks, geometry->chunk_size,
                          geometry->value_heads);
  }
  sg_arena_layout_t layout = {0};
  size_t offset;
  SG_RETURN_IF_ERROR(
      sg_arena_reserve(&layout, "kda_chunk panels", count, bytes, &offset));
  *out_bytes = layout.total_bytes;
  return sg_status_ok();
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
  return panel_bytes(target, geometry, capacity, out_bytes);
}

static sg_status_t check_chunk_pointers(const sg_kda_args_t* args,
                                        size_t workspace_bytes) {
  if (args->tables.chunk_indices == NULL ||
      args->tables.chunk_offsets == NULL) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "kda_chunk: chunk_indices or chunk_offsets is NULL");
  }
  if (args->workspace == NULL && workspace_bytes > 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "kda_chunk: workspace is NULL");
  }
  return sg_status_ok();
}

static sg_kda_chunk_params_t fill_params(const sg_kda_args_t* args,
                                         int32_t split_count) {
  return (sg_kda_chunk_params_t){
      .kda = sg__kda_fill_params(args),
      .chunk_indices = args->tables.chunk_indices,
      .chunk_offsets = args->tables.chunk_offsets,
      .panels = args->workspace,
      .chunk_size = args->geometry->chunk_size,
      .split_count = split_count,
  };
}

// |splits| blocks for each sequence and value head at capacity.
static sg_status_t configure_scan(const sg_kda_args_t* args, int32_t splits,
                                  sg_launch_t* launch) {
  launch->kernel = &scan_kernels[variant_of(args->geometry)];
  return sg__kda_grid(launch->kernel->name, args->capacity.sequences,
                      args->geometry->value_heads, splits, &launch->grid);
}

// As many blocks as columns can be split for where that is few, and otherwise
// no fewer than that.
static sg_status_t configure_host(const sg_kda_args_t* args,
                                  sg_kda_chunk_plan_t* plan) {
  const int64_t value_dim = args->geometry->value_dim;
  const int64_t most = sg_ceil_div(value_dim, SG_KDA_CHUNK_STEP_COLUMNS);
  const int64_t least = sg_ceil_div(value_dim, SG_KDA_CHUNK_SPLIT_COLUMNS);
  const int64_t items =
      (int64_t)args->capacity.sequences * args->geometry->value_heads;
  const bool is_few = items * most <= SG_KDA_CHUNK_SPLIT_GRID;
  sg_launch_t* scan = &plan->launches[0];
  plan->launch_count = 1;
  plan->params = fill_params(args, /*split_count=*/0);
  scan->block = 1;
  scan->shared_bytes = sizeof(sg_kda_scan_scratch_t);
  SG_RETURN_IF_ERROR(
      configure_scan(args, (int32_t)(is_few ? most : least), scan));
  if (!is_few && scan->grid < SG_KDA_CHUNK_SPLIT_GRID) {
    scan->grid = SG_KDA_CHUNK_SPLIT_GRID;
  }
  return sg_status_ok();
}

static sg_status_t configure_device(const sg_target_t* target,
                                    const sg_kda_args_t* args,
                                    sg_kda_chunk_plan_t* plan) {
  const sg_kda_geometry_t* geometry = args->geometry;
  const int32_t tiles = key_tiles_of(geometry);
  const int32_t bytes = element_bytes_of(geometry);
  const int32_t threads = tiles * SG_KDA_TILE;
  sg_launch_t* prepare = &plan->launches[0];
  sg_launch_t* scan = &plan->launches[1];
  plan->launch_count = 2;
  prepare->kernel = &prepare_kernels[variant_of(geometry)];
  SG_RETURN_IF_ERROR(sg__kda_grid(
      prepare->kernel->name, args->capacity.chunks, geometry->value_heads,
      geometry->chunk_size / SG_KDA_TILE, &prepare->grid));
  const int32_t splits = (int32_t)sg_ceil_div(geometry->value_dim,
                                              SG_KDA_SCAN_WAVES * SG_KDA_TILE);
  plan->params = fill_params(args, splits);
  SG_RETURN_IF_ERROR(configure_scan(args, splits, scan));
  // The grids hold one block a work item so far.
  prepare->block = (uint32_t)threads;
  prepare->shared_bytes = (uint32_t)SG_KDA_PREPARE_SHARED_BYTES(
      tiles, bytes, threads / target->wave_size);
  prepare->grid =
      sg__kda_persistent_grid(target, prepare->grid, SG_KDA_PREPARE_GRID);
  const int32_t stages = target->flavour == SG_FLAVOUR_NVIDIA
                             ? SG_KDA_SCAN_STAGES_NVIDIA
                             : SG_KDA_SCAN_STAGES_AMD;
  scan->block = (uint32_t)(SG_KDA_SCAN_WAVES * target->wave_size);
  scan->shared_bytes = (uint32_t)(stages * SG_KDA_PANEL_BYTES(tiles, bytes));
  scan->grid = sg__kda_persistent_grid(target, scan->grid, SG_KDA_SCAN_GRID);
  return sg_status_ok();
}

sg_status_t sg__kda_chunk_configure(const sg_target_t* target, int32_t layer,
                                    const sg_kda_args_t* args,
                                    sg_kda_chunk_plan_t* out_plan) {
  memset(out_plan, 0, sizeof(*out_plan));
  const sg_kda_geometry_t* geometry = args->geometry;
  size_t workspace_bytes;
  SG_RETURN_IF_ERROR(sg_kda_chunk_workspace_bytes(
      geometry, target, &args->capacity, &workspace_bytes));
  SG_RETURN_IF_ERROR(sg__kda_check_args("kda_chunk", args, target));
  SG_RETURN_IF_ERROR(check_chunk_pointers(args, workspace_bytes));
  for (int32_t i = 0; i < SG_KDA_CHUNK_MAX_LAUNCHES; ++i) {
    out_plan->launches[i].layer = layer;
    out_plan->launches[i].params = &out_plan->params;
  }
  return target->flavour == SG_FLAVOUR_HOST
             ? configure_host(args, out_plan)
             : configure_device(target, args, out_plan);
}
