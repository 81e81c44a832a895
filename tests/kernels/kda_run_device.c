// SPDX-License-Identifier: Apache-2.0
//
// A GPU's kernels on a stream: every buffer of the case is copied to the device
// with its canaries, and back when the kernels are done.

#include <stdlib.h>
#include <string.h>

#include "kernels/kda_chunk/kda_chunk.h"
#include "kernels/kda_recurrent/kda_recurrent.h"
#include "runtime/hip/hip.h"
#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/kernels/kda_run.h"

enum { SKIPPED = 77 };

typedef struct device_run_t {
  kda_run_t* run;
  const sg_target_t* target;
  hipStream_t stream;
  kda_buffer_t* host[KDA_RUN_BUFFERS];
  unsigned char* device[KDA_RUN_BUFFERS];
  void* workspace;
  sg_kda_args_t args;
} device_run_t;

double kda_run_state_tolerance(sg_dtype_t dtype) {
  // Operands have 11 bits where activations are bf16, so that a product is off
  // by up to 2^-11. A state is a sum of products of products: five times that.
  return dtype == SG_DTYPE_BF16 ? 2.5e-3 : 1e-5;
}

static size_t bytes_with_canaries(const kda_buffer_t* buffer) {
  return buffer->bytes + 2 * KDA_RUN_CANARY_BYTES;
}

// The device's address of |pointer|, which is the data of a buffer or NULL.
static void* address_of(const device_run_t* device, const void* pointer) {
  if (pointer == NULL) return NULL;
  for (size_t i = 0; i < KDA_RUN_BUFFERS; ++i) {
    if (device->host[i]->data == pointer) {
      return device->device[i] + KDA_RUN_CANARY_BYTES;
    }
  }
  fail_msg("a pointer that is no buffer's");
  return NULL;
}

static void translate_args(device_run_t* device) {
  sg_kda_args_t* args = &device->args;
  sg_batch_tables_t* tables = &args->tables;
  sg_kda_tensors_t* tensors = &args->tensors;
  tables->counts = address_of(device, tables->counts);
  tables->query_start_loc = address_of(device, tables->query_start_loc);
  tables->computed_lens = address_of(device, tables->computed_lens);
  tables->slots = address_of(device, tables->slots);
  tables->chunk_indices = address_of(device, tables->chunk_indices);
  tables->chunk_offsets = address_of(device, tables->chunk_offsets);
  tensors->q = address_of(device, tensors->q);
  tensors->k = address_of(device, tensors->k);
  tensors->v = address_of(device, tensors->v);
  tensors->raw_g = address_of(device, tensors->raw_g);
  tensors->raw_beta = address_of(device, tensors->raw_beta);
  tensors->a_log = address_of(device, tensors->a_log);
  tensors->dt_bias = address_of(device, tensors->dt_bias);
  tensors->o = address_of(device, tensors->o);
  tensors->state = address_of(device, tensors->state);
  args->workspace = device->workspace;
}

static void device_run_initialize(kda_run_t* run, device_run_t* out_device) {
  memset(out_device, 0, sizeof(*out_device));
  int count = 0;
  if (hipGetDeviceCount(&count) != hipSuccess || count == 0) exit(SKIPPED);
  assert_ok(sg_target_of_device(/*device=*/0, &out_device->target));
  out_device->run = run;
  out_device->args = run->args;
  assert_hip(hipStreamCreate(&out_device->stream));
  kda_run_buffers(run, out_device->host);
  for (size_t i = 0; i < KDA_RUN_BUFFERS; ++i) {
    const size_t bytes = bytes_with_canaries(out_device->host[i]);
    out_device->device[i] = device_allocate(bytes, KDA_RUN_POISON);
    device_upload(out_device->device[i], out_device->host[i]->memory, bytes);
  }
  size_t bytes;
  assert_ok(sg_kda_chunk_workspace_bytes(run->args.geometry, out_device->target,
                                         &run->args.capacity, &bytes));
  out_device->workspace = device_allocate(bytes + 1, KDA_RUN_POISON);
  translate_args(out_device);
}

// Waits, and takes everything back.
static void device_run_deinitialize(device_run_t* device) {
  assert_hip(hipStreamSynchronize(device->stream));
  for (size_t i = 0; i < KDA_RUN_BUFFERS; ++i) {
    assert_hip(hipMemcpy(device->host[i]->memory, device->device[i],
                         bytes_with_canaries(device->host[i]),
                         hipMemcpyDeviceToHost));
    assert_hip(hipFree(device->device[i]));
  }
  assert_hip(hipFree(device->workspace));
  assert_hip(hipStreamDestroy(device->stream));
}

static void enqueue(device_run_t* device, bool recurrent, bool zeroes_outputs) {
  device->args.zeroes_outputs = zeroes_outputs;
  const sg_enqueue_t where = {.stream = device->stream,
                              .target = device->target};
  assert_ok(recurrent ? sg_kda_recurrent_enqueue(&where, &device->args)
                      : sg_kda_chunk_enqueue(&where, &device->args));
}

void kda_run_recurrent(kda_run_t* run, bool zeroes_outputs) {
  device_run_t device;
  device_run_initialize(run, &device);
  enqueue(&device, /*recurrent=*/true, zeroes_outputs);
  device_run_deinitialize(&device);
}

void kda_run_chunk(kda_run_t* run, bool zeroes_outputs) {
  device_run_t device;
  device_run_initialize(run, &device);
  enqueue(&device, /*recurrent=*/false, zeroes_outputs);
  device_run_deinitialize(&device);
}

void kda_run_step(kda_run_t* run) {
  device_run_t device;
  device_run_initialize(run, &device);
  enqueue(&device, /*recurrent=*/true, /*zeroes_outputs=*/false);
  enqueue(&device, /*recurrent=*/false, /*zeroes_outputs=*/true);
  device_run_deinitialize(&device);
}
