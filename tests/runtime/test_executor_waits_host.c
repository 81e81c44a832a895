// SPDX-License-Identifier: Apache-2.0
//
// What a run call does not do: wait, query, allocate. And what it says when the
// device is lost.

#include <sched.h>
#include <string.h>

#include "runtime/base/shared_word.h"
#include "runtime/hip_host/hip_host.h"
#include "tests/base/counting_allocator.h"
#include "tests/check.h"
#include "tests/runtime/executor_fixture.h"

static void run_patiently(fixture_t* f, const sg_batch_t* batch,
                          hipStream_t stream) {
  sg_status_t status = sg_executor_run(f->executor, batch, stream, NULL);
  while (status.code == SG_STATUS_BUSY) {
    sched_yield();
    status = sg_executor_run(f->executor, batch, stream, NULL);
  }
  assert_ok(status);
  fixture_apply(f, batch);
}

// Fills the ring behind a gate, so that the runtime's pool of commands has
// grown as far as it ever will.
static void warm_up(fixture_t* f, hipStream_t second, uint64_t* flag) {
  void* device = NULL;
  assert_hip(hipHostGetDevicePointer(&device, flag, 0));
  gate_params_t gate = {device};
  void* arguments[] = {&gate};
  dim3 unit = {1, 1, 1};
  *flag = 0;
  assert_hip(
      hipLaunchKernel(gate_handle(), unit, unit, arguments, 0, f->stream));
  test_batch_t b;
  sg_status_t status = sg_status_ok();
  for (int i = 0; sg_status_is_ok(status); ++i) {
    fixture_random_batch(f, &b);
    status = sg_executor_run(f->executor, &b.batch,
                             i % 2 == 0 ? f->stream : second, NULL);
    if (sg_status_is_ok(status)) fixture_apply(f, &b.batch);
  }
  assert_int_equal(status.code, SG_STATUS_BUSY);
  sg_store_release(flag, 1);
  assert_hip(hipStreamSynchronize(second));
  fixture_check_state(f);
}

static void check_no_waits(bool always_eager, int32_t verify_every) {
  counting_allocator_t counting = {0};
  fixture_options_t options = fixture_defaults();
  options.allocator = counting_allocator(&counting);
  options.always_eager = always_eager;
  options.verify_every = verify_every;
  fixture_t f;
  fixture_set_up(&f, &options);
  void* flag = NULL;
  hipStream_t second;
  assert_hip(hipHostMalloc(&flag, sizeof(uint64_t),
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
  warm_up(&f, second, flag);
  uint64_t allocations = counting.allocations, releases = counting.releases;
  sg_hip_host_reset_counters();
  for (int i = 0; i < 200; ++i) {
    test_batch_t b;
    sg_step_error_record_t error;
    fixture_random_batch(&f, &b);
    run_patiently(&f, &b.batch, i % 5 == 4 ? second : f.stream);
    assert_false(sg_executor_poll_error(f.executor, &error));
  }
  sg_hip_host_counters_t counters;
  sg_hip_host_get_counters(&counters);
  assert_true(counters.calls >= 200);
  assert_int_equal(counters.waits, 0);
  assert_int_equal(counters.queries, 0);
  assert_int_equal(counters.allocations, 0);
  assert_int_equal(counters.pageable_copies, 0);
  assert_int_equal(counting.allocations, allocations);
  assert_int_equal(counting.releases, releases);
  assert_hip(hipStreamSynchronize(second));
  fixture_check_state(&f);
  fixture_tear_down(&f);
  assert_hip(hipStreamDestroy(second));
  assert_hip(hipHostFree(flag));
  assert_int_equal(counting.live, 0);
}

static void test_replays_never_wait(void** state) {
  (void)state;
  check_no_waits(false, 0);
}

static void test_eager_steps_never_wait(void** state) {
  (void)state;
  check_no_waits(true, 0);
}

static void test_verified_steps_never_wait(void** state) {
  (void)state;
  check_no_waits(false, 3);
}

static const int32_t ones[] = {1, 1};
static const int32_t sevens[] = {7, 7};
static const int32_t some_slots[] = {3, 4};

// A fault of the device is no refused graph: nothing is run a second time, and
// the executor stays lost even when the device is not.
static void check_lost_device(bool always_eager) {
  fixture_options_t options = fixture_defaults();
  options.always_eager = always_eager;
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_batch_t batch = {2, ones, sevens, some_slots};
  fixture_step(&f, &batch, NULL);
  assert_hip(sg_hip_host_enqueue_fault(f.stream, hipErrorIllegalAddress));
  assert_int_equal(hipStreamSynchronize(f.stream), hipErrorIllegalAddress);
  (void)hipGetLastError();
  for (int i = 0; i < 3; ++i) {
    sg_status_t status = sg_executor_run(f.executor, &batch, f.stream, NULL);
    assert_code(status, SG_STATUS_DEVICE);
    assert_non_null(strstr(status.message, "hipErrorIllegalAddress"));
  }
  sg_hip_host_reset_faults();
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_DEVICE);
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.steps, 1);
  assert_int_equal(statistics.eager_by_reason[SG_EAGER_LAUNCH_FAILED], 0);
  fixture_check_state(&f);
  fixture_tear_down(&f);
}

static void test_lost_device(void** state) {
  (void)state;
  check_lost_device(false);
  check_lost_device(true);
}

// The first launch of an eager step is refused: nothing was enqueued.
static void test_refused_eager_step(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.always_eager = true;
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_batch_t batch = {2, ones, sevens, some_slots};
  fixture_step(&f, &batch, NULL);
  assert_hip(sg_hip_host_fail_calls("hipLaunchKernel", 1, 1, hipErrorUnknown));
  sg_status_t status = sg_executor_run(f.executor, &batch, f.stream, NULL);
  assert_code(status, SG_STATUS_DEVICE);
  assert_non_null(strstr(status.message, "hipLaunchKernel"));
  fixture_check_state(&f);
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_DEVICE);
  fixture_check_state(&f);
  fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replays_never_wait),
      cmocka_unit_test(test_eager_steps_never_wait),
      cmocka_unit_test(test_verified_steps_never_wait),
      cmocka_unit_test(test_lost_device),
      cmocka_unit_test(test_refused_eager_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
