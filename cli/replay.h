// SPDX-License-Identifier: Apache-2.0
//
// Runs the batches of a source through a session and measures each step.

#ifndef STEPGRAPH_CLI_REPLAY_H_
#define STEPGRAPH_CLI_REPLAY_H_

#include "cli/report.h"
#include "cli/session.h"
#include "cli/source.h"
#include "cli/terminal.h"

#ifdef __cplusplus
extern "C" {
#endif

// Captures the graphs of a session whose policy says so, showing progress.
// Failures of single shapes are told and leave them without a graph.
SG_MUST_USE sg_status_t sg_replay_capture(const sg_session_t* session,
                                          sg_terminal_t* terminal,
                                          sg_report_t* report);

// Runs every batch of |source|, and fills in |report| also where it fails.
SG_MUST_USE sg_status_t sg_replay_run(const sg_session_t* session,
                                      sg_source_t* source, uint64_t seed,
                                      sg_terminal_t* terminal,
                                      sg_report_t* report);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_REPLAY_H_
