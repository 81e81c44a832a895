// SPDX-License-Identifier: Apache-2.0
//
// Every kernel launch of the library goes through sg_launch_enqueue. A trace
// given to it sees each launch, which is how the node table of a graph comes
// about without asking the runtime what it recorded.

#ifndef STEPGRAPH_RUNTIME_HIP_LAUNCH_H_
#define STEPGRAPH_RUNTIME_HIP_LAUNCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/hip/hip.h"
#include "runtime/hip/target.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_param_type_t {
  SG_PARAM_I32 = 0,
  SG_PARAM_U32,
  SG_PARAM_I64,
  SG_PARAM_U64,
  SG_PARAM_F32,
  // An address on the device; dumps show the buffer that holds it.
  SG_PARAM_POINTER,
} sg_param_type_t;

// One member of a params struct, for dumps.
typedef struct sg_param_field_t {
  const char* name;
  uint32_t offset;
  sg_param_type_t type;
} sg_param_field_t;

#define SG_PARAM_FIELD(struct_type, member, param_type) \
  { #member, (uint32_t)offsetof(struct_type, member), (param_type) }

// A kernel as launchers know it. Lives as long as the program.
typedef struct sg_kernel_t {
  // Folder of the op under kernels/, e.g. "kda_chunk".
  const char* op;
  // e.g. "kda_chunk_scan".
  const char* name;
  // Accessor that the device code exports; the handle is what hipLaunchKernel
  // takes.
  const void* (*handle)(void);
  // The one params struct that the kernel takes by value, and its members in
  // the order of their offsets.
  size_t params_bytes;
  const sg_param_field_t* fields;
  size_t field_count;
} sg_kernel_t;

typedef struct sg_launch_t {
  const sg_kernel_t* kernel;
  // Layer of the model, or -1 for work that belongs to the whole step.
  int32_t layer;
  // Blocks and threads a block, along x.
  uint32_t grid;
  uint32_t block;
  uint32_t shared_bytes;
  // kernel->params_bytes bytes, copied by the launch.
  const void* params;
} sg_launch_t;

// Sees every launch after it was enqueued.
typedef struct sg_launch_trace_t {
  void* self;
  // Asked before each launch; where it says no, nothing is enqueued and add is
  // not called. NULL wants every launch.
  bool (*wants)(void* self, const sg_launch_t* launch);
  sg_status_t (*add)(void* self, const sg_launch_t* launch);
} sg_launch_trace_t;

// Where an op puts its launches.
typedef struct sg_enqueue_t {
  hipStream_t stream;
  // May be NULL.
  const sg_launch_trace_t* trace;
  const sg_target_t* target;
  int32_t layer;
} sg_enqueue_t;

// Enqueues one kernel on where->stream, eagerly or into a capture. A grid of 0
// is no work: nothing is launched and nothing traced. Never waits, never
// allocates. SG_STATUS_UNSUPPORTED when block or shared memory are beyond the
// target's, or the grid beyond 2^31 - 1. Errors name the op, the kernel and the
// layer.
SG_MUST_USE sg_status_t sg_launch_enqueue(const sg_enqueue_t* where,
                                          const sg_launch_t* launch);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_HIP_LAUNCH_H_
