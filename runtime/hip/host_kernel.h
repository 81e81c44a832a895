// SPDX-License-Identifier: Apache-2.0
//
// What a kernel handle points to in the host flavour. A kernel is a C function
// that does the work of one block; blocks of a launch run in any order and on
// several threads at once.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_KERNEL_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

typedef struct sg_host_block_t {
  // This block and how many there are, along x.
  uint32_t index;
  uint32_t grid;
  // Threads a block that the launch asked for; the host runs one.
  uint32_t threads;
  // Workers that take blocks of this launch, at least 1.
  uint32_t workers;
  // Scratch of this block, aligned to 64 bytes, with undefined contents: what
  // the launch asked for as dynamic shared memory.
  void* shared;
  size_t shared_bytes;
} sg_host_block_t;

typedef void (*sg_host_kernel_function_t)(const void* params,
                                          const sg_host_block_t* block);

typedef struct sg_host_kernel_t {
  const char* name;
  // Size of the one params struct that the launch passes by value.
  size_t params_bytes;
  sg_host_kernel_function_t run_block;
} sg_host_kernel_t;

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_KERNEL_H_
