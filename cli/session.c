// SPDX-License-Identifier: Apache-2.0

#include "cli/session.h"

#include <string.h>

#include "runtime/hip/error.h"

sg_status_t sg_session_device_count(int* out_count) {
  *out_count = 0;
  hipError_t error = hipGetDeviceCount(out_count);
  if (error == hipSuccess && *out_count > 0) return sg_status_ok();
  *out_count = 0;
  return sg_status_make(SG_STATUS_UNSUPPORTED,
                        "no device for the %s flavour was found%s%s%s",
                        sg_flavour_name(sg_flavour_of_build()),
                        error == hipSuccess ? "" : " (hipGetDeviceCount: ",
                        error == hipSuccess ? "" : hipGetErrorName(error),
                        error == hipSuccess ? "" : ")");
}

sg_status_t sg_session_open(const char* model, const char* shapes,
                            sg_session_t* out_session) {
  *out_session = (sg_session_t){0};
  sg_allocator_t allocator = sg_allocator_system();
  SG_RETURN_IF_ERROR(sg_model_open(allocator, model, &out_session->model));
  if (shapes == NULL) return sg_status_ok();
  sg_status_t status = sg_shapes_open(allocator, shapes, &out_session->shapes);
  if (!sg_status_is_ok(status)) sg_session_close(out_session);
  return status;
}

static sg_status_t make_program(sg_session_t* session,
                                const sg_session_options_t* options) {
  sg_context_options_t context_options;
  sg_context_options_initialize(&context_options);
  context_options.target = options->target;
  SG_RETURN_IF_ERROR(sg_context_create(&context_options, &session->context));
  session->target = sg_context_target(session->context);
  session->slot_count = options->slot_count;
  const sg_kda_step_options_t step_options = {
      .allocator = sg_allocator_system(),
      .model = &session->model,
      .limits = session->shapes.limits,
      .target = session->target,
      .slot_count = options->slot_count,
      .null_slot = -1,
      .with_conv = !options->omit_conv,
      .with_norm = !options->omit_norm,
      .tables = options->tables,
  };
  SG_RETURN_IF_ERROR(sg_kda_step_create(&step_options, &session->step));
  session->program = sg_kda_step_program(session->step);
  return sg_status_ok();
}

static sg_status_t allocate_buffers(sg_session_t* session) {
  const sg_program_t* program = session->program;
  void* bindings;
  SG_RETURN_IF_ERROR(sg_allocate(sg_allocator_system(), "bindings",
                                 program->buffer_count,
                                 sizeof(*session->bindings), &bindings));
  session->bindings = bindings;
  for (size_t i = 0; i < program->buffer_count; ++i) {
    const sg_buffer_spec_t* spec = &program->buffers[i];
    sg_status_t status = sg_status_from_hip(
        hipMalloc(&session->bindings[i].address, spec->bytes), "hipMalloc");
    if (!sg_status_is_ok(status)) {
      return sg_status_annotate(status, "buffer %s of %zu bytes", spec->name,
                                spec->bytes);
    }
    session->bindings[i].bytes = spec->bytes;
  }
  return sg_status_ok();
}

sg_status_t sg_session_start(sg_session_t* session,
                             const sg_session_options_t* options) {
  SG_RETURN_IF_ERROR(make_program(session, options));
  SG_RETURN_IF_HIP_ERROR(hipStreamCreateWithFlags, &session->stream,
                         hipStreamNonBlocking);
  sg_executor_options_t executor_options;
  sg_executor_options_initialize(&executor_options);
  executor_options.ring_depth = options->ring_depth;
  executor_options.verify_every = options->verify_every;
  executor_options.always_eager = options->always_eager;
  SG_RETURN_IF_ERROR(sg_executor_create(session->context, &executor_options,
                                        session->program, &session->shapes,
                                        &session->executor));
  SG_RETURN_IF_ERROR(allocate_buffers(session));
  return sg_executor_bind(session->executor, session->bindings,
                          session->program->buffer_count);
}

void sg_session_close(sg_session_t* session) {
  if (session == NULL) return;
  sg_executor_destroy(session->executor);
  sg_context_release(session->context);
  if (session->bindings != NULL) {
    for (size_t i = 0; i < session->program->buffer_count; ++i) {
      void* address = session->bindings[i].address;
      if (address != NULL) (void)hipFree(address);
    }
  }
  sg_release(sg_allocator_system(), session->bindings);
  if (session->stream != NULL) (void)hipStreamDestroy(session->stream);
  sg_kda_step_destroy(session->step);
  sg_shapes_deinitialize(&session->shapes);
  sg_model_deinitialize(&session->model);
  *session = (sg_session_t){0};
}
