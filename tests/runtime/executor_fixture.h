// SPDX-License-Identifier: Apache-2.0
//
// An executor over the toy program with its buffers on the device, and the
// state and outputs that the model of the toy layer expects.

#ifndef STEPGRAPH_TESTS_RUNTIME_EXECUTOR_FIXTURE_H_
#define STEPGRAPH_TESTS_RUNTIME_EXECUTOR_FIXTURE_H_

#include "runtime/executor.h"
#include "tests/runtime/toy_program.h"

enum {
  FIXTURE_MAX_TOKENS = 96,
  FIXTURE_MAX_SEQUENCES = 24,
  FIXTURE_SLOTS = 40,
  FIXTURE_NULL_SLOT = 5,
};

typedef struct fixture_options_t {
  int32_t ring_depth;
  int32_t verify_every;
  sg_table_source_t tables;
  bool always_eager;
  sg_capture_time_t capture;
  sg_no_match_t on_no_match;
  double max_padding_ratio;
  uint64_t memory_budget_bytes;
  // Capture as the policy says at set-up.
  bool captured;
  // Pieces, one layer each, and whether the caller has launches of its own.
  int32_t piece_count;
  bool foreign;
  // Layers of an uncut step.
  int32_t layers;
  // Buffers of the executor's own instead of the test's.
  bool owned;
  int device;
  sg_log_function_t log;
  void* log_self;
  sg_allocator_t allocator;
} fixture_options_t;

// Ring of 64, device tables, everything captured, the system allocator.
fixture_options_t fixture_defaults(void);

typedef struct fixture_t {
  toy_program_t toy;
  sg_shapes_t shapes;
  sg_context_t* context;
  sg_executor_t* executor;
  hipStream_t stream;
  void* device[TOY_BUFFER_COUNT];
  // Device memory that foreign work counts in.
  uint64_t* foreign_counter;
  // Pinned: the inputs, and outputs as last read.
  uint64_t* x;
  uint64_t* o;
  // What the model says.
  uint64_t model_state[FIXTURE_SLOTS];
  uint64_t model_o[FIXTURE_MAX_TOKENS];
  // Tokens that each slot has seen, for making batches.
  int32_t computed[FIXTURE_SLOTS];
  uint64_t random;
  bool owned;
} fixture_t;

// Exits with 77 where there is no device.
void fixture_set_up(fixture_t* fixture, const fixture_options_t* options);
void fixture_tear_down(fixture_t* fixture);

uint64_t fixture_random(fixture_t* fixture);

// A batch with its arrays.
typedef struct test_batch_t {
  int32_t query_lens[FIXTURE_MAX_SEQUENCES];
  int32_t computed_lens[FIXTURE_MAX_SEQUENCES];
  int32_t slots[FIXTURE_MAX_SEQUENCES];
  sg_batch_t batch;
} test_batch_t;

// A random legal batch: decodes, prefills, empty sequences, sequences without a
// slot and some in the null slot.
void fixture_random_batch(fixture_t* fixture, test_batch_t* out_batch);

// Applies |batch| to the model.
void fixture_apply(fixture_t* fixture, const sg_batch_t* batch);

// Runs |batch| on the executor and the model; checks outputs and all slots.
void fixture_step(fixture_t* fixture, const sg_batch_t* batch,
                  sg_step_report_t* out_report);

// Waits, reads the slots and compares them with the model.
void fixture_check_state(fixture_t* fixture);

#endif  // STEPGRAPH_TESTS_RUNTIME_EXECUTOR_FIXTURE_H_
