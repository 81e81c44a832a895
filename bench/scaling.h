// SPDX-License-Identifier: Apache-2.0
//
// Whether the time of a token depends on how many there are and how many
// sequences they belong to. Cases take turns within a second, since a machine's
// clock drifts by more over minutes than they may differ, and each is compared
// with the longest one of its own turn.

#ifndef STEPGRAPH_BENCH_SCALING_H_
#define STEPGRAPH_BENCH_SCALING_H_

#include <stdint.h>

#include "schemas/json_writer.h"

// Measures |repeats| turns, prints a table and writes the member "scaling": an
// array of cases with the median of a token's time, and median, p10 and p90 of
// its ratio to the longest case's.
SG_MUST_USE sg_status_t scaling_run(int32_t repeats, sg_json_writer_t* writer);

#endif  // STEPGRAPH_BENCH_SCALING_H_
