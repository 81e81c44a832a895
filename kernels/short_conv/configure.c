// SPDX-License-Identifier: Apache-2.0

#include "kernels/short_conv/configure.h"

#include "kernels/common/kda_configure.h"
#include "runtime/base/checked.h"

// Enough rows that transposing the weights is cheap beside them, few enough
// that 64 decodes make work for several workers.
enum { HOST_TOKEN_TILE = 32, HOST_CHANNEL_TILE = 1024 };

#define FIELD(member, type) SG_PARAM_FIELD(sg_short_conv_params_t, member, type)

static const sg_param_field_t fields[] = {
    FIELD(counts, SG_PARAM_POINTER),
    FIELD(query_start_loc, SG_PARAM_POINTER),
    FIELD(computed_lens, SG_PARAM_POINTER),
    FIELD(slots, SG_PARAM_POINTER),
    FIELD(x, SG_PARAM_POINTER),
    FIELD(weight, SG_PARAM_POINTER),
    FIELD(cache, SG_PARAM_POINTER),
    FIELD(y, SG_PARAM_POINTER),
    FIELD(x_row_stride, SG_PARAM_I64),
    FIELD(y_row_stride, SG_PARAM_I64),
    FIELD(cache_slot_stride, SG_PARAM_I64),
    FIELD(channels, SG_PARAM_I32),
    FIELD(width, SG_PARAM_I32),
    FIELD(activation_dtype, SG_PARAM_I32),
    FIELD(null_slot, SG_PARAM_I32),
    FIELD(token_tile, SG_PARAM_I32),
    FIELD(channel_tile, SG_PARAM_I32),
};

static const sg_kernel_t kernel = {
    .op = "short_conv",
    .name = "short_conv",
    .handle = short_conv_handle,
    .params_bytes = sizeof(sg_short_conv_params_t),
    .fields = fields,
    .field_count = sizeof(fields) / sizeof(fields[0]),
};

int64_t sg_short_conv_channels(const sg_kda_geometry_t* geometry) {
  return 2 * (int64_t)geometry->heads * geometry->key_dim +
         (int64_t)geometry->value_heads * geometry->value_dim;
}

sg_status_t sg_short_conv_supports(const sg_kda_geometry_t* geometry,
                                   const sg_target_t* target) {
  (void)target;
  SG_RETURN_IF_ERROR(sg__kda_check_geometry("short_conv", geometry));
  if (geometry->conv_width < SG_SHORT_CONV_WIDTH_MIN ||
      geometry->conv_width > SG_SHORT_CONV_WIDTH_MAX) {
    return sg_status_make(
        SG_STATUS_UNSUPPORTED, "short_conv: width %d, supported are %d to %d",
        geometry->conv_width, SG_SHORT_CONV_WIDTH_MIN, SG_SHORT_CONV_WIDTH_MAX);
  }
  const int64_t channels = sg_short_conv_channels(geometry);
  if (channels > INT32_MAX) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "short_conv: %lld channels, supported are up to %d",
                          (long long)channels, INT32_MAX);
  }
  return sg_status_ok();
}

static sg_status_t check_pointers(const sg_short_conv_args_t* args) {
  const struct {
    const char* name;
    const void* pointer;
  } required[] = {
      {"counts", args->tables.counts},
      {"query_start_loc", args->tables.query_start_loc},
      {"computed_lens", args->tables.computed_lens},
      {"slots", args->tables.slots},
      {"x", args->x},
      {"weight", args->weight},
      {"cache", args->cache},
      {"y", args->y},
  };
  for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); ++i) {
    if (required[i].pointer == NULL) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "short_conv: %s is NULL", required[i].name);
    }
  }
  if (args->x == args->y) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "short_conv: y is x, expected another buffer");
  }
  return sg_status_ok();
}

static sg_status_t check_strides(const sg_short_conv_args_t* args) {
  const int64_t channels = sg_short_conv_channels(args->geometry);
  const struct {
    const char* name;
    int64_t stride;
    int64_t width;
  } strides[] = {
      {"x_row_stride", args->x_row_stride, channels},
      {"y_row_stride", args->y_row_stride, channels},
      {"cache_slot_stride", args->cache_slot_stride,
       channels * (args->geometry->conv_width - 1)},
  };
  for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); ++i) {
    if (strides[i].stride < strides[i].width) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "short_conv: %s is %lld, expected at least %lld",
                            strides[i].name, (long long)strides[i].stride,
                            (long long)strides[i].width);
    }
  }
  return sg_status_ok();
}

static sg_short_conv_params_t fill_params(const sg_short_conv_args_t* args,
                                          bool on_host) {
  return (sg_short_conv_params_t){
      .counts = args->tables.counts,
      .query_start_loc = args->tables.query_start_loc,
      .computed_lens = args->tables.computed_lens,
      .slots = args->tables.slots,
      .x = args->x,
      .weight = args->weight,
      .cache = args->cache,
      .y = args->y,
      .x_row_stride = args->x_row_stride,
      .y_row_stride = args->y_row_stride,
      .cache_slot_stride = args->cache_slot_stride,
      .channels = (int32_t)sg_short_conv_channels(args->geometry),
      .width = args->geometry->conv_width,
      .activation_dtype = (int32_t)args->geometry->activation_dtype,
      .null_slot = args->null_slot,
      .token_tile = on_host ? HOST_TOKEN_TILE : SG_SHORT_CONV_DEVICE_TOKENS,
      .channel_tile =
          on_host ? HOST_CHANNEL_TILE : SG_SHORT_CONV_DEVICE_CHANNELS,
  };
}

sg_status_t sg__short_conv_configure(const sg_target_t* target, int32_t layer,
                                     const sg_short_conv_args_t* args,
                                     sg_short_conv_plan_t* out_plan) {
  *out_plan = (sg_short_conv_plan_t){0};
  SG_RETURN_IF_ERROR(sg_short_conv_supports(args->geometry, target));
  if (args->capacity.tokens < 0 || args->capacity.sequences < 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "short_conv: capacity of %d tokens and %d sequences",
                          args->capacity.tokens, args->capacity.sequences);
  }
  SG_RETURN_IF_ERROR(check_pointers(args));
  SG_RETURN_IF_ERROR(check_strides(args));
  const bool on_host = target->flavour == SG_FLAVOUR_HOST;
  out_plan->params = fill_params(args, on_host);
  const sg_short_conv_params_t* params = &out_plan->params;
  uint32_t grid;
  SG_RETURN_IF_ERROR(sg__kda_grid(
      "short_conv", sg_ceil_div(args->capacity.tokens, params->token_tile),
      sg_ceil_div(params->channels, params->channel_tile),
      /*splits=*/1, &grid));
  if (!on_host) {
    grid = sg__kda_persistent_grid(target, grid, SG_SHORT_CONV_DEVICE_GRID);
  }
  out_plan->launch =
      (sg_launch_t){.kernel = &kernel,
                    .layer = layer,
                    .grid = grid,
                    .block = on_host ? 1 : SG_SHORT_CONV_DEVICE_CHANNELS,
                    .params = params};
  return sg_status_ok();
}
