// SPDX-License-Identifier: Apache-2.0

#include "kernels/kda_chunk/configure.h"

#include <string.h>

#include "kernels/common/kda_configure.h"
#include "kernels/kda_chunk/scratch_host.h"
#include "runtime/base/checked.h"

static const sg_param_field_t fields[] = {
    SG_KDA_PARAM_FIELDS,
    SG_PARAM_FIELD(sg_kda_chunk_params_t, chunk_indices, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, chunk_offsets, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, chunk_size, SG_PARAM_I32),
    SG_PARAM_FIELD(sg_kda_chunk_params_t, split_count, SG_PARAM_I32),
};
_Static_assert(offsetof(sg_kda_chunk_params_t, kda) == 0,
               "SG_KDA_PARAM_FIELDS has offsets from the start");

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static const sg_kernel_t kernel = {
    .op = "kda_chunk",
    .name = "kda_chunk_scan",
    .handle = kda_chunk_scan_handle,
    .params_bytes = sizeof(sg_kda_chunk_params_t),
    .fields = fields,
    .field_count = FIELD_COUNT,
};

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
  return check_capacity(geometry, capacity);
}

static sg_status_t check_chunk_tables(const sg_kda_args_t* args) {
  if (args->tables.chunk_indices == NULL ||
      args->tables.chunk_offsets == NULL) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "kda_chunk: chunk_indices or chunk_offsets is NULL");
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
  SG_RETURN_IF_ERROR(check_chunk_tables(args));

  const int32_t splits =
      (int32_t)sg_ceil_div(geometry->value_dim, SG_KDA_CHUNK_SPLIT_COLUMNS);
  out_plan->params = (sg_kda_chunk_params_t){
      .kda = sg__kda_fill_params(args),
      .chunk_indices = args->tables.chunk_indices,
      .chunk_offsets = args->tables.chunk_offsets,
      .chunk_size = geometry->chunk_size,
      .split_count = splits,
  };
  out_plan->launch = (sg_launch_t){
      .kernel = &kernel,
      .layer = layer,
      .block = 1,
      .shared_bytes = sizeof(sg_kda_scan_scratch_t),
      .params = &out_plan->params,
  };
  return sg__kda_grid(kernel.name, args->capacity.sequences,
                      geometry->value_heads, splits, &out_plan->launch.grid);
}
