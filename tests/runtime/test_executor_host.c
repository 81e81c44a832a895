// SPDX-License-Identifier: Apache-2.0
//
// Executors while HIP calls and allocations fail, each in turn: clean statuses,
// right results wherever a step can still run, nothing leaked.

#include <string.h>

#include "runtime/hip_host/hip_host.h"
#include "tests/check.h"
#include "tests/runtime/faulty_executor.h"

// Everything that an executor may call, but what gives things back.
static const char* const names[] = {
    "hipMalloc",
    "hipHostMalloc",
    "hipHostGetDevicePointer",
    "hipStreamCreate",
    "hipStreamCreateWithFlags",
    "hipStreamCreateWithPriority",
    "hipEventCreate",
    "hipEventCreateWithFlags",
    "hipEventRecord",
    "hipEventSynchronize",
    "hipStreamWaitEvent",
    "hipMemset",
    "hipMemsetAsync",
    "hipMemsetD32Async",
    "hipMemcpy",
    "hipMemcpyAsync",
    "hipStreamSynchronize",
    "hipDeviceSynchronize",
    "hipStreamBeginCapture",
    "hipStreamEndCapture",
    "hipStreamIsCapturing",
    "hipStreamGetCaptureInfo",
    "hipStreamGetCaptureInfo_v2",
    "hipThreadExchangeStreamCaptureMode",
    "hipGraphInstantiate",
    "hipGraphInstantiateWithFlags",
    "hipGraphGetNodes",
    "hipGraphGetEdges",
    "hipGraphNodeGetType",
    "hipGraphDestroy",
    "hipGraphLaunch",
    "hipLaunchKernel",
    "hipMemGetInfo",
    "hipGetDevice",
    "hipSetDevice",
    "hipGetDeviceCount",
    "hipGetDeviceProperties",
    "hipDeviceGetAttribute",
    "hipPointerGetAttributes",
    "hipRuntimeGetVersion",
    "hipDriverGetVersion",
};

enum { NAME_COUNT = sizeof(names) / sizeof(names[0]), FOREVER = 1000000 };

static void check_status(sg_status_t status, const faulty_order_t* order) {
  if (sg_status_is_ok(status)) return;
  sg_status_code_t code = order->error == hipErrorOutOfMemory
                              ? SG_STATUS_OUT_OF_MEMORY
                              : SG_STATUS_DEVICE;
  assert_code(status, code);
  if (strstr(status.message, order->name) == NULL) {
    fail_msg("no %s in: %s", order->name, status.message);
  }
}

// Whatever failed shows somewhere, or nothing is missing.
static void check_life(const faulty_life_t* life, const faulty_order_t* order) {
  check_status(life->create, order);
  check_status(life->bind, order);
  check_status(life->capture, order);
  check_status(life->shape_status, order);
  if (!sg_status_is_ok(life->run)) {
    // A device that is lost stays lost.
    check_status(life->run, order);
    assert_code(life->run, SG_STATUS_DEVICE);
    assert_code(life->again, SG_STATUS_DEVICE);
  }
  for (int step = 0; step < life->steps; ++step) {
    const sg_step_report_t* report = &life->reports[step];
    assert_false(report->has_error);
    assert_int_equal(report->batch.sequence_count,
                     faulty_batch(step).sequence_count);
    if (report->shape_index >= 0) {
      assert_int_equal(report->reason, SG_EAGER_NONE);
      assert_int_equal(report->shape_index, faulty_shape(step));
    } else if (faulty_shape(step) < 0) {
      assert_int_equal(report->reason, SG_EAGER_TOKENS);
    } else {
      assert_true(report->reason == SG_EAGER_NOT_CAPTURED ||
                  report->reason == SG_EAGER_CAPTURE_FAILED ||
                  report->reason == SG_EAGER_LAUNCH_FAILED);
    }
  }
}

