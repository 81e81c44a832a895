// SPDX-License-Identifier: Apache-2.0

// For nanosleep.
#define _POSIX_C_SOURCE 200809L

#include <stdatomic.h>
#include <time.h>

#include "runtime/hip/host_kernel.h"
#include "tests/hip/conformance_kernels.h"

static void run_add(const void* params, const sg_host_block_t* block) {
  const conformance_add_params_t* add = params;
  int32_t begin = (int32_t)block->index * CONFORMANCE_ADD_THREADS;
  for (int32_t i = begin; i < begin + CONFORMANCE_ADD_THREADS; ++i) {
    if (i < add->count) add->values[i] += add->addend;
  }
}

// The flag is ordinary memory that the test writes with an atomic store.
static void run_spin(const void* params, const sg_host_block_t* block) {
  (void)block;
  const conformance_spin_params_t* spin = params;
  for (int i = 0; i < 500000; ++i) {
    if (__atomic_load_n(spin->flag, __ATOMIC_ACQUIRE) != 0) return;
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  }
}

static void run_append(const void* params, const sg_host_block_t* block) {
  (void)block;
  const conformance_append_params_t* append = params;
  append->log[(*append->cursor)++] = append->value;
}

static void run_shared(const void* params, const sg_host_block_t* block) {
  const conformance_shared_params_t* shared = params;
  int32_t* numbers = block->shared;
  int32_t factor = (int32_t)block->index + 1;
  for (int32_t i = 0; i < shared->count; ++i) numbers[i] = factor * i;
  int32_t sum = 0;
  for (int32_t i = 0; i < shared->count; ++i) sum += numbers[i];
  shared->sums[block->index] = sum;
}

const void* conformance_add_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "conformance_add",
      .params_bytes = sizeof(conformance_add_params_t),
      .run_block = run_add};
  return &kernel;
}

const void* conformance_spin_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "conformance_spin",
      .params_bytes = sizeof(conformance_spin_params_t),
      .run_block = run_spin};
  return &kernel;
}

const void* conformance_append_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "conformance_append",
      .params_bytes = sizeof(conformance_append_params_t),
      .run_block = run_append};
  return &kernel;
}

const void* conformance_shared_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "conformance_shared",
      .params_bytes = sizeof(conformance_shared_params_t),
      .run_block = run_shared};
  return &kernel;
}
