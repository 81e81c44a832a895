// SPDX-License-Identifier: Apache-2.0
//
// A small continuous-batching scheduler: turns a trace of requests into the
// batches that a serving engine would form. Pure logic; it knows no device and
// reads no clock, so that the same trace gives the same batches each time.
//
// A step has at most limits.max_tokens tokens and limits.max_sequences
// sequences. Requests that decode come first, one token each, then prompts in
// progress, then new requests, each in order of arrival; a prompt takes what is
// left of the budget and goes on in the next step (chunked prefill). A request
// is admitted when a slot is free and the running ones are fewer than
// max_sequences; it keeps its slot to its end. Slots are given out longest
// unused first. A request of n input and m output tokens is n + m - 1 tokens of
// work, since the prefill gives the first output token.

#ifndef STEPGRAPH_CLI_SCHEDULER_H_
#define STEPGRAPH_CLI_SCHEDULER_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/batch.h"
#include "schemas/requests.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

// Used by one thread at a time.
typedef struct sg_scheduler_t sg_scheduler_t;

// What the virtual clock takes a step of |token_count| tokens for: 1 ms and
// 1 us a token.
static inline int64_t sg_virtual_step_ns(int64_t token_count) {
  return 1000000 + 1000 * token_count;
}

// |requests| is sorted by arrival and must outlive the scheduler.
SG_MUST_USE sg_status_t sg_scheduler_create(sg_allocator_t allocator,
                                            const sg_requests_t* requests,
                                            sg_shape_limits_t limits,
                                            int32_t slot_count,
                                            sg_scheduler_t** out_scheduler);

// Accepts NULL.
void sg_scheduler_destroy(sg_scheduler_t* scheduler);

// Admits what has arrived by |now_ns| and forms the next batch: the sequences
// of one token with a computed length first, then the others. Returns false
// when nothing has arrived that is not finished. The arrays belong to the
// scheduler and last until its next call. Each batch must be followed by
// sg_scheduler_complete before the next one is formed.
bool sg_scheduler_next(sg_scheduler_t* scheduler, int64_t now_ns,
                       sg_batch_t* out_batch);

// The tokens of the batch formed last are computed: finished requests leave
// and give their slots back.
void sg_scheduler_complete(sg_scheduler_t* scheduler);

// When the first request comes that was not admitted yet, or INT64_MAX.
int64_t sg_scheduler_next_arrival_ns(const sg_scheduler_t* scheduler);

// Requests that are finished.
int64_t sg_scheduler_finished(const sg_scheduler_t* scheduler);

// Tokens of work in all requests: sum of input + output - 1.
int64_t sg_requests_work_tokens(const sg_requests_t* requests);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_SCHEDULER_H_
