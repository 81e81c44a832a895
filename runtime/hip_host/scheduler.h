// SPDX-License-Identifier: Apache-2.0
//
// The workers. One worker at a time executes the head command of a stream; the
// blocks of a kernel are shared with every worker that has nothing to do.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_SCHEDULER_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_SCHEDULER_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hip/hip.h"

// Starts the workers if they do not run. Needs the lock.
hipError_t sg_host_scheduler_start(void);

// Tells the workers that a stream has a new command. Needs the lock.
void sg_host_scheduler_notify(void);

// Wakes sleeping workers until |wanted| are looking for blocks. Takes the lock.
void sg_host_scheduler_wake(uint32_t wanted);

// Whether the calling thread is a worker, as in a host function.
bool sg_host_scheduler_is_worker(void);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_SCHEDULER_H_