// Lives with |count| calls of |name| failing from the first, the second, ...
// on. Returns how many there are.
static int fail_each_call(faulty_world_t* w, const char* name, uint64_t count,
                          hipError_t error) {
  for (uint64_t nth = 1;; ++nth) {
    faulty_order_t order = {name, nth, count, error};
    counting_allocator_t counting = {0};
    faulty_life_t life;
    faulty_live(w, &counting, &order, &life);
    if (life.calls < nth) {
      assert_int_equal(life.steps, FAULTY_STEPS);
      assert_int_equal(life.failed_shapes, 0);
      return (int)nth - 1;
    }
    check_life(&life, &order);
  }
}

static void fail_all_names(int32_t verify_every, sg_capture_time_t capture,
                           uint64_t count) {
  faulty_world_t w;
  faulty_set_up(&w);
  w.verify_every = verify_every;
  w.capture = capture;
  int launches = 0, kinds = 0;
  for (int i = 0; i < NAME_COUNT; ++i) {
    int calls = fail_each_call(&w, names[i], count, hipErrorUnknown);
    if (strcmp(names[i], "hipGraphLaunch") == 0) launches = calls;
    kinds += calls > 0;
  }
  // Seven of the eight steps are replays, or all but the first of a shape, or
  // those whose graph the thread has captured by then.
  int replays = FAULTY_STEPS - 1;
  if (capture == SG_CAPTURE_LAZY) replays -= FAULTY_SHAPES;
  if (capture == SG_CAPTURE_BACKGROUND) {
    assert_true(launches <= replays);
  } else {
    assert_int_equal(launches, replays);
  }
  assert_true(kinds > 12);
  faulty_tear_down(&w);
}

static void test_each_hip_call_fails_in_turn(void** state) {
  (void)state;
  fail_all_names(0, SG_CAPTURE_STARTUP, 1);
  fail_all_names(0, SG_CAPTURE_LAZY, 1);
}

static void test_each_hip_call_fails_in_turn_verifying(void** state) {
  (void)state;
  fail_all_names(2, SG_CAPTURE_STARTUP, 1);
  fail_all_names(2, SG_CAPTURE_LAZY, 1);
}

// The failing call is now one of the run calls', now one of the thread's.
static void test_hip_calls_fail_beside_the_capture_thread(void** state) {
  (void)state;
  fail_all_names(0, SG_CAPTURE_BACKGROUND, 1);
  fail_all_names(2, SG_CAPTURE_BACKGROUND, 1);
  fail_all_names(0, SG_CAPTURE_BACKGROUND, FOREVER);
}

// The repair of a first failure meets a second one.
static void test_two_hip_calls_fail_in_turn(void** state) {
  (void)state;
  fail_all_names(0, SG_CAPTURE_STARTUP, 2);
  fail_all_names(0, SG_CAPTURE_LAZY, 2);
}

static void test_each_hip_call_fails_for_good(void** state) {
  (void)state;
  fail_all_names(0, SG_CAPTURE_STARTUP, FOREVER);
  fail_all_names(0, SG_CAPTURE_LAZY, FOREVER);
  fail_all_names(2, SG_CAPTURE_LAZY, FOREVER);
}

static void test_memory_runs_out(void** state) {
  (void)state;
  static const char* const allocating[] = {"hipMalloc", "hipHostMalloc",
                                           "hipGraphInstantiate"};
  faulty_world_t w;
  faulty_set_up(&w);
  for (int i = 0; i < 3; ++i) {
    int calls = fail_each_call(&w, allocating[i], 1, hipErrorOutOfMemory);
    assert_true(calls > 0);
  }
  faulty_tear_down(&w);
}

// Where graphs cannot be had, all steps run eagerly with the right results, and
// say why.
static void check_all_eager(const char* name, sg_eager_reason_t reason) {
  faulty_world_t w;
  faulty_set_up(&w);
  faulty_order_t order = {name, 1, FOREVER, hipErrorUnknown};
  counting_allocator_t counting = {0};
  faulty_life_t life;
  faulty_live(&w, &counting, &order, &life);
  assert_ok(life.run);
  assert_int_equal(life.steps, FAULTY_STEPS);
  for (int step = 0; step < FAULTY_STEPS - 1; ++step) {
    assert_int_equal(life.reports[step].shape_index, -1);
    assert_int_equal(life.reports[step].reason, reason);
  }
  assert_int_equal(life.failed_shapes,
                   reason == SG_EAGER_CAPTURE_FAILED ? FAULTY_SHAPES : 0);
  // A graph that was refused once is not tried again.
  if (reason == SG_EAGER_LAUNCH_FAILED) {
    assert_int_equal(life.calls, FAULTY_SHAPES);
  }
  faulty_tear_down(&w);
}

