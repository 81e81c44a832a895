// SPDX-License-Identifier: Apache-2.0
//
// Thousands of random steps of a server, host and device batches in turn, each
// compared with the recurrence in double precision.

#ifndef STEPGRAPH_TESTS_GRAPHS_RANDOM_SERVING_H_
#define STEPGRAPH_TESTS_GRAPHS_RANDOM_SERVING_H_

#include "tests/graphs/kda_fixture.h"

typedef struct random_serving_t {
  kda_fixture_t fixture;
  // Device arrays of batches on the device.
  int32_t* query_start_loc;
  int32_t* computed_lens;
  int32_t* slots;
  int32_t* sequence_count;
} random_serving_t;

// One layer with convolution and norm, graphs as |capture| says.
void random_serving_set_up(random_serving_t* serving, sg_capture_time_t capture,
                           sg_allocator_t allocator, uint64_t seed);
void random_serving_tear_down(random_serving_t* serving);

// Runs |count| steps and checks each of them.
void random_serving_run(random_serving_t* serving, int count);

#endif  // STEPGRAPH_TESTS_GRAPHS_RANDOM_SERVING_H_
