// SPDX-License-Identifier: Apache-2.0
//
// Runs the blocks of a host launch on the calling thread, in either order,
// which no result may depend on.

#ifndef STEPGRAPH_TESTS_KERNELS_RUN_BLOCKS_H_
#define STEPGRAPH_TESTS_KERNELS_RUN_BLOCKS_H_

#include <stdint.h>

#include "runtime/hip/host_kernel.h"

typedef enum block_order_t {
  BLOCKS_FORWARD = 0,
  BLOCKS_BACKWARD = 1,
} block_order_t;

static inline void run_blocks(const sg_host_kernel_t* kernel,
                              const void* params, uint32_t grid,
                              block_order_t order) {
  for (uint32_t i = 0; i < grid; ++i) {
    const sg_host_block_t block = {
        .index = order == BLOCKS_FORWARD ? i : grid - 1 - i,
        .grid = grid,
        .threads = 1,
        .workers = 1,
    };
    kernel->run_block(params, &block);
  }
}

#endif  // STEPGRAPH_TESTS_KERNELS_RUN_BLOCKS_H_
