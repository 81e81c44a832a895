// SPDX-License-Identifier: Apache-2.0
//
// Kimi Delta Attention for decodes: one token of each of the sequences 0 to
// decode_count - 1 of a batch, which are its rows of the same numbers. The
// sequences after them are kda_chunk's. One launch; no call allocates or
// waits. A result has the same bits whatever the capacities are.

#ifndef STEPGRAPH_KERNELS_KDA_RECURRENT_KDA_RECURRENT_H_
#define STEPGRAPH_KERNELS_KDA_RECURRENT_KDA_RECURRENT_H_

#include "kernels/common/kda_args.h"
#include "runtime/base/status.h"
#include "runtime/hip/launch.h"
#include "runtime/hip/target.h"

#ifdef __cplusplus
extern "C" {
#endif

// Whether kernels for |target| compute |geometry|; kda_recurrent/params.h has
// the limits. SG_STATUS_UNSUPPORTED, or SG_STATUS_INVALID_ARGUMENT where the
// geometry makes no sense, with the numbers.
SG_MUST_USE sg_status_t sg_kda_recurrent_supports(
    const sg_kda_geometry_t* geometry, const sg_target_t* target);

// Bytes of device memory that a call needs as its workspace: none.
SG_MUST_USE sg_status_t sg_kda_recurrent_workspace_bytes(
    const sg_kda_geometry_t* geometry, const sg_target_t* target,
    const sg_batch_capacity_t* capacity, size_t* out_bytes);

// Enqueues the op on where->stream, eagerly or into a capture. Reads neither
// the chunk tables nor the workspace of |args|; they may be NULL.
SG_MUST_USE sg_status_t sg_kda_recurrent_enqueue(const sg_enqueue_t* where,
                                                 const sg_kda_args_t* args);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_KDA_RECURRENT_KDA_RECURRENT_H_
