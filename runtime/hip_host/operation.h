// SPDX-License-Identifier: Apache-2.0
//
// The work that streams queue and graphs record: one kernel, copy, fill or call
// of a host function.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_OPERATION_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_OPERATION_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/hip/hip.h"
#include "runtime/hip/host_kernel.h"

enum {
  // Most bytes of a kernel's params, as HIP and CUDA both allow.
  SG_HOST_PARAMS_CAPACITY_BYTES = 4096,
  SG_HOST_MAX_BLOCK_THREADS = 1024,
  SG_HOST_MAX_GRID_YZ = 65535,
};

// Most dynamic shared memory of a block.
#define SG_HOST_SHARED_BYTES ((size_t)1 << 20)

typedef enum sg_host_operation_kind_t {
  SG_HOST_OPERATION_EMPTY = 0,
  SG_HOST_OPERATION_KERNEL,
  SG_HOST_OPERATION_COPY,
  SG_HOST_OPERATION_FILL,
  SG_HOST_OPERATION_CALL,
} sg_host_operation_kind_t;

typedef struct sg_host_kernel_launch_t {
  const sg_host_kernel_t* kernel;
  uint32_t grid;
  // As launched; the host uses their product alone.
  uint32_t block[3];
  uint32_t shared_bytes;
  // kernel->params_bytes bytes, owned by whatever holds the operation.
  const void* params;
} sg_host_kernel_launch_t;

// |height| rows of |width_bytes|; a plain copy is one row.
typedef struct sg_host_copy_t {
  void* target;
  size_t target_pitch_bytes;
  const void* source;
  size_t source_pitch_bytes;
  size_t width_bytes;
  size_t height;
  hipMemcpyKind kind;
} sg_host_copy_t;

// |height| rows of |width| elements of 1, 2 or 4 bytes.
typedef struct sg_host_fill_t {
  void* target;
  size_t pitch_bytes;
  uint32_t value;
  uint32_t element_bytes;
  size_t width;
  size_t height;
} sg_host_fill_t;

typedef struct sg_host_operation_t {
  sg_host_operation_kind_t kind;
  union {
    sg_host_kernel_launch_t launch;
    sg_host_copy_t copy;
    sg_host_fill_t fill;
    struct {
      hipHostFn_t function;
      void* data;
    } call;
  };
} sg_host_operation_t;

// Bytes of params that |operation| carries.
size_t sg_host_operation_params_bytes(const sg_host_operation_t* operation);

// Copies |from| with its params, which go to |params|.
void sg_host_operation_copy(sg_host_operation_t* out_to,
                            const sg_host_operation_t* from, void* params);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_OPERATION_H_
