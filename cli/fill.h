// SPDX-License-Identifier: Apache-2.0
//
// Puts seeded random numbers of realistic scale into a session's buffers. All
// of it is enqueued on the session's stream; the same seed gives the same
// numbers, whatever the flavour and the shapes.

#ifndef STEPGRAPH_CLI_FILL_H_
#define STEPGRAPH_CLI_FILL_H_

#include <stdint.h>

#include "cli/session.h"

#ifdef __cplusplus
extern "C" {
#endif

// The weights of every layer.
SG_MUST_USE sg_status_t sg_fill_weights(const sg_session_t* session,
                                        uint64_t seed);

// |token_count| rows of every input. Each |step| has other numbers.
SG_MUST_USE sg_status_t sg_fill_inputs(const sg_session_t* session,
                                       uint64_t seed, uint64_t step,
                                       int32_t token_count);

// What |slot| holds in every pool, for a sequence whose earlier steps did not
// run here.
SG_MUST_USE sg_status_t sg_fill_slot(const sg_session_t* session, uint64_t seed,
                                     int32_t slot);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_FILL_H_
