// SPDX-License-Identifier: Apache-2.0

#include "kernels/step_done/step_done.h"

static const sg_param_field_t fields[] = {
    SG_PARAM_FIELD(sg_step_done_params_t, cursor, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_step_done_params_t, counts, SG_PARAM_POINTER),
    SG_PARAM_FIELD(sg_step_done_params_t, mailbox, SG_PARAM_POINTER),
};

static const sg_kernel_t kernel = {
    .op = "step_done",
    .name = "step_done",
    .handle = step_done_handle,
    .params_bytes = sizeof(sg_step_done_params_t),
    .fields = fields,
    .field_count = sizeof(fields) / sizeof(fields[0]),
};

sg_status_t sg_step_done_enqueue(const sg_enqueue_t* where,
                                 const sg_step_done_params_t* params) {
  uint32_t threads = (uint32_t)where->target->wave_size;
  return sg_launch_enqueue(where, &(sg_launch_t){.kernel = &kernel,
                                                 .layer = where->layer,
                                                 .grid = 1,
                                                 .block = threads,
                                                 .params = params});
}
