// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip/error.h"

sg_status_t sg_status_from_hip_at(const char* file, int32_t line,
                                  hipError_t error, const char* call) {
  if (error == hipSuccess) return sg_status_ok();
  // The runtime keeps the error for a later hipGetLastError; it is reported
  // here, so it must not be met again by an unrelated launch.
  (void)hipGetLastError();
  sg_status_code_t code =
      error == hipErrorOutOfMemory ? SG_STATUS_OUT_OF_MEMORY : SG_STATUS_DEVICE;
  return sg_status_make_at(file, line, code, "%s returned %s (%d): %s", call,
                           hipGetErrorName(error), (int)error,
                           hipGetErrorString(error));
}
