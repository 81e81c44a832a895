// SPDX-License-Identifier: Apache-2.0
//
// Enqueues chunk_metadata (see params.h for what it does), and builds the same
// tables on the host.

#ifndef STEPGRAPH_KERNELS_CHUNK_METADATA_CHUNK_METADATA_H_
#define STEPGRAPH_KERNELS_CHUNK_METADATA_CHUNK_METADATA_H_

#include <stddef.h>

#include "kernels/chunk_metadata/params.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of slot_stamps for |slot_count| slots.
SG_MUST_USE sg_status_t sg_chunk_metadata_workspace_bytes(int32_t slot_count,
                                                          size_t* out_bytes);

// |params| is copied. Fails with SG_STATUS_INVALID_ARGUMENT when offset_bytes
// is not 4 or 8, when 64-bit offsets come without query_start_loc_copy, or
// when chunk_capacity is less than the token capacity can make.
SG_MUST_USE sg_status_t sg_chunk_metadata_enqueue(
    const sg_enqueue_t* where, const sg_chunk_metadata_params_t* params);

// The same tables from lengths that the host knows. |query_lens| and
// |computed_lens| have |sequence_count| entries of at least 0;
// |out_chunk_indices| has room for every chunk and |out_chunk_offsets| for
// sequence_count + 1 entries. Returns the number of chunks.
int32_t sg_chunk_tables_build(const int32_t* query_lens,
                              const int32_t* computed_lens,
                              int32_t sequence_count, int32_t chunk_size,
                              int32_t* out_chunk_indices,
                              int64_t* out_chunk_offsets);

// Handle of the kernel, from the flavour's device code.
const void* chunk_metadata_handle(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_CHUNK_METADATA_CHUNK_METADATA_H_
