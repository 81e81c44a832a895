// SPDX-License-Identifier: Apache-2.0

#include "kernels/kda_recurrent/configure.h"

#include <string.h>

#include "kernels/common/kda_configure.h"
#include "kernels/kda_recurrent/scratch_host.h"
#include "runtime/base/checked.h"

static const sg_param_field_t fields[] = {SG_KDA_PARAM_FIELDS};
_Static_assert(offsetof(sg_kda_recurrent_params_t, kda) == 0,
               "SG_KDA_PARAM_FIELDS has offsets from the start");

#define KERNEL(accessor)                                                  \
  {                                                                       \
    .op = "kda_recurrent", .name = "kda_recurrent", .handle = (accessor), \
    .params_bytes = sizeof(sg_kda_recurrent_params_t), .fields = fields,  \
    .field_count = sizeof(fields) / sizeof(fields[0]),                    \
  }

#define VARIANT(variant) KERNEL(kda_recurrent_##variant##_handle),

static const sg_kernel_t kernels[SG_KDA_RECURRENT_VARIANT_COUNT] = {
    SG_KDA_RECURRENT_VARIANTS(VARIANT)};

static const sg_kernel_t* kernel_of(const sg_kda_geometry_t* geometry) {
  const int32_t first =
      geometry->state_dtype == SG_DTYPE_BF16 ? SG_KDA_KEY_CLASSES : 0;
  return &kernels[first + sg__kda_key_class(geometry->key_dim)];
}

sg_status_t sg_kda_recurrent_supports(const sg_kda_geometry_t* geometry,
                                      const sg_target_t* target) {
  (void)target;
  return sg__kda_check_geometry("kda_recurrent", geometry);
}

sg_status_t sg_kda_recurrent_workspace_bytes(
    const sg_kda_geometry_t* geometry, const sg_target_t* target,
    const sg_batch_capacity_t* capacity, size_t* out_bytes) {
  (void)capacity;
  *out_bytes = 0;
  return sg_kda_recurrent_supports(geometry, target);
}

sg_status_t sg__kda_recurrent_configure(const sg_target_t* target,
                                        int32_t layer,
                                        const sg_kda_args_t* args,
                                        sg_kda_recurrent_plan_t* out_plan) {
  memset(out_plan, 0, sizeof(*out_plan));
  SG_RETURN_IF_ERROR(sg_kda_recurrent_supports(args->geometry, target));
  SG_RETURN_IF_ERROR(sg__kda_check_args("kda_recurrent", args, target));
  const sg_kda_geometry_t* geometry = args->geometry;
  const sg_kernel_t* kernel = kernel_of(geometry);
  const bool on_host = target->flavour == SG_FLAVOUR_HOST;
  const int64_t splits =
      on_host ? 1 : sg_ceil_div(geometry->value_dim, SG_KDA_RECURRENT_ROWS);
  uint32_t items;
  SG_RETURN_IF_ERROR(sg__kda_grid(kernel->name, args->capacity.sequences,
                                  geometry->value_heads, splits, &items));
  out_plan->params.kda = sg__kda_fill_params(args);
  out_plan->launch = (sg_launch_t){
      .kernel = kernel,
      .layer = layer,
      .grid = on_host ? items
                      : sg__kda_persistent_grid(target, items,
                                                SG_KDA_RECURRENT_GRID),
      .block = on_host ? 1 : SG_KDA_RECURRENT_THREADS,
      .shared_bytes = on_host ? sizeof(sg_kda_recurrent_scratch_t) : 0,
      .params = &out_plan->params,
  };
  return sg_status_ok();
}
