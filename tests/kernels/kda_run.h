// SPDX-License-Identifier: Apache-2.0
//
// A case in buffers as kernels take them, and its kernels: the host's block by
// block (kda_run_host.c), a GPU's on a stream with copies of the buffers
// (kda_run_device.c). Buffers are
// surrounded by canaries; whatever kernels must not read is NaN: rows beyond
// the batch, padding between rows, slots of fresh sequences, workspace,
// scratch.

#ifndef STEPGRAPH_TESTS_KERNELS_KDA_RUN_H_
#define STEPGRAPH_TESTS_KERNELS_KDA_RUN_H_

#include <stddef.h>

#include "kernels/common/kda_args.h"
#include "runtime/hip/target.h"
#include "tests/kernels/kda_inputs.h"

enum {
  KDA_RUN_BUFFERS = 17,
  // Before and behind a buffer's data.
  KDA_RUN_CANARY_BYTES = 128,
  // All bytes 0xff are a NaN in each dtype and -1 in integers.
  KDA_RUN_POISON = 0xff,
};

typedef struct kda_buffer_t {
  unsigned char* memory;
  void* data;
  size_t bytes;
} kda_buffer_t;

typedef struct kda_run_t {
  kda_case_t test;
  sg_kda_args_t args;
  kda_buffer_t counts;
  kda_buffer_t query_start_loc;
  kda_buffer_t computed_lens;
  kda_buffer_t slots;
  kda_buffer_t chunk_indices;
  kda_buffer_t chunk_offsets;
  kda_buffer_t q;
  kda_buffer_t k;
  kda_buffer_t v;
  kda_buffer_t raw_g;
  kda_buffer_t raw_beta;
  kda_buffer_t a_log;
  kda_buffer_t dt_bias;
  kda_buffer_t o;
  kda_buffer_t state;
  // The state before any kernel ran.
  kda_buffer_t initial_state;
  kda_buffer_t workspace;
} kda_run_t;

// The host's target, from values of our own.
extern const sg_target_t kda_host_target;

void kda_run_initialize(const kda_case_t* test, const kda_inputs_t* inputs,
                        kda_run_t* out_run);
// Asserts that all canaries stand.
void kda_run_deinitialize(kda_run_t* run);

// All buffers, KDA_RUN_BUFFERS of them.
void kda_run_buffers(kda_run_t* run, kda_buffer_t* out_buffers[]);

// Relative L2 error that states may have after activations of |dtype|.
double kda_run_state_tolerance(sg_dtype_t dtype);

// The launches of one op.
void kda_run_recurrent(kda_run_t* run, bool zeroes_outputs);
void kda_run_chunk(kda_run_t* run, bool zeroes_outputs);

// The whole step: kda_recurrent, then kda_chunk, which zeroes outputs.
void kda_run_step(kda_run_t* run);

// Element of an output row, and of the state of a sequence's slot.
double kda_run_output(const kda_run_t* run, int64_t token, int64_t head,
                      int64_t v);
double kda_run_state(const kda_run_t* run, int32_t sequence, int64_t head,
                     int64_t v, int64_t k);

#endif  // STEPGRAPH_TESTS_KERNELS_KDA_RUN_H_
