// SPDX-License-Identifier: Apache-2.0
//
// Enqueues the verify kernels; see params.h for what they do.

#ifndef STEPGRAPH_KERNELS_VERIFY_VERIFY_H_
#define STEPGRAPH_KERNELS_VERIFY_VERIFY_H_

#include "kernels/verify/params.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// |params| are copied. |sequence_capacity| and |token_capacity| size the grid.
SG_MUST_USE sg_status_t sg_verify_snapshot_enqueue(
    const sg_enqueue_t* where, const sg_verify_slots_params_t* params,
    int32_t sequence_capacity);
SG_MUST_USE sg_status_t sg_verify_compare_slots_enqueue(
    const sg_enqueue_t* where, const sg_verify_slots_params_t* params,
    int32_t sequence_capacity);
SG_MUST_USE sg_status_t sg_verify_compare_rows_enqueue(
    const sg_enqueue_t* where, const sg_verify_rows_params_t* params,
    int32_t token_capacity);

// Handles of the kernels, from the flavour's device code.
const void* slot_snapshot_handle(void);
const void* compare_slots_handle(void);
const void* compare_rows_handle(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_VERIFY_VERIFY_H_
