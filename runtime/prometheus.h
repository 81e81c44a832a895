// SPDX-License-Identifier: Apache-2.0
//
// An executor's statistics as text that Prometheus scrapes.

#ifndef STEPGRAPH_RUNTIME_PROMETHEUS_H_
#define STEPGRAPH_RUNTIME_PROMETHEUS_H_

#include <stddef.h>

#include "runtime/executor.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

// Writes at most |capacity| bytes to |out_text|, a NUL at the end included, and
// sets |out_bytes| to what the whole text needs without the NUL, so that a call
// with capacity 0 (and out_text NULL) tells the size. The text is in the
// exposition format 0.0.4, each metric with its HELP and TYPE line:
//
//   stepgraph_steps_total{phase}           steps by phase
//   stepgraph_graph_steps_total{shape}     replays by shape
//   stepgraph_eager_steps_total{reason}    eager steps by reason
//   stepgraph_tokens_total{kind}           real and padded tokens
//   stepgraph_sequences_total              sequences
//   stepgraph_busy_calls_total             calls that found the ring full
//   stepgraph_error_steps_total            steps with a fault
//   stepgraph_verified_steps_total         steps run twice
//   stepgraph_mismatched_rows_total        differences among them
//   stepgraph_memory_bytes{kind}           device, pinned, graphs
//   stepgraph_graphs                       shapes with a graph
//
// Allocates nothing. Used as the executor is: by one thread at a time.
void sg_prometheus_write(const sg_executor_t* executor,
                         const sg_shapes_t* shapes, size_t capacity,
                         char* out_text, size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_PROMETHEUS_H_
