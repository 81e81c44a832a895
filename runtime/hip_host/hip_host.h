// SPDX-License-Identifier: Apache-2.0
//
// Control of the CPU's HIP runtime: counters, injected failures and settings.
// Only the host flavour has these; programs that use HIP alone need none of
// them. docs/hip_host.md describes the runtime itself.
//
// Every function may be called from any thread at any time, also in a capture,
// unless its comment says otherwise. None of them counts as a HIP call.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_HIP_HOST_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_HIP_HOST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/hip/hip.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Counters ---

// Sums over the calls since the last reset, failed and refused ones included.
// A call may be in several sums: hipFree waits and is an allocation call.
typedef struct sg_hip_host_counters_t {
  // All HIP calls.
  uint64_t calls;
  // Calls that can wait for the device: hip*Synchronize, hipMemcpy, hipMemset,
  // hipFree, hipHostFree, and asynchronous copies that touch pageable memory.
  uint64_t waits;
  // hipStreamQuery and hipEventQuery.
  uint64_t queries;
  // hipMalloc, hipHostMalloc, hipFree and their kin, and every growth of the
  // pool of commands.
  uint64_t allocations;
  // Growths of the pool of commands alone: more commands were queued at once
  // than ever before.
  uint64_t pool_growths;
  // Asynchronous copies that touched pageable memory.
  uint64_t pageable_copies;
} sg_hip_host_counters_t;

// Fills in |out_counters|.
void sg_hip_host_get_counters(sg_hip_host_counters_t* out_counters);

// Calls of the HIP function |name|, e.g. "hipGraphLaunch", since the last
// reset; 0 for a name that the runtime does not have.
uint64_t sg_hip_host_call_count(const char* name);

// Sets every counter to zero.
void sg_hip_host_reset_counters(void);

// --- Failures ---

// Makes |count| calls of the HIP function |name| return |error| and do nothing,
// beginning with the |nth| following one (1: the next). hipStreamEndCapture
// still ends the capture and discards its graph. A later order for the same
// name replaces the earlier; |count| 0 withdraws it. hipErrorInvalidValue for
// an unknown name or an |nth| of 0.
hipError_t sg_hip_host_fail_calls(const char* name, uint64_t nth,
                                  uint64_t count, hipError_t error);

// Enqueues an asynchronous fault on |stream|. When the stream comes to it, the
// device is broken as by a bad access in a kernel: nothing that is queued on
// it runs any more, and every later call that enqueues, waits or queries there
// returns |error|, until sg_hip_host_reset_faults. hipErrorInvalidHandle if
// |stream| is none, hipErrorStreamCaptureUnsupported if it is capturing.
hipError_t sg_hip_host_enqueue_fault(hipStream_t stream, hipError_t error);

// Withdraws all orders of sg_hip_host_fail_calls and mends broken devices.
void sg_hip_host_reset_faults(void);

// --- Settings ---

// Strict mode, on at first: while a thread has an ongoing capture, of whatever
// mode, and on every stream that takes part in one, what a step must not do is
// refused with hipErrorStreamCaptureUnsupported and invalidates the capture:
// waiting calls, queries, allocations and frees, copies of pageable memory.
// With strict mode off, HIP's capture modes alone decide.
void sg_hip_host_set_strict(bool strict);

// Fills the dynamic shared memory of every block with 0xFF bytes before the
// block runs, so that a float read before it is written is NaN. Off at first.
void sg_hip_host_set_poison(bool poison);

// Number of threads that execute blocks, 1 to 256. At first the number of
// online CPUs, and at least 2. Waits until all queues are empty.
// hipErrorInvalidValue when out of range.
hipError_t sg_hip_host_set_worker_count(int count);

// Number of devices, 0 to 16; 1 at first. Objects of devices beyond it keep
// working. hipErrorInvalidValue when out of range.
hipError_t sg_hip_host_set_device_count(int count);

// Bytes that hipMalloc may hand out on |device|, which is also what
// hipMemGetInfo and the device's properties report as its total; the machine's
// memory at first. Allocations that exist stay. hipErrorInvalidDevice if there
// is no such device.
hipError_t sg_hip_host_set_memory_limit(int device, size_t limit_bytes);

// Bytes that hipMalloc has handed out on |device|, page-rounded, and those of
// its executable graphs; 0 if there is no such device.
size_t sg_hip_host_memory_in_use(int device);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_HIP_HOST_H_
