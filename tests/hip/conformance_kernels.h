// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the conformance tests: one params struct by value each, and an
// accessor of the handle that hipLaunchKernel takes. Written once for the
// device (.hip) and once for the host (_host.c).

#ifndef STEPGRAPH_TESTS_HIP_CONFORMANCE_KERNELS_H_
#define STEPGRAPH_TESTS_HIP_CONFORMANCE_KERNELS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// values[i] += addend for i < count; one thread a value, 64 threads a block.
typedef struct conformance_add_params_t {
  int32_t* values;
  int32_t count;
  int32_t addend;
} conformance_add_params_t;
enum { CONFORMANCE_ADD_THREADS = 64 };
const void* conformance_add_handle(void);

// Waits until *flag, which the host sets, is not 0. Gives up after some ten
// seconds, so that a failed test does not hang. One thread.
typedef struct conformance_spin_params_t {
  const volatile uint32_t* flag;
} conformance_spin_params_t;
const void* conformance_spin_handle(void);

// log[*cursor] = value, and advances *cursor. One thread.
typedef struct conformance_append_params_t {
  int32_t* log;
  int32_t* cursor;
  int32_t value;
} conformance_append_params_t;
const void* conformance_append_handle(void);

// Block b writes (b + 1) * (0 + 1 + ... + count - 1) to sums[b], by way of
// |count| numbers in dynamic shared memory. One thread a block.
typedef struct conformance_shared_params_t {
  int32_t* sums;
  int32_t count;
} conformance_shared_params_t;
const void* conformance_shared_handle(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_TESTS_HIP_CONFORMANCE_KERNELS_H_
