// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/hip_host/hip_host.h"

typedef struct call_info_t {
  const char* name;
  unsigned kinds;
} call_info_t;

static const call_info_t infos[SG_HOST_CALL_COUNT] = {
#define SG_HOST_CALL_INFO(call_name, call_kinds) \
  {.name = #call_name, .kinds = (call_kinds)},
    SG_HOST_CALLS(SG_HOST_CALL_INFO)
#undef SG_HOST_CALL_INFO
};

static _Atomic uint64_t counts[SG_HOST_CALL_COUNT];
static _Atomic uint64_t pageable_copies;
static _Atomic uint64_t pool_growths;

// An order of sg_hip_host_fail_calls: |skip| calls pass, |count| fail.
typedef struct failure_t {
  uint64_t skip;
  uint64_t count;
  hipError_t error;
} failure_t;

static pthread_mutex_t failures_lock = PTHREAD_MUTEX_INITIALIZER;
static failure_t failures[SG_HOST_CALL_COUNT];
// Number of orders that are not used up, so that a call without any takes no
// lock.
static _Atomic int failures_pending;

static _Thread_local hipError_t last_error = hipSuccess;

static hipError_t take_failure(sg_host_call_t call) {
  if (atomic_load_explicit(&failures_pending, memory_order_acquire) == 0) {
    return hipSuccess;
  }
  hipError_t error = hipSuccess;
  pthread_mutex_lock(&failures_lock);
  failure_t* failure = &failures[call];
  if (failure->count > 0) {
    if (failure->skip > 0) {
      failure->skip--;
    } else {
      error = failure->error;
      failure->count--;
      if (failure->count == 0) failures_pending--;
    }
  }
  pthread_mutex_unlock(&failures_lock);
  return error;
}

hipError_t sg_host_call_begin(sg_host_call_t call) {
  atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed);
  return sg_host_call_end(take_failure(call));
}

hipError_t sg_host_call_end(hipError_t error) {
  if (error != hipSuccess) last_error = error;
  return error;
}

void sg_host_count_pageable_copy(void) {
  atomic_fetch_add_explicit(&pageable_copies, 1, memory_order_relaxed);
}

void sg_host_count_pool_growth(void) {
  atomic_fetch_add_explicit(&pool_growths, 1, memory_order_relaxed);
}

hipError_t hipGetLastError(void) {
  SG_HOST_CALL(hipGetLastError);
  hipError_t error = last_error;
  last_error = hipSuccess;
  return error;
}

hipError_t hipPeekAtLastError(void) {
  SG_HOST_CALL(hipPeekAtLastError);
  return last_error;
}

static int find_call(const char* name) {
  for (int i = 0; i < SG_HOST_CALL_COUNT; ++i) {
    if (strcmp(infos[i].name, name) == 0) return i;
  }
  return -1;
}

void sg_hip_host_get_counters(sg_hip_host_counters_t* out_counters) {
  sg_hip_host_counters_t sums = {.pool_growths = pool_growths,
                                 .pageable_copies = pageable_copies};
  sums.waits = sums.pageable_copies;
  sums.allocations = sums.pool_growths;
  for (int i = 0; i < SG_HOST_CALL_COUNT; ++i) {
    uint64_t count = counts[i];
    sums.calls += count;
    if (infos[i].kinds & SG_HOST_WAIT) sums.waits += count;
    if (infos[i].kinds & SG_HOST_QUERY) sums.queries += count;
    if (infos[i].kinds & SG_HOST_ALLOCATION) sums.allocations += count;
  }
  *out_counters = sums;
}

uint64_t sg_hip_host_call_count(const char* name) {
  int call = find_call(name);
  return call < 0 ? 0 : counts[call];
}

void sg_hip_host_reset_counters(void) {
  for (int i = 0; i < SG_HOST_CALL_COUNT; ++i) counts[i] = 0;
  pageable_copies = 0;
  pool_growths = 0;
}

hipError_t sg_hip_host_fail_calls(const char* name, uint64_t nth,
                                  uint64_t count, hipError_t error) {
  int call = find_call(name);
  if (call < 0 || nth == 0) return hipErrorInvalidValue;
  pthread_mutex_lock(&failures_lock);
  failures_pending += (count > 0) - (failures[call].count > 0);
  failures[call] = (failure_t){.skip = nth - 1, .count = count, .error = error};
  pthread_mutex_unlock(&failures_lock);
  return hipSuccess;
}

void sg_host_calls_reset_failures(void) {
  pthread_mutex_lock(&failures_lock);
  memset(failures, 0, sizeof(failures));
  failures_pending = 0;
  pthread_mutex_unlock(&failures_lock);
}