static void test_no_graphs_to_be_had(void** state) {
  (void)state;
  check_all_eager("hipStreamBeginCapture", SG_EAGER_CAPTURE_FAILED);
  check_all_eager("hipStreamEndCapture", SG_EAGER_CAPTURE_FAILED);
  check_all_eager("hipGraphInstantiate", SG_EAGER_CAPTURE_FAILED);
  check_all_eager("hipGraphGetNodes", SG_EAGER_CAPTURE_FAILED);
  check_all_eager("hipGraphLaunch", SG_EAGER_LAUNCH_FAILED);
}

// One graph that is refused costs no other.
static void test_one_refused_graph(void** state) {
  (void)state;
  faulty_world_t w;
  faulty_set_up(&w);
  for (uint64_t nth = 1; nth <= FAULTY_SHAPES; ++nth) {
    faulty_order_t order = {"hipGraphLaunch", nth, 1, hipErrorUnknown};
    counting_allocator_t counting = {0};
    faulty_life_t life;
    faulty_live(&w, &counting, &order, &life);
    assert_int_equal(life.steps, FAULTY_STEPS);
    for (int step = 0; step < FAULTY_STEPS - 1; ++step) {
      bool refused = step % 3 == (int)nth - 1;
      assert_int_equal(life.reports[step].shape_index,
                       refused ? -1 : faulty_shape(step));
      assert_int_equal(life.reports[step].reason,
                       refused ? SG_EAGER_LAUNCH_FAILED : SG_EAGER_NONE);
    }
  }
  faulty_tear_down(&w);
}

static void fail_each_allocation(sg_capture_time_t capture) {
  faulty_world_t w;
  faulty_set_up(&w);
  w.capture = capture;
  uint64_t nth = 1;
  for (;; ++nth) {
    counting_allocator_t counting = {.fail_nth = nth};
    faulty_life_t life;
    faulty_live(&w, &counting, NULL, &life);
    if (counting.allocations < nth) {
      assert_int_equal(life.steps, FAULTY_STEPS);
      break;
    }
    sg_status_t statuses[] = {life.create, life.bind, life.capture,
                              life.shape_status};
    int failures = 0;
    for (int i = 0; i < 4; ++i) {
      if (sg_status_is_ok(statuses[i])) continue;
      assert_code(statuses[i], SG_STATUS_OUT_OF_MEMORY);
      ++failures;
    }
    // A lazy capture tells nobody but the step's report, and a thread may be
    // stopped before it tells.
    if (capture == SG_CAPTURE_STARTUP) assert_int_equal(failures, 1);
    assert_true(failures <= 1);
    // Steps allocate nothing, so none fails.
    assert_ok(life.run);
    if (life.failed_shapes > 0) assert_int_equal(life.steps, FAULTY_STEPS);
  }
  assert_true(nth > 5);
  faulty_tear_down(&w);
}

static void test_host_allocations_fail_in_turn(void** state) {
  (void)state;
  fail_each_allocation(SG_CAPTURE_STARTUP);
  fail_each_allocation(SG_CAPTURE_LAZY);
  fail_each_allocation(SG_CAPTURE_BACKGROUND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_hip_call_fails_in_turn),
      cmocka_unit_test(test_each_hip_call_fails_in_turn_verifying),
      cmocka_unit_test(test_hip_calls_fail_beside_the_capture_thread),
      cmocka_unit_test(test_two_hip_calls_fail_in_turn),
      cmocka_unit_test(test_each_hip_call_fails_for_good),
      cmocka_unit_test(test_memory_runs_out),
      cmocka_unit_test(test_no_graphs_to_be_had),
      cmocka_unit_test(test_one_refused_graph),
      cmocka_unit_test(test_host_allocations_fail_in_turn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
