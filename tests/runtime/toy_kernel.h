// SPDX-License-Identifier: Apache-2.0
//
// A layer that any mistake of the runtime shows in: each slot holds a 64-bit
// number, each token of a sequence multiplies it by 31 and adds the token's
// input, and the output is the number after that. A step that is lost, doubled,
// reordered or sees old data gives another number.

#ifndef STEPGRAPH_TESTS_RUNTIME_TOY_KERNEL_H_
#define STEPGRAPH_TESTS_RUNTIME_TOY_KERNEL_H_

#include <stdint.h>

#include "runtime/base/batch_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TOY_MULTIPLIER = 31 };

typedef struct toy_params_t {
  const sg_batch_counts_t* counts;
  const int32_t* query_start_loc;
  const int32_t* computed_lens;
  const int32_t* slots;
  const uint64_t* x;
  uint64_t* state;
  uint64_t* o;
  int32_t null_slot;
  int32_t token_capacity;
} toy_params_t;

const void* toy_layer_handle(void);

// Spins until *flag is not 0; holds a stream back while a test queues work.
typedef struct gate_params_t {
  const uint64_t* flag;
} gate_params_t;

const void* gate_handle(void);

// Adds 1 to *counter.
typedef struct add_one_params_t {
  uint64_t* counter;
} add_one_params_t;

const void* add_one_handle(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_TESTS_RUNTIME_TOY_KERNEL_H_
