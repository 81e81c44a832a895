// SPDX-License-Identifier: Apache-2.0

#include "runtime/context.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/hip/error.h"
#include "runtime/hip/hip.h"

struct sg_context_t {
  sg_context_options_t options;
  const sg_target_t* target;
  bool runs_here;
  int32_t reference_count;
};

sg_status_t sg_device_scope_enter(int device, sg_device_scope_t* out_scope) {
  *out_scope = (sg_device_scope_t){0};
  SG_RETURN_IF_HIP_ERROR(hipGetDevice, &out_scope->previous);
  if (out_scope->previous == device) return sg_status_ok();
  SG_RETURN_IF_HIP_ERROR(hipSetDevice, device);
  out_scope->changed = true;
  return sg_status_ok();
}

void sg_device_scope_leave(const sg_device_scope_t* scope) {
  if (scope->changed) (void)hipSetDevice(scope->previous);
}

void sg_context_options_initialize(sg_context_options_t* out_options) {
  *out_options = (sg_context_options_t){.allocator = sg_allocator_system()};
}

static sg_status_t check_device(int device) {
  int count = 0;
  hipError_t error = hipGetDeviceCount(&count);
  bool none = error == hipErrorNoDevice || error == hipErrorInsufficientDriver;
  if (error != hipSuccess && !none) {
    return sg_status_from_hip(error, "hipGetDeviceCount");
  }
  if (none || count == 0) {
    (void)hipGetLastError();
    return sg_status_make(
        SG_STATUS_UNSUPPORTED, "context: no %s device was found (%s)",
        sg_flavour_name(sg_flavour_of_build()), hipGetErrorName(error));
  }
  if (device < 0 || device >= count) {
    return sg_status_make(SG_STATUS_UNSUPPORTED,
                          "context: device %d, there are devices 0 to %d",
                          device, count - 1);
  }
  return sg_status_ok();
}

// Drivers refuse launches that their kernels are not built for, recorded or
// not; the host's kernels take any.
static sg_status_t check_target(const sg_target_t* target,
                                const sg_target_t* own) {
  if (own->flavour == SG_FLAVOUR_HOST || own->flavour == target->flavour) {
    return sg_status_ok();
  }
  return sg_status_make(SG_STATUS_UNSUPPORTED,
                        "context: target %s, kernels are for %s; the host "
                        "flavour records for every target",
                        target->name, own->name);
}

sg_status_t sg_context_create(const sg_context_options_t* options,
                              sg_context_t** out_context) {
  *out_context = NULL;
  SG_RETURN_IF_ERROR(check_device(options->device));
  const sg_target_t* own;
  SG_RETURN_IF_ERROR(sg_target_of_device(options->device, &own));
  const sg_target_t* target = options->target != NULL ? options->target : own;
  SG_RETURN_IF_ERROR(check_target(target, own));
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(options->allocator, "context", 1,
                                 sizeof(sg_context_t), &memory));
  sg_context_t* context = memory;
  context->options = *options;
  context->target = target;
  context->runs_here = target == own;
  context->reference_count = 1;
  *out_context = context;
  return sg_status_ok();
}

void sg_context_retain(sg_context_t* context) {
  __atomic_fetch_add(&context->reference_count, 1, __ATOMIC_RELAXED);
}

void sg_context_release(sg_context_t* context) {
  if (context == NULL) return;
  int32_t before =
      __atomic_fetch_sub(&context->reference_count, 1, __ATOMIC_ACQ_REL);
  if (before == 1) sg_release(context->options.allocator, context);
}

const sg_context_options_t* sg_context_options(const sg_context_t* context) {
  return &context->options;
}

const sg_target_t* sg_context_target(const sg_context_t* context) {
  return context->target;
}

bool sg_context_runs_here(const sg_context_t* context) {
  return context->runs_here;
}

void sg_context_log(const sg_context_t* context, sg_log_level_t level,
                    const char* format, ...) {
  if (context->options.log == NULL) return;
  char message[SG_STATUS_MESSAGE_BYTES + 128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  context->options.log(context->options.log_self, level, message);
}
