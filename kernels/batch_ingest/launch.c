// SPDX-License-Identifier: Apache-2.0

#include "kernels/batch_ingest/batch_ingest.h"

#define FIELD(member, type) \
  SG_PARAM_FIELD(sg_batch_ingest_params_t, member, type)

static const sg_param_field_t fields[] = {
    FIELD(ring, SG_PARAM_POINTER),
    FIELD(cursor, SG_PARAM_POINTER),
    FIELD(counts, SG_PARAM_POINTER),
    FIELD(query_start_loc, SG_PARAM_POINTER),
    FIELD(computed_lens, SG_PARAM_POINTER),
    FIELD(slots, SG_PARAM_POINTER),
    FIELD(chunk_indices, SG_PARAM_POINTER),
    FIELD(chunk_offsets, SG_PARAM_POINTER),
    FIELD(layout.sequence_capacity, SG_PARAM_I32),
    FIELD(layout.chunk_capacity, SG_PARAM_I32),
    FIELD(layout.query_start_loc_offset, SG_PARAM_U32),
    FIELD(layout.computed_lens_offset, SG_PARAM_U32),
    FIELD(layout.slots_offset, SG_PARAM_U32),
    FIELD(layout.source_slots_offset, SG_PARAM_U32),
    FIELD(layout.chunk_indices_offset, SG_PARAM_U32),
    FIELD(layout.chunk_offsets_offset, SG_PARAM_U32),
    FIELD(layout.entry_bytes, SG_PARAM_U32),
    FIELD(ring_depth, SG_PARAM_I32),
    FIELD(sequence_capacity, SG_PARAM_I32),
    FIELD(chunk_capacity, SG_PARAM_I32),
};

static const sg_kernel_t kernel = {
    .op = "batch_ingest",
    .name = "batch_ingest",
    .handle = batch_ingest_handle,
    .params_bytes = sizeof(sg_batch_ingest_params_t),
    .fields = fields,
    .field_count = sizeof(fields) / sizeof(fields[0]),
};

sg_status_t sg_batch_ingest_enqueue(const sg_enqueue_t* where,
                                    const sg_batch_ingest_params_t* params) {
  if (params->sequence_capacity > params->layout.sequence_capacity) {
    return sg_status_make(
        SG_STATUS_INVALID_ARGUMENT,
        "batch_ingest: capacity of %d sequences, the ring holds %d",
        params->sequence_capacity, params->layout.sequence_capacity);
  }
  if (params->chunk_indices != NULL &&
      params->chunk_capacity > params->layout.chunk_capacity) {
    return sg_status_make(
        SG_STATUS_INVALID_ARGUMENT,
        "batch_ingest: capacity of %d chunks, the ring holds %d",
        params->chunk_capacity, params->layout.chunk_capacity);
  }
  // One block keeps the order: counts and tables are complete when it ends.
  const uint32_t threads = 256;
  return sg_launch_enqueue(where, &(sg_launch_t){.kernel = &kernel,
                                                 .layer = where->layer,
                                                 .grid = 1,
                                                 .block = threads,
                                                 .params = params});
}
