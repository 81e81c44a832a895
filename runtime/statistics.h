// SPDX-License-Identifier: Apache-2.0
//
// What an executor has done so far.

#ifndef STEPGRAPH_RUNTIME_STATISTICS_H_
#define STEPGRAPH_RUNTIME_STATISTICS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/shape_choice.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_statistics_t {
  // Accepted steps; the sum of the phases, and of graph and eager steps.
  uint64_t steps;
  uint64_t steps_by_phase[SG_PHASE_COUNT];
  uint64_t graph_steps;
  uint64_t eager_steps;
  uint64_t eager_by_reason[SG_EAGER_REASON_COUNT];
  // Tokens of the batches, and rows beyond them that replayed graphs have.
  uint64_t real_tokens;
  uint64_t padded_tokens;
  uint64_t sequences;
  // Calls that found the ring full; they are not steps.
  uint64_t busy_calls;
  // Steps in which the device found a fault; grows as they end.
  uint64_t error_steps;
  // Steps run twice and compared, and rows or slots that differed, so far.
  uint64_t verified_steps;
  uint64_t mismatched_rows;
  // Host and device memory that the executor allocated, without graphs.
  size_t pinned_bytes;
  size_t device_bytes;
} sg_statistics_t;

// Of one shape, in the order of the shapes file.
typedef struct sg_shape_statistics_t {
  uint64_t hits;
  bool captured;
  size_t node_count;
  uint64_t capture_ns;
  // Change of free device memory over capture and instantiation.
  int64_t graph_bytes;
} sg_shape_statistics_t;

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_STATISTICS_H_
