// SPDX-License-Identifier: Apache-2.0
//
// Ten thousand random steps under every capture policy, and the same with two
// executors on two threads and on two devices; memory stays what it was to the
// byte. Host flavour only, since its runtime tells the memory. With QUICK
// defined a tenth of the steps, for sanitizers.

#include <pthread.h>
#include <stdlib.h>

#include "runtime/hip_host/hip_host.h"
#include "tests/check.h"
#include "tests/graphs/random_serving.h"

#if defined(QUICK)
enum { STEPS = 99 };
#else
enum { STEPS = 10002 };
#endif

enum { POLICIES = 3, WARM_STEPS = 40 };

static const sg_capture_time_t policies[POLICIES] = {
    SG_CAPTURE_STARTUP, SG_CAPTURE_LAZY, SG_CAPTURE_BACKGROUND};

// Allocations that live, of all executors.
static int64_t live_allocations;

static void* counted_allocate(void* self, size_t bytes) {
  (void)self;
  __atomic_fetch_add(&live_allocations, 1, __ATOMIC_RELAXED);
  return calloc(1, bytes);
}

static void counted_release(void* self, void* memory) {
  (void)self;
  __atomic_fetch_sub(&live_allocations, 1, __ATOMIC_RELAXED);
  free(memory);
}

static const sg_allocator_t counted = {NULL, counted_allocate, counted_release};

static void test_every_policy(void** state) {
  (void)state;
  for (int i = 0; i < POLICIES; ++i) {
    random_serving_t serving;
    random_serving_set_up(&serving, policies[i], counted, (uint64_t)i + 1);
    // Until every graph is there that will be.
    random_serving_run(&serving, WARM_STEPS);
    sg_executor_wait_captured(serving.fixture.executor);
    random_serving_run(&serving, WARM_STEPS);
    size_t memory = sg_hip_host_memory_in_use(0);
    int64_t allocations = live_allocations;
    random_serving_run(&serving, STEPS / POLICIES);
    assert_int_equal(sg_hip_host_memory_in_use(0), memory);
    assert_int_equal(live_allocations, allocations);
    random_serving_tear_down(&serving);
  }
  assert_int_equal(live_allocations, 0);
}

static void* serve(void* self) {
  random_serving_run(self, STEPS / 2);
  return NULL;
}

static void run_both(random_serving_t* first, random_serving_t* second) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, serve, first), 0);
  random_serving_run(second, STEPS / 2);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_two_executors_on_two_threads(void** state) {
  (void)state;
  random_serving_t first, second;
  random_serving_set_up(&first, SG_CAPTURE_BACKGROUND, counted, 11);
  random_serving_set_up(&second, SG_CAPTURE_LAZY, counted, 12);
  run_both(&first, &second);
  random_serving_tear_down(&first);
  random_serving_tear_down(&second);
  assert_int_equal(live_allocations, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_policy),
      cmocka_unit_test(test_two_executors_on_two_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
