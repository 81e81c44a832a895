// SPDX-License-Identifier: Apache-2.0
//
// Executing operations. The worker that leads a kernel of several blocks opens
// its share; workers without work join in and take blocks until none is left.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_SHARE_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_SHARE_H_

#include <stdbool.h>

#include "runtime/hip_host/operation.h"

// A worker's shared memory for the block that it runs, and its share.
typedef struct sg_host_scratch_t sg_host_scratch_t;

// Makes the scratch of |count| workers. False if memory is exhausted.
bool sg_host_share_initialize(int count);
void sg_host_share_deinitialize(void);
sg_host_scratch_t* sg_host_share_scratch(int worker);

// Executes |operation| to its end on the calling worker and whoever helps.
void sg_host_operation_run(const sg_host_operation_t* operation,
                           sg_host_scratch_t* scratch);

// Runs blocks of other workers' kernels; whether there were any.
bool sg_host_share_help(sg_host_scratch_t* scratch);

// Whether a kernel has blocks to give away.
bool sg_host_share_is_open(void);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_SHARE_H_
