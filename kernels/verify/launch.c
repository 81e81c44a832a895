// SPDX-License-Identifier: Apache-2.0

#include "kernels/verify/verify.h"

#define SLOTS(member, type) \
  SG_PARAM_FIELD(sg_verify_slots_params_t, member, type)
#define ROWS(member, type) SG_PARAM_FIELD(sg_verify_rows_params_t, member, type)

static const sg_param_field_t slots_fields[] = {
    SLOTS(ring, SG_PARAM_POINTER),
    SLOTS(cursor, SG_PARAM_POINTER),
    SLOTS(pool, SG_PARAM_POINTER),
    SLOTS(shadow, SG_PARAM_POINTER),
    SLOTS(pool_stride_bytes, SG_PARAM_I64),
    SLOTS(shadow_stride_bytes, SG_PARAM_I64),
    SLOTS(slot_bytes, SG_PARAM_I64),
    SLOTS(mismatches, SG_PARAM_POINTER),
    SLOTS(layout.entry_bytes, SG_PARAM_U32),
    SLOTS(ring_depth, SG_PARAM_I32),
    SLOTS(slot_count, SG_PARAM_I32),
    SLOTS(shadow_slot_count, SG_PARAM_I32),
    SLOTS(null_slot, SG_PARAM_I32),
    SLOTS(buffer, SG_PARAM_I32),
};

static const sg_param_field_t rows_fields[] = {
    ROWS(counts, SG_PARAM_POINTER),     ROWS(cursor, SG_PARAM_POINTER),
    ROWS(live, SG_PARAM_POINTER),       ROWS(shadow, SG_PARAM_POINTER),
    ROWS(stride_bytes, SG_PARAM_I64),   ROWS(row_bytes, SG_PARAM_I64),
    ROWS(mismatches, SG_PARAM_POINTER), ROWS(buffer, SG_PARAM_I32),
};

static const sg_kernel_t snapshot_kernel = {
    .op = "verify",
    .name = "slot_snapshot",
    .handle = slot_snapshot_handle,
    .params_bytes = sizeof(sg_verify_slots_params_t),
    .fields = slots_fields,
    .field_count = sizeof(slots_fields) / sizeof(slots_fields[0]),
};

static const sg_kernel_t compare_slots_kernel = {
    .op = "verify",
    .name = "compare_slots",
    .handle = compare_slots_handle,
    .params_bytes = sizeof(sg_verify_slots_params_t),
    .fields = slots_fields,
    .field_count = sizeof(slots_fields) / sizeof(slots_fields[0]),
};

static const sg_kernel_t compare_rows_kernel = {
    .op = "verify",
    .name = "compare_rows",
    .handle = compare_rows_handle,
    .params_bytes = sizeof(sg_verify_rows_params_t),
    .fields = rows_fields,
    .field_count = sizeof(rows_fields) / sizeof(rows_fields[0]),
};

static sg_status_t enqueue(const sg_enqueue_t* where, const sg_kernel_t* kernel,
                           const void* params, int32_t grid) {
  const uint32_t threads = 256;
  return sg_launch_enqueue(where, &(sg_launch_t){.kernel = kernel,
                                                 .layer = where->layer,
                                                 .grid = (uint32_t)grid,
                                                 .block = threads,
                                                 .params = params});
}

sg_status_t sg_verify_snapshot_enqueue(const sg_enqueue_t* where,
                                       const sg_verify_slots_params_t* params,
                                       int32_t sequence_capacity) {
  return enqueue(where, &snapshot_kernel, params, sequence_capacity);
}

sg_status_t sg_verify_compare_slots_enqueue(
    const sg_enqueue_t* where, const sg_verify_slots_params_t* params,
    int32_t sequence_capacity) {
  return enqueue(where, &compare_slots_kernel, params, sequence_capacity);
}

sg_status_t sg_verify_compare_rows_enqueue(
    const sg_enqueue_t* where, const sg_verify_rows_params_t* params,
    int32_t token_capacity) {
  return enqueue(where, &compare_rows_kernel, params, token_capacity);
}
