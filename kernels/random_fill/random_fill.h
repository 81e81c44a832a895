// SPDX-License-Identifier: Apache-2.0
//
// Enqueues random_fill; see params.h for what it computes.

#ifndef STEPGRAPH_KERNELS_RANDOM_FILL_RANDOM_FILL_H_
#define STEPGRAPH_KERNELS_RANDOM_FILL_RANDOM_FILL_H_

#include "kernels/random_fill/params.h"
#include "runtime/base/dtype.h"
#include "runtime/hip/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor [rows, row_elements] and what its elements are to be.
typedef struct sg_random_fill_args_t {
  // On the device.
  void* data;
  sg_dtype_t dtype;
  int64_t rows;
  int64_t row_elements;
  // Elements between rows, at least row_elements.
  int64_t row_stride;
  // Elements depend on seed, row and column alone.
  uint64_t seed;
  // Standard deviation, rounded to 14 significant bits, and mean.
  float scale;
  float offset;
} sg_random_fill_args_t;

// |args| is copied. No rows or no elements are success and nothing done.
// SG_STATUS_INVALID_ARGUMENT for sizes below 0, a stride below the row, a row
// of 2^31 elements or more, or a scale or offset that is not finite.
SG_MUST_USE sg_status_t sg_random_fill_enqueue(
    const sg_enqueue_t* where, const sg_random_fill_args_t* args);

// Handle of the kernel, from the flavour's device code.
const void* random_fill_handle(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_KERNELS_RANDOM_FILL_RANDOM_FILL_H_
