// SPDX-License-Identifier: Apache-2.0
//
// Several devices in one process, and calls that return while the device is
// far behind. Host flavour only: it can be told to have two devices.

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "runtime/base/shared_word.h"
#include "runtime/hip_host/hip_host.h"
#include "tests/check.h"
#include "tests/runtime/executor_fixture.h"

static const int32_t one[] = {1, 1};
static const int32_t seven[] = {7, 7};
static const int32_t slots[] = {3, 4};
static const sg_batch_t decodes = {2, one, seven, slots};

// An executor of device 1 is used by a thread whose device is 0, which it
// stays.
static void test_the_thread_keeps_its_device(void** state) {
  (void)state;
  assert_hip(sg_hip_host_set_device_count(2));
  assert_hip(hipSetDevice(1));
  fixture_options_t options = fixture_defaults();
  options.device = 1;
  fixture_t second;
  fixture_set_up(&second, &options);
  assert_hip(hipSetDevice(0));
  options.device = 0;
  fixture_t first;
  fixture_set_up(&first, &options);
  for (int i = 0; i < 20; ++i) {
    assert_ok(sg_executor_run(second.executor, &decodes, second.stream, NULL));
    fixture_apply(&second, &decodes);
    int device = -1;
    assert_hip(hipGetDevice(&device));
    assert_int_equal(device, 0);
    fixture_step(&first, &decodes, NULL);
  }
  assert_ok(sg_executor_zero_slots(second.executor, slots, 1, second.stream));
  second.model_state[slots[0]] = 0;
  int device = -1;
  assert_hip(hipGetDevice(&device));
  assert_int_equal(device, 0);
  fixture_tear_down(&first);
  assert_hip(hipSetDevice(1));
  fixture_check_state(&second);
  fixture_tear_down(&second);
  assert_hip(hipSetDevice(0));
  sg_context_options_t none;
  sg_context_options_initialize(&none);
  none.device = 2;
  sg_context_t* context = NULL;
  assert_code(sg_context_create(&none, &context), SG_STATUS_UNSUPPORTED);
  assert_hip(sg_hip_host_set_device_count(1));
}

static double seconds(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// A run call returns in under a millisecond while 200 ms of work are queued
// before it. The median of many, since the machine may be busy.
static void test_run_returns_at_once(void** state) {
  (void)state;
  enum { CALLS = 51 };
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  void *host = NULL, *device = NULL;
  assert_hip(hipHostMalloc(&host, sizeof(uint64_t),
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipHostGetDevicePointer(&device, host, 0));
  *(uint64_t*)host = 0;
  gate_params_t gate = {device};
  void* arguments[] = {&gate};
  dim3 unit = {1, 1, 1};
  assert_hip(
      hipLaunchKernel(gate_handle(), unit, unit, arguments, 0, f.stream));
  double start = seconds();
  sg_hip_host_reset_counters();
  int slow = 0;
  for (int i = 0; i < CALLS; ++i) {
    double before = seconds();
    assert_ok(sg_executor_run(f.executor, &decodes, f.stream, NULL));
    slow += seconds() - before >= 1e-3;
    fixture_apply(&f, &decodes);
  }
  sg_hip_host_counters_t counters;
  sg_hip_host_get_counters(&counters);
  while (seconds() - start < 0.2) sched_yield();
  sg_store_release(host, 1);
  assert_true(slow <= CALLS / 2);
  assert_int_equal(counters.waits, 0);
  assert_int_equal(counters.queries, 0);
  assert_int_equal(counters.allocations, 0);
  fixture_check_state(&f);
  fixture_tear_down(&f);
  assert_hip(hipHostFree(host));
}

static void* open_gate_later(void* flag) {
  double start = seconds();
  while (seconds() - start < 0.05) sched_yield();
  sg_store_release(flag, 1);
  return NULL;
}

// Destroying waits for the steps in flight, and nothing of them is lost.
static void test_destruction_waits_for_work_in_flight(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  void *host = NULL, *device = NULL;
  assert_hip(hipHostMalloc(&host, sizeof(uint64_t),
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipHostGetDevicePointer(&device, host, 0));
  *(uint64_t*)host = 0;
  gate_params_t gate = {device};
  void* arguments[] = {&gate};
  dim3 unit = {1, 1, 1};
  assert_hip(
      hipLaunchKernel(gate_handle(), unit, unit, arguments, 0, f.stream));
  for (int i = 0; i < 30; ++i) {
    assert_ok(sg_executor_run(f.executor, &decodes, f.stream, NULL));
    fixture_apply(&f, &decodes);
  }
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, open_gate_later, host), 0);
  sg_executor_destroy(f.executor);
  f.executor = NULL;
  assert_int_equal(sg_load_acquire(host), 1);
  assert_int_equal(pthread_join(thread, NULL), 0);
  fixture_check_state(&f);
  fixture_tear_down(&f);
  assert_hip(hipHostFree(host));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_thread_keeps_its_device),
      cmocka_unit_test(test_run_returns_at_once),
      cmocka_unit_test(test_destruction_waits_for_work_in_flight),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
