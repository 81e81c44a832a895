// SPDX-License-Identifier: Apache-2.0
//
// Names and descriptions of HIP's errors.

#include <stddef.h>

#include "runtime/hip_host/runtime.h"

typedef struct error_info_t {
  hipError_t error;
  const char* name;
  const char* text;
} error_info_t;

#define ERROR_INFO(error_name, error_text) \
  { .error = (error_name), .name = #error_name, .text = (error_text) }

static const error_info_t infos[] = {
    ERROR_INFO(hipSuccess, "no error"),
    ERROR_INFO(hipErrorInvalidValue, "invalid argument"),
    ERROR_INFO(hipErrorOutOfMemory, "out of memory"),
    ERROR_INFO(hipErrorNotInitialized, "initialization error"),
    ERROR_INFO(hipErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR_INFO(hipErrorInvalidDevicePointer, "invalid device pointer"),
    ERROR_INFO(hipErrorInvalidMemcpyDirection,
               "invalid copy direction for memcpy"),
    ERROR_INFO(hipErrorInvalidDeviceFunction, "invalid device function"),
    ERROR_INFO(hipErrorNoDevice, "no device is detected"),
    ERROR_INFO(hipErrorInvalidDevice, "invalid device ordinal"),
    ERROR_INFO(hipErrorInvalidHandle, "invalid resource handle"),
    ERROR_INFO(hipErrorIllegalState,
               "the operation cannot be performed in the present state"),
    ERROR_INFO(hipErrorNotFound, "named symbol not found"),
    ERROR_INFO(hipErrorNotReady, "device not ready"),
    ERROR_INFO(hipErrorIllegalAddress,
               "an illegal memory access was encountered"),
    ERROR_INFO(hipErrorLaunchOutOfResources,
               "too many resources requested for launch"),
    ERROR_INFO(hipErrorLaunchTimeOut,
               "the launch timed out and was terminated"),
    ERROR_INFO(hipErrorAssert, "device-side assert triggered"),
    ERROR_INFO(hipErrorLaunchFailure, "unspecified launch failure"),
    ERROR_INFO(hipErrorNotSupported, "operation not supported"),
    ERROR_INFO(hipErrorStreamCaptureUnsupported,
               "operation not permitted when stream is capturing"),
    ERROR_INFO(hipErrorStreamCaptureInvalidated,
               "operation failed due to a previous error during capture"),
    ERROR_INFO(hipErrorStreamCaptureMerge,
               "operation would result in a merge of separate capture "
               "sequences"),
    ERROR_INFO(hipErrorStreamCaptureUnmatched,
               "capture was not ended in the same stream as it began"),
    ERROR_INFO(hipErrorStreamCaptureUnjoined,
               "capturing stream has unjoined work"),
    ERROR_INFO(hipErrorStreamCaptureIsolation,
               "dependency created on uncaptured work in another stream"),
    ERROR_INFO(hipErrorStreamCaptureImplicit,
               "operation would make the legacy stream depend on a capturing "
               "blocking stream"),
    ERROR_INFO(hipErrorCapturedEvent,
               "operation not permitted on an event last recorded in a "
               "capturing stream"),
    ERROR_INFO(hipErrorStreamCaptureWrongThread,
               "attempt to terminate a thread-local capture sequence from "
               "another thread"),
    ERROR_INFO(hipErrorGraphExecUpdateFailure,
               "the graph update was not performed"),
    ERROR_INFO(hipErrorUnknown, "unknown error"),
};

static const error_info_t* find_info(hipError_t error) {
  for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]); ++i) {
    if (infos[i].error == error) return &infos[i];
  }
  return NULL;
}

// Neither function counts as a call: they have no error to return.
const char* hipGetErrorName(hipError_t hip_error) {
  const error_info_t* info = find_info(hip_error);
  return info == NULL ? "hipErrorUnknown" : info->name;
}

const char* hipGetErrorString(hipError_t hipError) {
  const error_info_t* info = find_info(hipError);
  return info == NULL ? "unknown error" : info->text;
}
