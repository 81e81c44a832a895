// SPDX-License-Identifier: Apache-2.0
//
// step_done: the last node of a step. It tells the host, through mapped pinned
// memory, that the step has ended and which fault it met, so that the host
// learns both by plain reads.
//
//   where the step had an error: mailbox.error, unless the host has not read
//   the one before; mailbox.error_steps grows by one
//   mailbox.completed_step = cursor.current_step, written last
//
// Constraints
//   grid    1 block, any block size; one thread works

#ifndef STEPGRAPH_KERNELS_STEP_DONE_PARAMS_H_
#define STEPGRAPH_KERNELS_STEP_DONE_PARAMS_H_

#include "runtime/base/batch_layout.h"

typedef struct sg_step_done_params_t {
  const sg_step_cursor_t* cursor;
  const sg_batch_counts_t* counts;
  sg_step_mailbox_t* mailbox;
} sg_step_done_params_t;

#endif  // STEPGRAPH_KERNELS_STEP_DONE_PARAMS_H_
