// SPDX-License-Identifier: Apache-2.0
//
// Device memory and launches for tests of launching and recording: the toy
// layer on one slot, which shows how often it ran and in which order.

#ifndef STEPGRAPH_TESTS_RUNTIME_GRAPH_FIXTURE_H_
#define STEPGRAPH_TESTS_RUNTIME_GRAPH_FIXTURE_H_

#include "runtime/hip/launch.h"
#include "runtime/recorder.h"
#include "tests/runtime/toy_kernel.h"

enum { GRAPH_FIXTURE_INPUTS = 16 };

typedef struct graph_fixture_t {
  hipStream_t stream;
  // Holds gates back while 0; in mapped pinned memory.
  uint64_t* flag;
  const uint64_t* flag_device;
  sg_batch_counts_t* counts;
  int32_t* tables;
  uint64_t* x;
  uint64_t* state;
  uint64_t* o;
  // What *state should be by now.
  uint64_t expected;
} graph_fixture_t;

// Exits with 77 where there is no device.
void graph_fixture_set_up(graph_fixture_t* fixture);
void graph_fixture_tear_down(graph_fixture_t* fixture);

extern const sg_kernel_t graph_fixture_toy;
extern const sg_kernel_t graph_fixture_gate;

// The target of device 0.
const sg_target_t* graph_fixture_target(void);

// Enqueues the toy layer with input number |input| as |layer|.
SG_MUST_USE sg_status_t graph_fixture_toy_enqueue(
    const graph_fixture_t* fixture, hipStream_t stream,
    const sg_launch_trace_t* trace, int input, int32_t layer);

// Enqueues a wait for the flag.
SG_MUST_USE sg_status_t
graph_fixture_gate_enqueue(const graph_fixture_t* fixture, hipStream_t stream,
                           const sg_launch_trace_t* trace);

// The expected state after the layer ran with |input|.
void graph_fixture_expect(graph_fixture_t* fixture, int input);

// sg_graph_record of work that is traced whole.
SG_MUST_USE sg_status_t graph_fixture_record(sg_allocator_t allocator,
                                             hipStream_t stream,
                                             sg_record_function_t record,
                                             void* self, bool instantiate,
                                             sg_graph_t* out_graph);

// Waits for the stream and compares the state.
void graph_fixture_check(const graph_fixture_t* fixture);

// Runs the layer once without a capture and checks: the stream is usable and
// nothing else ran.
void graph_fixture_check_usable(graph_fixture_t* fixture);

#endif  // STEPGRAPH_TESTS_RUNTIME_GRAPH_FIXTURE_H_
