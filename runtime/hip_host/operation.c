// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/operation.h"

#include <string.h>

size_t sg_host_operation_params_bytes(const sg_host_operation_t* operation) {
  if (operation->kind != SG_HOST_OPERATION_KERNEL) return 0;
  return operation->launch.kernel->params_bytes;
}

void sg_host_operation_copy(sg_host_operation_t* out_to,
                            const sg_host_operation_t* from, void* params) {
  *out_to = *from;
  if (from->kind != SG_HOST_OPERATION_KERNEL) return;
  size_t bytes = from->launch.kernel->params_bytes;
  if (bytes > 0) memcpy(params, from->launch.params, bytes);
  out_to->launch.params = params;
}
