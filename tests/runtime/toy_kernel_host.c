// SPDX-License-Identifier: Apache-2.0

#include <sched.h>

#include "runtime/base/shared_word.h"
#include "runtime/hip/host_kernel.h"
#include "tests/runtime/toy_kernel.h"

static void run_toy(const void* params, const sg_host_block_t* block) {
  const toy_params_t* p = params;
  int32_t n = (int32_t)block->index;
  if (p->counts->error_code != SG_STEP_ERROR_NONE) {
    if (n > 0) return;
    for (int32_t t = 0; t < p->token_capacity; ++t) p->o[t] = 0;
    return;
  }
  if (n >= p->counts->sequence_count) return;
  int32_t slot = p->slots[n];
  int32_t begin = p->query_start_loc[n];
  int32_t end = p->query_start_loc[n + 1];
  if (begin == end) return;
  if (slot < 0 || slot == p->null_slot) {
    for (int32_t t = begin; t < end; ++t) p->o[t] = 0;
    return;
  }
  uint64_t value = p->computed_lens[n] > 0 ? p->state[slot] : 0;
  for (int32_t t = begin; t < end; ++t) {
    value = value * TOY_MULTIPLIER + p->x[t];
    p->o[t] = value;
  }
  p->state[slot] = value;
}

const void* toy_layer_handle(void) {
  static const sg_host_kernel_t kernel = {.name = "toy_layer",
                                          .params_bytes = sizeof(toy_params_t),
                                          .run_block = run_toy};
  return &kernel;
}

static void run_gate(const void* params, const sg_host_block_t* block) {
  (void)block;
  const gate_params_t* p = params;
  while (sg_load_acquire(p->flag) == 0) sched_yield();
}

const void* gate_handle(void) {
  static const sg_host_kernel_t kernel = {.name = "gate",
                                          .params_bytes = sizeof(gate_params_t),
                                          .run_block = run_gate};
  return &kernel;
}

static void run_add_one(const void* params, const sg_host_block_t* block) {
  (void)block;
  const add_one_params_t* p = params;
  ++*p->counter;
}

const void* add_one_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "add_one",
      .params_bytes = sizeof(add_one_params_t),
      .run_block = run_add_one};
  return &kernel;
}
