// SPDX-License-Identifier: Apache-2.0
//
// The whole life of an executor over the toy program, for tests in which HIP
// calls or allocations fail on the way. Nothing in it asserts that a call of
// the executor succeeds.

#ifndef STEPGRAPH_TESTS_RUNTIME_FAULTY_EXECUTOR_H_
#define STEPGRAPH_TESTS_RUNTIME_FAULTY_EXECUTOR_H_

#include "runtime/executor.h"
#include "tests/base/counting_allocator.h"
#include "tests/runtime/toy_program.h"

enum {
  FAULTY_TOKENS = 64,
  FAULTY_SEQUENCES = 12,
  FAULTY_SLOTS = 16,
  FAULTY_SHAPES = 3,
  FAULTY_STEPS = 8,
};

// Buffers and a stream of the test's own, made before anything fails.
typedef struct faulty_world_t {
  toy_program_t toy;
  sg_shapes_t shapes;
  hipStream_t stream;
  sg_buffer_binding_t bindings[TOY_BUFFER_COUNT];
  uint64_t x[FAULTY_TOKENS];
  // May be set between lives.
  int32_t verify_every;
  sg_capture_time_t capture;
  // States after so many steps.
  uint64_t model[FAULTY_STEPS + 1][FAULTY_SLOTS];
} faulty_world_t;

// |count| calls of |name| fail, from the |nth| of the executor's on.
typedef struct faulty_order_t {
  const char* name;
  uint64_t nth;
  uint64_t count;
  hipError_t error;
} faulty_order_t;

// What became of a life.
typedef struct faulty_life_t {
  sg_status_t create, bind, capture;
  // The status of the first step that failed, or OK.
  sg_status_t run;
  // Steps that succeeded before it.
  int steps;
  // What running again after a failure gave.
  sg_status_t again;
  // Shapes whose capture failed, with the last status.
  int failed_shapes;
  // Calls of the order's name.
  uint64_t calls;
  sg_status_t shape_status;
  sg_step_report_t reports[FAULTY_STEPS];
} faulty_life_t;

void faulty_set_up(faulty_world_t* world);
void faulty_tear_down(faulty_world_t* world);

// Step number |step| of a life. Steps 0 to 6 fit a shape, the last fits none.
sg_batch_t faulty_batch(int step);

// The shape that the step runs in, or -1.
int faulty_shape(int step);

// Creates, binds, captures and runs until something fails; then withdraws the
// order, destroys the executor, and checks what holds whatever failed: the
// state is that after the steps that succeeded (or after the one that failed,
// which may have been enqueued whole), and no memory, stream, event or graph is
// left. |order| may be NULL.
void faulty_live(faulty_world_t* world, counting_allocator_t* counting,
                 const faulty_order_t* order, faulty_life_t* out_life);

#endif  // STEPGRAPH_TESTS_RUNTIME_FAULTY_EXECUTOR_H_
