// SPDX-License-Identifier: Apache-2.0

#include "kernels/chunk_metadata/chunk_metadata.h"
#include "kernels/common/batch_tables.h"
#include "runtime/base/checked.h"

#define FIELD(member, type) \
  SG_PARAM_FIELD(sg_chunk_metadata_params_t, member, type)

static const sg_param_field_t fields[] = {
    FIELD(counts, SG_PARAM_POINTER),
    FIELD(query_start_loc, SG_PARAM_POINTER),
    FIELD(query_start_loc_copy, SG_PARAM_POINTER),
    FIELD(computed_lens, SG_PARAM_POINTER),
    FIELD(slots, SG_PARAM_POINTER),
    FIELD(chunk_indices, SG_PARAM_POINTER),
    FIELD(chunk_offsets, SG_PARAM_POINTER),
    FIELD(slot_stamps, SG_PARAM_POINTER),
    FIELD(sequence_count, SG_PARAM_POINTER),
    FIELD(sequence_capacity, SG_PARAM_I32),
    FIELD(token_capacity, SG_PARAM_I32),
    FIELD(chunk_capacity, SG_PARAM_I32),
    FIELD(chunk_size, SG_PARAM_I32),
    FIELD(slot_count, SG_PARAM_I32),
    FIELD(null_slot, SG_PARAM_I32),
    FIELD(content, SG_PARAM_I32),
    FIELD(offset_bytes, SG_PARAM_I32),
    FIELD(tables_given, SG_PARAM_I32),
    FIELD(stands_alone, SG_PARAM_I32),
};

static const sg_kernel_t kernel = {
    .op = "chunk_metadata",
    .name = "chunk_metadata",
    .handle = chunk_metadata_handle,
    .params_bytes = sizeof(sg_chunk_metadata_params_t),
    .fields = fields,
    .field_count = sizeof(fields) / sizeof(fields[0]),
};

sg_status_t sg_chunk_metadata_workspace_bytes(int32_t slot_count,
                                              size_t* out_bytes) {
  *out_bytes = 0;
  if (slot_count < 0 ||
      !sg_checked_mul((size_t)slot_count + 1, sizeof(uint64_t), out_bytes)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "chunk_metadata: slot count %d", slot_count);
  }
  return sg_status_ok();
}

static sg_status_t check_params(const sg_chunk_metadata_params_t* params) {
  if (params->offset_bytes != 4 && params->offset_bytes != 8) {
    return sg_status_make(
        SG_STATUS_INVALID_ARGUMENT,
        "chunk_metadata: offsets of %d bytes, expected 4 or 8",
        params->offset_bytes);
  }
  if (params->offset_bytes == 8 && params->query_start_loc_copy == NULL) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "chunk_metadata: 64-bit offsets need a "
                          "query_start_loc_copy, found none");
  }
  int64_t chunks = sg_chunk_capacity(
      params->token_capacity, params->sequence_capacity, params->chunk_size);
  if (params->chunk_capacity < chunks) {
    return sg_status_make(
        SG_STATUS_INVALID_ARGUMENT,
        "chunk_metadata: capacity of %d chunks, %d tokens in %d sequences "
        "make up to %lld",
        params->chunk_capacity, params->token_capacity,
        params->sequence_capacity, (long long)chunks);
  }
  return sg_status_ok();
}

sg_status_t sg_chunk_metadata_enqueue(
    const sg_enqueue_t* where, const sg_chunk_metadata_params_t* params) {
  SG_RETURN_IF_ERROR(check_params(params));
  // One block, so that prefix sums need no second pass over the grid.
  uint32_t threads = (uint32_t)where->target->max_threads_per_block;
  return sg_launch_enqueue(where, &(sg_launch_t){.kernel = &kernel,
                                                 .layer = where->layer,
                                                 .grid = 1,
                                                 .block = threads,
                                                 .params = params});
}
