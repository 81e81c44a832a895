// SPDX-License-Identifier: Apache-2.0

#include "kernels/step_done/step_done.h"
#include "runtime/base/shared_word.h"
#include "runtime/hip/host_kernel.h"

static void record_error(const sg_step_done_params_t* p) {
  sg_step_mailbox_t* mailbox = p->mailbox;
  sg_store_release(&mailbox->error_steps, mailbox->error_steps + 1);
  if (sg_load_acquire(&mailbox->errors_read) != mailbox->errors_written) return;
  mailbox->error = (sg_step_error_record_t){
      .step = p->cursor->current_step,
      .value = p->counts->error_value,
      .code = p->counts->error_code,
      .sequence = p->counts->error_sequence,
  };
  sg_store_release(&mailbox->errors_written, mailbox->errors_written + 1);
}

static void run_block(const void* params, const sg_host_block_t* block) {
  (void)block;
  const sg_step_done_params_t* p = params;
  if (p->counts->error_code != SG_STEP_ERROR_NONE) record_error(p);
  sg_store_release(&p->mailbox->completed_step, p->cursor->current_step);
}

const void* step_done_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "step_done",
      .params_bytes = sizeof(sg_step_done_params_t),
      .run_block = run_block,
  };
  return &kernel;
}
