// SPDX-License-Identifier: Apache-2.0
//
// The clock of benchmarks.

#ifndef STEPGRAPH_BENCH_TIMING_H_
#define STEPGRAPH_BENCH_TIMING_H_

double timing_now_ms(void);

// Lets threads that may be polling go to sleep.
void timing_rest(void);

#endif  // STEPGRAPH_BENCH_TIMING_H_
