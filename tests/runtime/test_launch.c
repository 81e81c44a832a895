// SPDX-License-Identifier: Apache-2.0
//
// Launches: what is refused, what is traced, what runs.

#include "runtime/hip/launch.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/runtime/graph_fixture.h"

typedef struct seen_t {
  int count;
  sg_launch_t last;
  const void* last_params;
  // Returned by the trace.
  sg_status_t status;
} seen_t;

static sg_status_t see(void* self, const sg_launch_t* launch) {
  seen_t* seen = self;
  ++seen->count;
  seen->last = *launch;
  seen->last_params = launch->params;
  return seen->status;
}

static void test_runs_and_is_traced(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  seen_t seen = {.status = sg_status_ok()};
  sg_launch_trace_t trace = {.self = &seen, .add = see};
  for (int i = 0; i < 10; ++i) {
    assert_ok(graph_fixture_toy_enqueue(&f, f.stream, &trace, i, i - 1));
    graph_fixture_expect(&f, i);
    assert_int_equal(seen.count, i + 1);
    assert_ptr_equal(seen.last.kernel, &graph_fixture_toy);
    assert_int_equal(seen.last.layer, i - 1);
    assert_int_equal(seen.last.grid, 1);
    assert_int_equal(seen.last.block, 32);
  }
  graph_fixture_check(&f);
  // Without a trace it runs as well.
  assert_ok(graph_fixture_toy_enqueue(&f, f.stream, NULL, 2, 0));
  graph_fixture_expect(&f, 2);
  graph_fixture_check(&f);
  graph_fixture_tear_down(&f);
}

static void test_trace_failures_are_returned(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  seen_t seen = {.status = sg_status_make(SG_STATUS_OUT_OF_MEMORY, "full")};
  sg_launch_trace_t trace = {.self = &seen, .add = see};
  assert_code(graph_fixture_toy_enqueue(&f, f.stream, &trace, 0, 0),
              SG_STATUS_OUT_OF_MEMORY);
  // Traces see launches after they were enqueued, so this one runs.
  graph_fixture_expect(&f, 0);
  graph_fixture_check(&f);
  graph_fixture_tear_down(&f);
}

static void test_params_are_copied(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  *f.flag = 0;
  assert_ok(graph_fixture_gate_enqueue(&f, f.stream, NULL));
  // Their params lie on stacks that are gone when the gate opens.
  for (int i = 0; i < 8; ++i) {
    assert_ok(graph_fixture_toy_enqueue(&f, f.stream, NULL, i, 0));
    graph_fixture_expect(&f, i);
  }
  __atomic_store_n(f.flag, 1, __ATOMIC_RELEASE);
  graph_fixture_check(&f);
  graph_fixture_tear_down(&f);
}

static sg_launch_t gate_launch(const gate_params_t* params) {
  return (sg_launch_t){.kernel = &graph_fixture_gate,
                       .layer = 11,
                       .grid = 1,
                       .block = 1,
                       .params = params};
}

static void test_grid_of_zero_is_no_work(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  seen_t seen = {.status = sg_status_ok()};
  sg_launch_trace_t trace = {.self = &seen, .add = see};
  gate_params_t params = {f.flag_device};
  sg_launch_t launch = gate_launch(&params);
  sg_enqueue_t where = {f.stream, &trace, graph_fixture_target(), 11};
  // If it ran after all, it would never end.
  *f.flag = 0;
  launch.grid = 0;
  assert_ok(sg_launch_enqueue(&where, &launch));
  assert_int_equal(seen.count, 0);
  assert_hip(hipStreamSynchronize(f.stream));
  graph_fixture_tear_down(&f);
}

static void check_refused(graph_fixture_t* f, const sg_target_t* target,
                          const sg_launch_t* launch, uint64_t found,
                          uint64_t limit) {
  seen_t seen = {.status = sg_status_ok()};
  sg_launch_trace_t trace = {.self = &seen, .add = see};
  sg_enqueue_t where = {f->stream, &trace, target, launch->layer};
  sg_status_t status = sg_launch_enqueue(&where, launch);
  assert_code(status, SG_STATUS_UNSUPPORTED);
  assert_int_equal(seen.count, 0);
  char numbers[2][32];
  snprintf(numbers[0], sizeof(numbers[0]), "%llu", (unsigned long long)found);
  snprintf(numbers[1], sizeof(numbers[1]), "%llu", (unsigned long long)limit);
  const char* parts[] = {"gate_op", "gate", "11", numbers[0], numbers[1]};
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    if (strstr(status.message, parts[i]) == NULL) {
      fail_msg("no %s in: %s", parts[i], status.message);
    }
  }
}

static void test_limits_of_the_target_are_kept(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  gate_params_t params = {f.flag_device};
  // Smaller than any device, so that only this target can be the judge.
  sg_target_t small = *graph_fixture_target();
  small.max_threads_per_block = 96;
  small.shared_bytes_per_block = 3000;
  sg_launch_t launch = gate_launch(&params);
  sg_enqueue_t where = {f.stream, NULL, &small, 11};
  launch.block = 96;
  launch.shared_bytes = 3000;
  assert_ok(sg_launch_enqueue(&where, &launch));
  launch.block = 97;
  check_refused(&f, &small, &launch, 97, 96);
  launch.block = UINT32_MAX;
  check_refused(&f, &small, &launch, UINT32_MAX, 96);
  launch.block = 96;
  launch.shared_bytes = 3001;
  check_refused(&f, &small, &launch, 3001, 3000);
  launch.shared_bytes = UINT32_MAX;
  check_refused(&f, &small, &launch, UINT32_MAX, 3000);
  launch.shared_bytes = 0;
  launch.block = 0;
  check_refused(&f, &small, &launch, 0, 96);
  // The largest grid that HIP and CUDA both take has 2^31 - 1 blocks.
  launch.block = 1;
  launch.grid = (uint32_t)INT32_MAX + 1;
  check_refused(&f, &small, &launch, launch.grid, INT32_MAX);
  graph_fixture_check_usable(&f);
  graph_fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_runs_and_is_traced),
      cmocka_unit_test(test_trace_failures_are_returned),
      cmocka_unit_test(test_params_are_copied),
      cmocka_unit_test(test_grid_of_zero_is_no_work),
      cmocka_unit_test(test_limits_of_the_target_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
