// SPDX-License-Identifier: Apache-2.0
//
// What the conformance tests share. They use what HIP and CUDA both document
// and nothing of the host's runtime, so that they run in every flavour.

#ifndef STEPGRAPH_TESTS_HIP_CONFORMANCE_H_
#define STEPGRAPH_TESTS_HIP_CONFORMANCE_H_

// cmocka.h needs these four before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// Then cmocka itself.
#include <cmocka.h>

#include "runtime/hip/hip.h"
#include "tests/hip/conformance_kernels.h"

// A macro, so that a failure names the line of the test.
#define assert_hip(expected, expression) \
  assert_int_equal((int)(expression), (int)(expected))
#define assert_hip_ok(expression) assert_hip(hipSuccess, expression)

// cmocka's group setup and teardown. The setup loads every kernel, which must
// not happen for the first time in a capture or behind a kernel that spins.
int conformance_set_up(void** state);
int conformance_tear_down(void** state);

// Works on a stream of its own for a while: work elsewhere that is not held
// back as it should be gets the time to run too soon.
void conformance_let_run(void);

// 0, or 77 for "skipped" where there is no device.
int conformance_exit_code_without_device(void);

// Device memory of |count| zeroed numbers, and its contents after everything
// enqueued has finished.
int32_t* conformance_numbers(size_t count);
void conformance_read(const int32_t* numbers, int32_t* out_values,
                      size_t count);

// One launch each; the result is that of hipLaunchKernel.
hipError_t conformance_add(hipStream_t stream, int32_t* values, int32_t count,
                           int32_t addend);
hipError_t conformance_append(hipStream_t stream, int32_t* log, int32_t* cursor,
                              int32_t value);

// A gate holds a stream: work enqueued behind it waits until it is opened.
typedef struct conformance_gate_t {
  uint32_t* flag;
  uint32_t* device_flag;
} conformance_gate_t;

conformance_gate_t conformance_gate_close(hipStream_t stream);
void conformance_gate_open(conformance_gate_t* gate);
// Frees the gate; everything enqueued must have finished.
void conformance_gate_destroy(conformance_gate_t* gate);

#endif  // STEPGRAPH_TESTS_HIP_CONFORMANCE_H_
