// SPDX-License-Identifier: Apache-2.0

#include "kernels/gated_norm/configure.h"

#include <math.h>

#include "kernels/common/kda_configure.h"
#include "runtime/base/checked.h"

// Rows are independent; so few make a block that a step of 64 decodes has work
// for several workers.
enum { HOST_ROW_TILE = 128 };

#define FIELD(member, type) SG_PARAM_FIELD(sg_gated_norm_params_t, member, type)

static const sg_param_field_t fields[] = {
    FIELD(counts, SG_PARAM_POINTER),
    FIELD(o, SG_PARAM_POINTER),
    FIELD(gate, SG_PARAM_POINTER),
    FIELD(weight, SG_PARAM_POINTER),
    FIELD(y, SG_PARAM_POINTER),
    FIELD(o_row_stride, SG_PARAM_I64),
    FIELD(gate_row_stride, SG_PARAM_I64),
    FIELD(y_row_stride, SG_PARAM_I64),
    FIELD(value_heads, SG_PARAM_I32),
    FIELD(value_dim, SG_PARAM_I32),
    FIELD(activation_dtype, SG_PARAM_I32),
    FIELD(token_capacity, SG_PARAM_I32),
    FIELD(row_tile, SG_PARAM_I32),
    FIELD(zero_tail, SG_PARAM_I32),
    FIELD(epsilon, SG_PARAM_F32),
};

static const sg_kernel_t kernel = {
    .op = "gated_norm",
    .name = "gated_norm",
    .handle = gated_norm_handle,
    .params_bytes = sizeof(sg_gated_norm_params_t),
    .fields = fields,
    .field_count = sizeof(fields) / sizeof(fields[0]),
};

sg_status_t sg_gated_norm_supports(const sg_kda_geometry_t* geometry,
                                   const sg_target_t* target) {
  (void)target;
  SG_RETURN_IF_ERROR(sg__kda_check_geometry("gated_norm", geometry));
  if (!(geometry->norm_epsilon > 0.0f && isfinite(geometry->norm_epsilon))) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "gated_norm: epsilon %g, expected a finite number "
                          "above 0",
                          (double)geometry->norm_epsilon);
  }
  return sg_status_ok();
}

static sg_status_t check_pointers(const sg_gated_norm_args_t* args) {
  const struct {
    const char* name;
    const void* pointer;
  } required[] = {
      {"counts", args->counts}, {"o", args->o}, {"gate", args->gate},
      {"weight", args->weight}, {"y", args->y},
  };
  for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); ++i) {
    if (required[i].pointer == NULL) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "gated_norm: %s is NULL", required[i].name);
    }
  }
  return sg_status_ok();
}

static sg_status_t check_strides(const sg_gated_norm_args_t* args) {
  const int64_t width =
      (int64_t)args->geometry->value_heads * args->geometry->value_dim;
  const struct {
    const char* name;
    int64_t stride;
  } strides[] = {
      {"o_row_stride", args->o_row_stride},
      {"gate_row_stride", args->gate_row_stride},
      {"y_row_stride", args->y_row_stride},
  };
  for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); ++i) {
    if (strides[i].stride < width) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "gated_norm: %s is %lld, expected at least %lld",
                            strides[i].name, (long long)strides[i].stride,
                            (long long)width);
    }
  }
  if (args->y == args->o && args->y_row_stride != args->o_row_stride) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "gated_norm: y is o with y_row_stride %lld, expected "
                          "o_row_stride %lld",
                          (long long)args->y_row_stride,
                          (long long)args->o_row_stride);
  }
  return sg_status_ok();
}

// Rows of a block before it takes the next; on GPUs one for each wave.
static int32_t row_tile_of(const sg_target_t* target) {
  return target->flavour == SG_FLAVOUR_HOST
             ? HOST_ROW_TILE
             : SG_GATED_NORM_THREADS / target->wave_size;
}

static sg_gated_norm_params_t fill_params(const sg_gated_norm_args_t* args,
                                          const sg_target_t* target) {
  return (sg_gated_norm_params_t){
      .counts = args->counts,
      .o = args->o,
      .gate = args->gate,
      .weight = args->weight,
      .y = args->y,
      .o_row_stride = args->o_row_stride,
      .gate_row_stride = args->gate_row_stride,
      .y_row_stride = args->y_row_stride,
      .value_heads = args->geometry->value_heads,
      .value_dim = args->geometry->value_dim,
      .activation_dtype = (int32_t)args->geometry->activation_dtype,
      .token_capacity = args->capacity.tokens,
      .row_tile = row_tile_of(target),
      .zero_tail = args->zero_tail ? 1 : 0,
      .epsilon = args->geometry->norm_epsilon,
  };
}

sg_status_t sg__gated_norm_configure(const sg_target_t* target, int32_t layer,
                                     const sg_gated_norm_args_t* args,
                                     sg_gated_norm_plan_t* out_plan) {
  *out_plan = (sg_gated_norm_plan_t){0};
  SG_RETURN_IF_ERROR(sg_gated_norm_supports(args->geometry, target));
  if (args->capacity.tokens < 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "gated_norm: capacity of %d tokens",
                          args->capacity.tokens);
  }
  SG_RETURN_IF_ERROR(check_pointers(args));
  SG_RETURN_IF_ERROR(check_strides(args));
  out_plan->params = fill_params(args, target);
  const sg_gated_norm_params_t* params = &out_plan->params;
  const int64_t rows = (int64_t)params->token_capacity * params->value_heads;
  uint32_t grid;
  SG_RETURN_IF_ERROR(sg__kda_grid("gated_norm",
                                  sg_ceil_div(rows, params->row_tile),
                                  /*heads=*/1, /*splits=*/1, &grid));
  const bool on_host = target->flavour == SG_FLAVOUR_HOST;
  if (!on_host) {
    grid = sg__kda_persistent_grid(target, grid, SG_GATED_NORM_GRID);
  }
  out_plan->launch = (sg_launch_t){.kernel = &kernel,
                                   .layer = layer,
                                   .grid = grid,
                                   .block = on_host ? 1 : SG_GATED_NORM_THREADS,
                                   .params = params};
  return sg_status_ok();
}
