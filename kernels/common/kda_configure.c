// SPDX-License-Identifier: Apache-2.0

#include "kernels/common/kda_configure.h"

#include <math.h>

static bool is_supported_dim(int32_t dim) {
  return dim >= SG_KDA_DIM_MIN && dim <= SG_KDA_DIM_MAX &&
         dim % SG_KDA_DIM_STEP == 0;
}

static sg_status_t check_kinds(const char* op,
                               const sg_kda_geometry_t* geometry) {
  if (geometry->gate_kind < SG_GATE_SOFTPLUS ||
      geometry->gate_kind > SG_GATE_GIVEN) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: gate kind %d, expected softplus (0), "
                          "lower_bound (1) or given (2)",
                          op, (int)geometry->gate_kind);
  }
  if (geometry->gate_kind == SG_GATE_LOWER_BOUND &&
      !(geometry->gate_lower_bound < 0.0f &&
        isfinite(geometry->gate_lower_bound))) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: lower bound %g of the gate, expected a finite "
                          "number below 0",
                          op, (double)geometry->gate_lower_bound);
  }
  if (geometry->beta_kind < SG_BETA_SIGMOID ||
      geometry->beta_kind > SG_BETA_GIVEN) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: beta kind %d, expected sigmoid (0), "
                          "double_sigmoid (1) or given (2)",
                          op, (int)geometry->beta_kind);
  }
  if (!isfinite(geometry->scale)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: scale %g, expected a finite number", op,
                          (double)geometry->scale);
  }
  return sg_status_ok();
}

sg_status_t sg__kda_check_geometry(const char* op,
                                   const sg_kda_geometry_t* geometry) {
  if (geometry->heads < 1 || geometry->value_heads < geometry->heads ||
      geometry->value_heads % geometry->heads != 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: %d value heads, expected a multiple of the %d "
                          "heads",
                          op, geometry->value_heads, geometry->heads);
  }
  if (!is_supported_dim(geometry->key_dim) ||
      !is_supported_dim(geometry->value_dim)) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "%s: key_dim %d and value_dim %d, supported are %d "
                          "to %d in steps of %d",
                          op, geometry->key_dim, geometry->value_dim,
                          SG_KDA_DIM_MIN, SG_KDA_DIM_MAX, SG_KDA_DIM_STEP);
  }
  if (geometry->activation_dtype < SG_DTYPE_FP32 ||
      geometry->activation_dtype > SG_DTYPE_FP16) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: activation dtype %d, expected fp32, bf16 or "
                          "fp16",
                          op, (int)geometry->activation_dtype);
  }
  if (geometry->state_dtype != SG_DTYPE_FP32 &&
      geometry->state_dtype != SG_DTYPE_BF16) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "%s: state dtype %s, supported are fp32 and bf16", op,
                          sg_dtype_name(geometry->state_dtype));
  }
  return check_kinds(op, geometry);
}

typedef struct required_pointer_t {
  const char* name;
  const void* pointer;
} required_pointer_t;

static sg_status_t check_pointers(const char* op, const sg_kda_args_t* args) {
  const sg_batch_tables_t* tables = &args->tables;
  const sg_kda_tensors_t* tensors = &args->tensors;
  bool reads_a_log = args->geometry->gate_kind != SG_GATE_GIVEN;
  const required_pointer_t required[] = {
      {"counts", tables->counts},
      {"query_start_loc", tables->query_start_loc},
      {"computed_lens", tables->computed_lens},
      {"slots", tables->slots},
      {"q", tensors->q},
      {"k", tensors->k},
      {"v", tensors->v},
      {"raw_g", tensors->raw_g},
      {"raw_beta", tensors->raw_beta},
      {"o", tensors->o},
      {"state", tensors->state},
      // Stands for a pointer that is not required.
      {"a_log", reads_a_log ? (const void*)tensors->a_log : tables->counts},
  };
  for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); ++i) {
    if (required[i].pointer == NULL) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT, "%s: %s is NULL", op,
                            required[i].name);
    }
  }
  return sg_status_ok();
}

typedef struct row_stride_t {
  const char* name;
  int64_t stride;
  int64_t width;
} row_stride_t;

// Device code reads four elements of a state at a time.
static sg_status_t check_state_alignment(const char* op,
                                         const sg_kda_tensors_t* tensors,
                                         const sg_target_t* target) {
  if (target->flavour == SG_FLAVOUR_HOST) return sg_status_ok();
  if ((uintptr_t)tensors->state % 16 != 0 ||
      tensors->state_slot_stride % 4 != 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: state at %p with slots of %lld elements, %s "
                          "needs 16 bytes of alignment and a multiple of 4",
                          op, tensors->state,
                          (long long)tensors->state_slot_stride, target->name);
  }
  return sg_status_ok();
}

