// SPDX-License-Identifier: Apache-2.0
//
// Launches that the HIP runtime refuses.

#include <string.h>

#include "runtime/hip_host/hip_host.h"
#include "tests/check.h"
#include "tests/runtime/graph_fixture.h"

typedef struct refusal_t {
  hipError_t error;
  sg_status_code_t code;
  const char* name;
} refusal_t;

static sg_status_t count(void* self, const sg_launch_t* launch) {
  (void)launch;
  ++*(int*)self;
  return sg_status_ok();
}

static void test_errors_name_op_kernel_and_layer(void** state) {
  (void)state;
  static const refusal_t refusals[] = {
      {hipErrorOutOfMemory, SG_STATUS_OUT_OF_MEMORY, "hipErrorOutOfMemory"},
      {hipErrorLaunchFailure, SG_STATUS_DEVICE, "hipErrorLaunchFailure"},
      {hipErrorInvalidValue, SG_STATUS_DEVICE, "hipErrorInvalidValue"},
  };
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  for (size_t i = 0; i < 3; ++i) {
    int traced = 0;
    sg_launch_trace_t trace = {.self = &traced, .add = count};
    assert_hip(
        sg_hip_host_fail_calls("hipLaunchKernel", 1, 1, refusals[i].error));
    sg_status_t status =
        graph_fixture_toy_enqueue(&f, f.stream, &trace, 0, 4321);
    assert_code(status, refusals[i].code);
    assert_int_equal(traced, 0);
    const char* parts[] = {"toy_op", "toy_layer", "4321", "hipLaunchKernel",
                           refusals[i].name};
    for (int j = 0; j < 5; ++j) {
      if (strstr(status.message, parts[j]) == NULL) {
        fail_msg("no %s in: %s", parts[j], status.message);
      }
    }
    // The thread's last error is cleared.
    assert_int_equal(hipGetLastError(), hipSuccess);
    graph_fixture_check_usable(&f);
  }
  graph_fixture_tear_down(&f);
}

static void test_launching_neither_waits_nor_allocates(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  graph_fixture_check_usable(&f);
  sg_hip_host_reset_counters();
  assert_ok(graph_fixture_gate_enqueue(&f, f.stream, NULL));
  sg_hip_host_counters_t counters;
  sg_hip_host_get_counters(&counters);
  assert_int_equal(sg_hip_host_call_count("hipLaunchKernel"), 1);
  assert_int_equal(counters.waits, 0);
  assert_int_equal(counters.queries, 0);
  assert_int_equal(counters.allocations - counters.pool_growths, 0);
  graph_fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_errors_name_op_kernel_and_layer),
      cmocka_unit_test(test_launching_neither_waits_nor_allocates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
