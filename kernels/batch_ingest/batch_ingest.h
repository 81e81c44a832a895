// SPDX-License-Identifier: Apache-2.0
//
// Enqueues batch_ingest; see params.h for what it does.

#ifndef STEPGRAPH_KERNELS_BATCH_INGEST_BATCH_INGEST_H_
#define STEPGRAPH_KERNELS_BATCH_INGEST_BATCH_INGEST_H_

#include "kernels/batch_ingest/params.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// |params| is copied. Fails with SG_STATUS_INVALID_ARGUMENT when a capacity is
// beyond that of the ring's layout; chunks count where tables travel in it.
SG_MUST_USE sg_status_t sg_batch_ingest_enqueue(
    const sg_enqueue_t* where, const sg_batch_ingest_params_t* params);

// Handle of the kernel, from the flavour's device code.
const void* batch_ingest_handle(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_BATCH_INGEST_BATCH_INGEST_H_
