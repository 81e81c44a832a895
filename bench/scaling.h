// SPDX-License-Identifier: Apache-2.0
//
// Whether the time of a token depends on how many there are and how many
// sequences they belong to. Cases take turns within a second, since a machine's
// clock drifts by more over minutes than they may differ, and each is compared
// with the longest one of its own turn.

#ifndef STEPGRAPH_BENCH_SCALING_H_
#define STEPGRAPH_BENCH_SCALING_H_

#include <stdint.h>

#include "bench/kda_layer.h"
#include "schemas/json_writer.h"

enum { SCALING_CASES = 5 };

// Measures |repeats| turns of |cases|, the last of which is the longest, prints
// a table and writes the member "scaling": an array of cases with the median of
// a token's time, and median, p10 and p90 of its ratio to the longest case's.
SG_MUST_USE sg_status_t scaling_run(const bench_case_t cases[SCALING_CASES],
                                    int32_t repeats, sg_json_writer_t* writer);

#endif  // STEPGRAPH_BENCH_SCALING_H_
