// SPDX-License-Identifier: Apache-2.0
//
// A model and its shapes, opened, with everything that running or recording
// steps needs: program, executor, stream and bound buffers.

#ifndef STEPGRAPH_CLI_SESSION_H_
#define STEPGRAPH_CLI_SESSION_H_

#include <stdbool.h>
#include <stdint.h>

#include "graphs/kda_step.h"
#include "runtime/executor.h"
#include "schemas/model.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_session_options_t {
  // NULL for the device's own.
  const sg_target_t* target;
  int32_t slot_count;
  int32_t ring_depth;
  // Every how many steps one is verified, 0 for none.
  int32_t verify_every;
  bool always_eager;
  // Leave the short convolution out, so that q, k and v are inputs.
  bool omit_conv;
  // Leave the gated norm out.
  bool omit_norm;
  sg_table_source_t tables;
} sg_session_options_t;

// Fields are read-only outside session.c, except that model and shapes may be
// changed before the start.
typedef struct sg_session_t {
  sg_model_t model;
  sg_shapes_t shapes;
  // What launches are configured for.
  const sg_target_t* target;
  int32_t slot_count;
  sg_kda_step_t* step;
  const sg_program_t* program;
  sg_context_t* context;
  sg_executor_t* executor;
  hipStream_t stream;
  // One a buffer of the program.
  sg_buffer_binding_t* bindings;
} sg_session_t;

// How many devices there are; SG_STATUS_UNSUPPORTED where there is none.
SG_MUST_USE sg_status_t sg_session_device_count(int* out_count);

// Reads the model and the shapes, bundled ones or files; with NULL for shapes
// the caller makes them. Touches no device.
SG_MUST_USE sg_status_t sg_session_open(const char* model, const char* shapes,
                                        sg_session_t* out_session);

// Makes program, executor, stream and buffers, and binds these.
SG_MUST_USE sg_status_t sg_session_start(sg_session_t* session,
                                         const sg_session_options_t* options);

// Waits for what is in flight. Accepts NULL and a half-made session.
void sg_session_close(sg_session_t* session);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_SESSION_H_
