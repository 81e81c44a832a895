// SPDX-License-Identifier: Apache-2.0
//
// Three requests: their prompts, a few decodes, and a step with both.

#include <stdio.h>
#include <stdlib.h>

#include "stepgraph.h"

static void check(sg_status_t status) {
  if (sg_status_is_ok(status)) return;
  fprintf(stderr, "%s: %s\n", sg_status_code_name(status.code), status.message);
  exit(1);
}

// Enqueues one step of the three, which takes them |lengths| tokens further.
static void run(sg_executor_t* executor, hipStream_t stream,
                const int32_t lengths[3], int32_t computed[3]) {
  static const int32_t slots[3] = {0, 1, 2};
  const sg_batch_t batch = {3, lengths, computed, slots};
  check(sg_executor_run(executor, &batch, stream, NULL));
  for (int i = 0; i < 3; ++i) computed[i] += lengths[i];
}

int main(void) {
  sg_model_t model;
  sg_shapes_t shapes;
  check(sg_model_open(sg_allocator_system(), "tiny", &model));
  check(sg_shapes_open(sg_allocator_system(), "demo", &shapes));
  sg_context_options_t device;
  sg_context_options_initialize(&device);
  sg_context_t* context;
  check(sg_context_create(&device, &context));
  sg_kda_step_t* step;
  check(sg_kda_step_create(
      &(sg_kda_step_options_t){.allocator = sg_allocator_system(),
                               .model = &model,
                               .limits = shapes.limits,
                               .target = sg_context_target(context),
                               .slot_count = 16,
                               .null_slot = -1,
                               .with_conv = true,
                               .with_norm = true},
      &step));
  const sg_program_t* program = sg_kda_step_program(step);
  sg_executor_options_t options;
  sg_executor_options_initialize(&options);
  sg_executor_t* executor;
  check(sg_executor_create(context, &options, program, &shapes, &executor));
  // Buffers of the executor's own, zeroed. A server loads its weights into them
  // and lets its projections write there: sg_executor_buffer has the addresses.
  sg_buffer_binding_t* own = calloc(program->buffer_count, sizeof(*own));
  if (own == NULL) return 1;
  check(sg_executor_bind(executor, own, program->buffer_count));
  free(own);
  check(sg_executor_capture(executor, NULL, NULL));

  hipStream_t stream;
  if (hipStreamCreate(&stream) != hipSuccess) return 1;
  int32_t computed[3] = {0};
  run(executor, stream, (int32_t[]){100, 7, 350}, computed);
  for (int i = 0; i < 4; ++i) {
    run(executor, stream, (int32_t[]){1, 1, 1}, computed);
  }
  run(executor, stream, (int32_t[]){1, 1, 60}, computed);
  if (hipStreamSynchronize(stream) != hipSuccess) return 1;

  sg_step_error_record_t fault;
  if (sg_executor_poll_error(executor, &fault)) return 1;
  static char text[8192];
  size_t bytes;
  sg_prometheus_write(executor, &shapes, sizeof(text), text, &bytes);
  fputs(text, stdout);
  sg_executor_destroy(executor);
  sg_kda_step_destroy(step);
  sg_context_release(context);
  sg_shapes_deinitialize(&shapes);
  sg_model_deinitialize(&model);
  return hipStreamDestroy(stream) == hipSuccess ? 0 : 1;
}
