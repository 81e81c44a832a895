// SPDX-License-Identifier: Apache-2.0
//
// Recording while HIP calls fail: whichever it is, the status names it, nothing
// is kept, graphs are destroyed and the stream still works.

#include <string.h>

#include "runtime/hip_host/hip_host.h"
#include "runtime/recorder.h"
#include "tests/base/counting_allocator.h"
#include "tests/check.h"
#include "tests/runtime/graph_fixture.h"

enum { LAUNCHES = 4 };

static sg_status_t record(void* self, hipStream_t stream,
                          const sg_launch_trace_t* trace) {
  for (int i = 0; i < LAUNCHES; ++i) {
    SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(self, stream, trace, i, i));
  }
  return sg_status_ok();
}

static const char* const names[] = {
    "hipStreamBeginCapture",   "hipStreamEndCapture",
    "hipGraphInstantiate",     "hipGraphInstantiateWithFlags",
    "hipGraphGetNodes",        "hipGraphGetEdges",
    "hipGraphNodeGetType",     "hipGraphGetRootNodes",
    "hipLaunchKernel",         "hipStreamIsCapturing",
    "hipStreamGetCaptureInfo",
};

// Graphs that were made are destroyed, executable ones too.
static void check_destroyed(const char* failed) {
  uint64_t ended = sg_hip_host_call_count("hipStreamEndCapture");
  uint64_t instances = sg_hip_host_call_count("hipGraphInstantiate") +
                       sg_hip_host_call_count("hipGraphInstantiateWithFlags");
  if (strcmp(failed, "hipStreamEndCapture") == 0) --ended;
  if (strncmp(failed, "hipGraphInstantiate", 19) == 0) --instances;
  assert_int_equal(sg_hip_host_call_count("hipGraphDestroy"), ended);
  assert_int_equal(sg_hip_host_call_count("hipGraphExecDestroy"), instances);
}

static void check_failure(graph_fixture_t* f, const char* name, uint64_t nth,
                          hipError_t error, sg_status_code_t code) {
  counting_allocator_t counting = {0};
  sg_graph_t graph;
  memset(&graph, 0xaa, sizeof(graph));
  sg_hip_host_reset_counters();
  assert_hip(sg_hip_host_fail_calls(name, nth, 1, error));
  sg_status_t status = graph_fixture_record(counting_allocator(&counting),
                                            f->stream, record, f, true, &graph);
  uint64_t calls = sg_hip_host_call_count(name);
  sg_hip_host_reset_faults();
  assert_true(calls >= nth);
  assert_code(status, code);
  if (strstr(status.message, name) == NULL) {
    fail_msg("no %s in: %s", name, status.message);
  }
  assert_null(graph.exec);
  assert_int_equal(graph.nodes.node_count, 0);
  sg_graph_deinitialize(&graph);
  assert_int_equal(counting.live, 0);
  // A capture that ends with an error leaves no graph behind.
  if (strcmp(name, "hipLaunchKernel") != 0) check_destroyed(name);
  assert_int_equal(hipGetLastError(), hipSuccess);
  graph_fixture_check_usable(f);
}

static void test_every_call_in_turn(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  int failed = 0;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    sg_graph_t graph;
    sg_hip_host_reset_counters();
    assert_ok(graph_fixture_record(sg_allocator_system(), f.stream, record, &f,
                                   true, &graph));
    uint64_t calls = sg_hip_host_call_count(names[i]);
    sg_graph_deinitialize(&graph);
    for (uint64_t nth = 1; nth <= calls; ++nth) {
      check_failure(&f, names[i], nth, hipErrorUnknown, SG_STATUS_DEVICE);
      check_failure(&f, names[i], nth, hipErrorOutOfMemory,
                    SG_STATUS_OUT_OF_MEMORY);
      ++failed;
    }
  }
  // Begin, end, instantiate, the nodes and each launch at least.
  assert_true(failed >= 4 + LAUNCHES);
  graph_fixture_tear_down(&f);
}

static sg_status_t record_query(void* self, hipStream_t stream,
                                const sg_launch_trace_t* trace) {
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(self, stream, trace, 0, 0));
  // The caller does not look at the error.
  (void)hipStreamQuery(stream);
  return graph_fixture_toy_enqueue(self, stream, trace, 1, 1);
}

static sg_status_t record_allocation(void* self, hipStream_t stream,
                                     const sg_launch_trace_t* trace) {
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(self, stream, trace, 0, 0));
  void* memory = NULL;
  if (hipMalloc(&memory, 64) == hipSuccess) (void)hipFree(memory);
  return sg_status_ok();
}

static void do_nothing(void* self) { (void)self; }

static sg_status_t record_host_function(void* self, hipStream_t stream,
                                        const sg_launch_trace_t* trace) {
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(self, stream, trace, 0, 0));
  (void)hipLaunchHostFunc(stream, do_nothing, NULL);
  return sg_status_ok();
}

// A capture that the runtime gave up is an error even where every launch said
// OK, and the stream is usable after it.
static void test_invalidated_captures(void** state) {
  (void)state;
  static const sg_record_function_t records[] = {
      record_query, record_allocation, record_host_function};
  static const char* const words[] = {"hipErrorStreamCaptureInvalidated",
                                      "hipStreamEndCapture",
                                      "hipStreamEndCapture"};
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  for (int i = 0; i < 3; ++i) {
    counting_allocator_t counting = {0};
    sg_graph_t graph;
    size_t memory = sg_hip_host_memory_in_use(0);
    sg_status_t status = graph_fixture_record(
        counting_allocator(&counting), f.stream, records[i], &f, true, &graph);
    assert_false(sg_status_is_ok(status));
    if (strstr(status.message, words[i]) == NULL) {
      fail_msg("no %s in: %s", words[i], status.message);
    }
    assert_null(graph.exec);
    sg_graph_deinitialize(&graph);
    assert_int_equal(counting.live, 0);
    assert_int_equal(sg_hip_host_memory_in_use(0), memory);
    assert_int_equal(hipGetLastError(), hipSuccess);
    graph_fixture_check_usable(&f);
  }
  graph_fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_call_in_turn),
      cmocka_unit_test(test_invalidated_captures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
