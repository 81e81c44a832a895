// SPDX-License-Identifier: Apache-2.0

#include <math.h>
#include <string.h>

#include "kernels/random_fill/random_fill.h"
#include "runtime/base/checked.h"

#define FIELD(member, type) \
  SG_PARAM_FIELD(sg_random_fill_params_t, member, type)

static const sg_param_field_t fields[] = {
    FIELD(data, SG_PARAM_POINTER),       FIELD(seed, SG_PARAM_U64),
    FIELD(rows, SG_PARAM_I64),           FIELD(row_stride, SG_PARAM_I64),
    FIELD(row_elements, SG_PARAM_I32),   FIELD(dtype, SG_PARAM_I32),
    FIELD(rows_per_block, SG_PARAM_I32), FIELD(columns_per_block, SG_PARAM_I32),
    FIELD(step, SG_PARAM_F32),           FIELD(offset, SG_PARAM_F32),
};

static const sg_kernel_t kernel = {
    .op = "random_fill",
    .name = "random_fill",
    .handle = random_fill_handle,
    .params_bytes = sizeof(sg_random_fill_params_t),
    .fields = fields,
    .field_count = sizeof(fields) / sizeof(fields[0]),
};

// Elements a block fills: enough to hide what starting a block costs, and few
// enough that small tensors still spread over a device.
enum { BLOCK_ELEMENTS = 16384 };

// Rounds to 14 significant bits, so that products with z are exact.
static float round_step(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  bits = (bits + (1u << 9)) & ~((1u << 10) - 1);
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static sg_status_t check(const sg_random_fill_args_t* args) {
  if (args->rows < 0 || args->row_elements < 0 ||
      args->row_elements > INT32_MAX || args->row_stride < args->row_elements) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "random_fill: %lld rows of %lld elements, %lld apart",
                          (long long)args->rows, (long long)args->row_elements,
                          (long long)args->row_stride);
  }
  // Above this the rounding of the step could overflow.
  if (!(fabsf(args->scale) < 1e30f) || !(fabsf(args->offset) < 1e30f)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "random_fill: scale %g and offset %g, expected "
                          "numbers within 1e30",
                          (double)args->scale, (double)args->offset);
  }
  return sg_status_ok();
}

sg_status_t sg_random_fill_enqueue(const sg_enqueue_t* where,
                                   const sg_random_fill_args_t* args) {
  SG_RETURN_IF_ERROR(check(args));
  if (args->rows == 0 || args->row_elements == 0) return sg_status_ok();
  int64_t columns_per_block =
      args->row_elements < BLOCK_ELEMENTS ? args->row_elements : BLOCK_ELEMENTS;
  int64_t rows_per_block = BLOCK_ELEMENTS / columns_per_block;
  int64_t grid = sg_ceil_div(args->rows, rows_per_block) *
                 sg_ceil_div(args->row_elements, columns_per_block);
  if (grid > INT32_MAX) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "random_fill: %lld blocks, expected at most %d",
                          (long long)grid, INT32_MAX);
  }
  sg_random_fill_params_t params = {
      .data = args->data,
      .seed = args->seed,
      .rows = args->rows,
      .row_stride = args->row_stride,
      .row_elements = (int32_t)args->row_elements,
      .dtype = (int32_t)args->dtype,
      .rows_per_block = (int32_t)rows_per_block,
      .columns_per_block = (int32_t)columns_per_block,
      .step = round_step(args->scale / SG_RANDOM_DEVIATION),
      .offset = args->offset,
  };
  const uint32_t threads = 256;
  return sg_launch_enqueue(where, &(sg_launch_t){.kernel = &kernel,
                                                 .layer = where->layer,
                                                 .grid = (uint32_t)grid,
                                                 .block = threads,
                                                 .params = &params});
}
