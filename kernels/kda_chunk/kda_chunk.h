// SPDX-License-Identifier: Apache-2.0
//
// Kimi Delta Attention over whole prefills, in chunks: the outputs and the
// updated states of sequences decode_count to sequence_count - 1 of a batch.
// The decodes before them are kda_recurrent's.
//
// One launch, whose blocks carry each state through its sequence. No call
// allocates or waits.
//
// A result depends on the model and the batch, never on a capacity: it has the
// same bits whatever graph it was recorded in.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_KDA_CHUNK_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_KDA_CHUNK_H_

#include "kernels/common/kda_args.h"
#include "runtime/base/status.h"
#include "runtime/hip/launch.h"
#include "runtime/hip/target.h"

#ifdef __cplusplus
extern "C" {
#endif

// Whether kernels for |target| compute |geometry|; kda_chunk/params.h has the
// limits. SG_STATUS_UNSUPPORTED, or SG_STATUS_INVALID_ARGUMENT where the
// geometry makes no sense, with the numbers.
SG_MUST_USE sg_status_t sg_kda_chunk_supports(const sg_kda_geometry_t* geometry,
                                              const sg_target_t* target);

// Bytes of device memory, aligned to SG_ARENA_ALIGNMENT_BYTES, that a call with
// |capacity| needs as its workspace: none on the host.
SG_MUST_USE sg_status_t sg_kda_chunk_workspace_bytes(
    const sg_kda_geometry_t* geometry, const sg_target_t* target,
    const sg_batch_capacity_t* capacity, size_t* out_bytes);

// Enqueues the op on where->stream, eagerly or into a capture.
SG_MUST_USE sg_status_t sg_kda_chunk_enqueue(const sg_enqueue_t* where,
                                             const sg_kda_args_t* args);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_KDA_CHUNK_H_