sg_status_t sg__kda_check_args(const char* op, const sg_kda_args_t* args,
                               const sg_target_t* target) {
  const sg_kda_geometry_t* geometry = args->geometry;
  const sg_kda_tensors_t* tensors = &args->tensors;
  if (args->capacity.tokens < 0 || args->capacity.sequences < 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: capacity of %d tokens and %d sequences", op,
                          args->capacity.tokens, args->capacity.sequences);
  }
  SG_RETURN_IF_ERROR(check_pointers(op, args));
  const int64_t heads = geometry->heads;
  const int64_t value_heads = geometry->value_heads;
  const row_stride_t strides[] = {
      {"q_row_stride", tensors->q_row_stride, heads * geometry->key_dim},
      {"k_row_stride", tensors->k_row_stride, heads * geometry->key_dim},
      {"v_row_stride", tensors->v_row_stride,
       value_heads * geometry->value_dim},
      {"g_row_stride", tensors->g_row_stride, value_heads * geometry->key_dim},
      {"beta_row_stride", tensors->beta_row_stride, value_heads},
      {"o_row_stride", tensors->o_row_stride,
       value_heads * geometry->value_dim},
      {"state_slot_stride", tensors->state_slot_stride,
       value_heads * geometry->value_dim * geometry->key_dim},
  };
  for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); ++i) {
    if (strides[i].stride < strides[i].width) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "%s: %s is %lld, expected at least %lld", op,
                            strides[i].name, (long long)strides[i].stride,
                            (long long)strides[i].width);
    }
  }
  return check_state_alignment(op, tensors, target);
}

sg_kda_params_t sg__kda_fill_params(const sg_kda_args_t* args) {
  const sg_kda_geometry_t* geometry = args->geometry;
  const sg_batch_tables_t* tables = &args->tables;
  const sg_kda_tensors_t* tensors = &args->tensors;
  sg_kda_params_t params = {
      .counts = tables->counts,
      .query_start_loc = tables->query_start_loc,
      .computed_lens = tables->computed_lens,
      .slots = tables->slots,
      .q = tensors->q,
      .k = tensors->k,
      .v = tensors->v,
      .raw_g = tensors->raw_g,
      .raw_beta = tensors->raw_beta,
      .a_log = tensors->a_log,
      .dt_bias = tensors->dt_bias,
      .o = tensors->o,
      .state = tensors->state,
      .q_row_stride = tensors->q_row_stride,
      .k_row_stride = tensors->k_row_stride,
      .v_row_stride = tensors->v_row_stride,
      .g_row_stride = tensors->g_row_stride,
      .beta_row_stride = tensors->beta_row_stride,
      .o_row_stride = tensors->o_row_stride,
      .state_slot_stride = tensors->state_slot_stride,
      .heads = geometry->heads,
      .value_heads = geometry->value_heads,
      .key_dim = geometry->key_dim,
      .value_dim = geometry->value_dim,
      .gate_kind = (int32_t)geometry->gate_kind,
      .beta_kind = (int32_t)geometry->beta_kind,
      .qk_l2norm = geometry->qk_l2norm ? 1 : 0,
      .activation_dtype = (int32_t)geometry->activation_dtype,
      .null_slot = args->null_slot,
      .token_capacity = args->capacity.tokens,
      .zero_tail = args->zero_tail ? 1 : 0,
      .zeroes_outputs = args->zeroes_outputs ? 1 : 0,
      .state_dtype = (int32_t)geometry->state_dtype,
      .scale = geometry->scale,
      .gate_lower_bound = geometry->gate_lower_bound,
  };
  return params;
}

sg_status_t sg__kda_grid(const char* kernel, int64_t rows, int64_t heads,
                         int64_t splits, uint32_t* out_grid) {
  *out_grid = 0;
  if (rows > INT32_MAX / (heads * splits)) {
    return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                          "%s: grid of %lld x %lld x %lld blocks, at most %d",
                          kernel, (long long)rows, (long long)heads,
                          (long long)splits, INT32_MAX);
  }
  *out_grid = (uint32_t)(rows * heads * splits);
  return sg_status_ok();
}

uint32_t sg__kda_persistent_grid(const sg_target_t* target, uint32_t items,
                                 int32_t blocks_per_unit) {
  const uint32_t most =
      (uint32_t)target->compute_units * (uint32_t)blocks_per_unit;
  return items < most ? items : most;
}

int32_t sg__kda_key_class(int32_t key_dim) {
  return key_dim <= 64 ? 0 : key_dim <= 128 ? 1 : 2;
}
