// SPDX-License-Identifier: Apache-2.0
//
// step_done on a GPU: one thread writes to the host's memory. Work of earlier
// kernels is complete when it starts; releases keep its own order.

#include "kernels/common/device.h"
#include "kernels/step_done/params.h"

SG_DEVICE void record_error(const sg_step_done_params_t* p) {
  sg_step_mailbox_t* mailbox = p->mailbox;
  const uint64_t steps = sg_system_load(&mailbox->error_steps);
  const uint64_t written = sg_system_load(&mailbox->errors_written);
  sg_system_store(&mailbox->error_steps, steps + 1);
  if (sg_system_load(&mailbox->errors_read) != written) return;
  sg_step_error_record_t* error = &mailbox->error;
  error->step = p->cursor->current_step;
  error->value = p->counts->error_value;
  error->code = p->counts->error_code;
  error->sequence = p->counts->error_sequence;
  sg_system_store(&mailbox->errors_written, written + 1);
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(SG_WAVE, 1)
    step_done(sg_step_done_params_t params) {
  if (sg_thread() != 0) return;
  const sg_step_done_params_t* p = &params;
  if (p->counts->error_code != SG_STEP_ERROR_NONE) record_error(p);
  sg_system_store(&p->mailbox->completed_step, p->cursor->current_step);
}

extern "C" const void* step_done_handle(void) {
  return sg_kernel_handle(step_done);
}
