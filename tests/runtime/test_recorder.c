// SPDX-License-Identifier: Apache-2.0
//
// Recording graphs on any flavour: what is in them, what is refused, and that
// the stream is usable after each failure.

#include "runtime/recorder.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include "runtime/base/shared_word.h"
#include "tests/base/counting_allocator.h"
#include "tests/check.h"
#include "tests/runtime/graph_fixture.h"

// What a recording is told to do.
typedef struct script_t {
  graph_fixture_t* fixture;
  int launch_count;
  // Fail after that many launches; below 0 for never.
  int fail_after;
  // Waits for the flag before the launches.
  bool gate;
  void* memory;
  hipStream_t second;
  hipEvent_t forked, joined;
} script_t;

static sg_status_t record_script(void* self, hipStream_t stream,
                                 const sg_launch_trace_t* trace) {
  script_t* s = self;
  if (s->gate) {
    SG_RETURN_IF_ERROR(graph_fixture_gate_enqueue(s->fixture, stream, trace));
  }
  for (int i = 0; i < s->launch_count; ++i) {
    if (i == s->fail_after) {
      return sg_status_make(SG_STATUS_MISMATCH, "told to fail");
    }
    SG_RETURN_IF_ERROR(
        graph_fixture_toy_enqueue(s->fixture, stream, trace, i, i));
  }
  return sg_status_ok();
}

static void expect_run(graph_fixture_t* f, int launch_count) {
  for (int i = 0; i < launch_count; ++i) graph_fixture_expect(f, i);
}

static void expect_chain(const sg_graph_t* graph, size_t count) {
  assert_int_equal(graph->nodes.node_count, count);
  assert_int_equal(graph->nodes.edge_count, count - 1);
  assert_int_equal(graph->runtime_node_count, count);
  assert_int_equal(graph->runtime_edge_count, count - 1);
  for (uint32_t i = 0; i + 1 < count; ++i) {
    assert_int_equal(graph->nodes.edges[i].from, i);
    assert_int_equal(graph->nodes.edges[i].to, i + 1);
  }
}

static void expect_empty(sg_graph_t* graph) {
  assert_null(graph->exec);
  assert_int_equal(graph->nodes.node_count, 0);
  assert_int_equal(graph->nodes.edge_count, 0);
  assert_int_equal(graph->runtime_node_count, 0);
  assert_int_equal(graph->runtime_edge_count, 0);
  sg_graph_deinitialize(graph);
}

static void test_records_and_launches_chains(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  for (int count = 1; count <= GRAPH_FIXTURE_INPUTS; ++count) {
    counting_allocator_t counting = {0};
    script_t script = {.fixture = &f, .launch_count = count, .fail_after = -1};
    sg_graph_t graph;
    assert_ok(graph_fixture_record(counting_allocator(&counting), f.stream,
                                   record_script, &script, true, &graph));
    assert_non_null(graph.exec);
    expect_chain(&graph, (size_t)count);
    for (int i = 0; i < count; ++i) {
      assert_ptr_equal(graph.nodes.nodes[i].kernel, &graph_fixture_toy);
      assert_int_equal(graph.nodes.nodes[i].layer, i);
    }
    // Recording ran nothing.
    graph_fixture_check(&f);
    for (int i = 0; i < 3; ++i) {
      assert_hip(hipGraphLaunch(graph.exec, f.stream));
      expect_run(&f, count);
    }
    graph_fixture_check(&f);
    sg_graph_deinitialize(&graph);
    assert_int_equal(counting.live, 0);
  }
  graph_fixture_tear_down(&f);
}

static void test_without_an_instance(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  script_t script = {.fixture = &f, .launch_count = 5, .fail_after = -1};
  sg_graph_t graph;
  memset(&graph, 0xaa, sizeof(graph));
  assert_ok(graph_fixture_record(sg_allocator_system(), f.stream, record_script,
                                 &script, false, &graph));
  assert_null(graph.exec);
  expect_chain(&graph, 5);
  sg_graph_deinitialize(&graph);
  graph_fixture_check_usable(&f);
  graph_fixture_tear_down(&f);
}

// A failed recording: the code of the failure, an empty graph, nothing kept,
// and a stream that still works.
static void expect_failure(graph_fixture_t* f, sg_record_function_t record,
                           void* self, sg_status_code_t code,
                           const char* word) {
  for (int instantiate = 0; instantiate < 2; ++instantiate) {
    counting_allocator_t counting = {0};
    sg_graph_t graph;
    memset(&graph, 0xaa, sizeof(graph));
    sg_status_t status =
        graph_fixture_record(counting_allocator(&counting), f->stream, record,
                             self, instantiate, &graph);
    assert_false(sg_status_is_ok(status));
    if (code != SG_STATUS_OK) assert_code(status, code);
    char lower[SG_STATUS_MESSAGE_BYTES] = {0};
    for (size_t i = 0; status.message[i] != '\0'; ++i) {
      lower[i] = (char)tolower((unsigned char)status.message[i]);
    }
    if (strstr(lower, word) == NULL) {
      fail_msg("no %s in: %s", word, status.message);
    }
    expect_empty(&graph);
    assert_int_equal(counting.live, 0);
    graph_fixture_check_usable(f);
  }
}

static void test_failing_in_the_middle(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  for (int after = 0; after < 4; ++after) {
    script_t script = {.fixture = &f, .launch_count = 4, .fail_after = after};
    expect_failure(&f, record_script, &script, SG_STATUS_MISMATCH, "told");
  }
  graph_fixture_tear_down(&f);
}

static void test_nothing_recorded_is_an_error(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  script_t script = {.fixture = &f, .fail_after = -1};
  expect_failure(&f, record_script, &script, SG_STATUS_OK, "");
  graph_fixture_tear_down(&f);
}

static sg_status_t record_untraced(void* self, hipStream_t stream,
                                   const sg_launch_trace_t* trace) {
  script_t* s = self;
  SG_RETURN_IF_ERROR(
      graph_fixture_toy_enqueue(s->fixture, stream, trace, 0, 0));
  return graph_fixture_toy_enqueue(s->fixture, stream, NULL, 1, 1);
}

static sg_status_t record_traced_only(void* self, hipStream_t stream,
                                      const sg_launch_trace_t* trace) {
  script_t* s = self;
  SG_RETURN_IF_ERROR(
      graph_fixture_toy_enqueue(s->fixture, stream, trace, 0, 0));
  gate_params_t params = {s->fixture->flag_device};
  sg_launch_t launch = {.kernel = &graph_fixture_gate, .params = &params};
  return trace->add(trace->self, &launch);
}

// As many nodes as launches: a launch past the trace shows, and so does one
// that the trace alone saw.
static void test_nodes_are_counted(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  script_t script = {.fixture = &f};
  expect_failure(&f, record_untraced, &script, SG_STATUS_OK, "2");
  expect_failure(&f, record_traced_only, &script, SG_STATUS_OK, "2");
  graph_fixture_tear_down(&f);
}

static sg_status_t record_memset(void* self, hipStream_t stream,
                                 const sg_launch_trace_t* trace) {
  script_t* s = self;
  SG_RETURN_IF_ERROR(
      graph_fixture_toy_enqueue(s->fixture, stream, trace, 0, 0));
  assert_hip(hipMemsetAsync(s->memory, 0, 64, stream));
  return graph_fixture_toy_enqueue(s->fixture, stream, trace, 1, 1);
}

// The count is right where a memset stands in for a launch.
static sg_status_t record_memset_for_launch(void* self, hipStream_t stream,
                                            const sg_launch_trace_t* trace) {
  script_t* s = self;
  SG_RETURN_IF_ERROR(record_traced_only(self, stream, trace));
  assert_hip(hipMemsetAsync(s->memory, 0, 64, stream));
  return sg_status_ok();
}

static sg_status_t record_copy(void* self, hipStream_t stream,
                               const sg_launch_trace_t* trace) {
  script_t* s = self;
  SG_RETURN_IF_ERROR(record_traced_only(self, stream, trace));
  assert_hip(hipMemcpyAsync(s->memory, (char*)s->memory + 64, 64,
                            hipMemcpyDeviceToDevice, stream));
  return sg_status_ok();
}

static void test_memory_nodes_are_refused_by_name(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  script_t script = {.fixture = &f};
  assert_hip(hipMalloc(&script.memory, 128));
  expect_failure(&f, record_memset, &script, SG_STATUS_OK, "memset");
  expect_failure(&f, record_memset_for_launch, &script, SG_STATUS_OK, "memset");
  expect_failure(&f, record_copy, &script, SG_STATUS_OK, "memcpy");
  assert_hip(hipFree(script.memory));
  graph_fixture_tear_down(&f);
}

static void fork_off(script_t* s, hipStream_t stream) {
  assert_hip(hipEventRecord(s->forked, stream));
  assert_hip(hipStreamWaitEvent(s->second, s->forked, 0));
}

static void join_back(script_t* s, hipStream_t stream) {
  assert_hip(hipEventRecord(s->joined, s->second));
  assert_hip(hipStreamWaitEvent(stream, s->joined, 0));
}

// A diamond.
static sg_status_t record_fork(void* self, hipStream_t stream,
                               const sg_launch_trace_t* trace) {
  script_t* s = self;
  graph_fixture_t* f = s->fixture;
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, stream, trace, 0, 0));
  fork_off(s, stream);
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, s->second, trace, 1, 1));
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, stream, trace, 2, 2));
  join_back(s, stream);
  return graph_fixture_toy_enqueue(f, stream, trace, 3, 3);
}

// A star: one edge less than nodes, as a chain has, and yet none.
static sg_status_t record_star(void* self, hipStream_t stream,
                               const sg_launch_trace_t* trace) {
  script_t* s = self;
  graph_fixture_t* f = s->fixture;
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, stream, trace, 0, 0));
  fork_off(s, stream);
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, s->second, trace, 1, 1));
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, stream, trace, 2, 2));
  join_back(s, stream);
  return sg_status_ok();
}

// A fork that never comes back.
static sg_status_t record_unjoined(void* self, hipStream_t stream,
                                   const sg_launch_trace_t* trace) {
  script_t* s = self;
  graph_fixture_t* f = s->fixture;
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, stream, trace, 0, 0));
  fork_off(s, stream);
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(f, s->second, trace, 1, 1));
  return graph_fixture_toy_enqueue(f, stream, trace, 2, 2);
}

static void test_only_one_chain_is_taken(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  script_t script = {.fixture = &f};
  assert_hip(hipStreamCreateWithFlags(&script.second, hipStreamNonBlocking));
  assert_hip(hipEventCreateWithFlags(&script.forked, hipEventDisableTiming));
  assert_hip(hipEventCreateWithFlags(&script.joined, hipEventDisableTiming));
  expect_failure(&f, record_fork, &script, SG_STATUS_OK, "chain");
  expect_failure(&f, record_star, &script, SG_STATUS_OK, "chain");
  expect_failure(&f, record_unjoined, &script, SG_STATUS_DEVICE, "");
  assert_hip(hipEventDestroy(script.forked));
  assert_hip(hipEventDestroy(script.joined));
  assert_hip(hipStreamDestroy(script.second));
  graph_fixture_tear_down(&f);
}

static void test_failing_allocations(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  bool done = false;
  for (uint64_t nth = 1; !done; ++nth) {
    counting_allocator_t counting = {.fail_nth = nth};
    script_t script = {.fixture = &f, .launch_count = 9, .fail_after = -1};
    sg_graph_t graph;
    sg_status_t status =
        graph_fixture_record(counting_allocator(&counting), f.stream,
                             record_script, &script, true, &graph);
    done = counting.allocations < nth;
    if (done) {
      assert_ok(status);
      assert_true(nth > 1);
      sg_graph_deinitialize(&graph);
    } else {
      assert_code(status, SG_STATUS_OUT_OF_MEMORY);
      expect_empty(&graph);
    }
    assert_int_equal(counting.live, 0);
    graph_fixture_check_usable(&f);
  }
  graph_fixture_tear_down(&f);
}

// What was launched still runs when its graph is gone.
static void test_queued_launches_outlive_the_graph(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  script_t script = {
      .fixture = &f, .launch_count = 4, .fail_after = -1, .gate = true};
  sg_graph_t graph;
  assert_ok(graph_fixture_record(sg_allocator_system(), f.stream, record_script,
                                 &script, true, &graph));
  sg_store_release(f.flag, 0);
  for (int i = 0; i < 3; ++i) {
    assert_hip(hipGraphLaunch(graph.exec, f.stream));
    expect_run(&f, 4);
  }
  sg_graph_deinitialize(&graph);
  sg_store_release(f.flag, 1);
  graph_fixture_check(&f);
  sg_graph_deinitialize(NULL);
  memset(&graph, 0, sizeof(graph));
  sg_graph_deinitialize(&graph);
  graph_fixture_tear_down(&f);
}

static void* record_many(void* self) {
  script_t* s = self;
  hipStream_t stream = NULL;
  hipError_t error = hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
  for (int i = 0; i < 50 && error == hipSuccess; ++i) {
    sg_graph_t graph;
    sg_status_t status = graph_fixture_record(sg_allocator_system(), stream,
                                              record_script, s, true, &graph);
    if (!sg_status_is_ok(status)) return "recording failed";
    if (graph.runtime_node_count != (size_t)s->launch_count) return "nodes";
    sg_graph_deinitialize(&graph);
  }
  if (error != hipSuccess) return "stream";
  return hipStreamDestroy(stream) == hipSuccess ? NULL : "destroy";
}

static void test_captures_of_threads_do_not_mix(void** state) {
  (void)state;
  enum { THREADS = 4 };
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  pthread_t threads[THREADS];
  script_t scripts[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    scripts[i] =
        (script_t){.fixture = &f, .launch_count = 2 + i, .fail_after = -1};
    assert_int_equal(
        pthread_create(&threads[i], NULL, record_many, &scripts[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    void* failure = NULL;
    assert_int_equal(pthread_join(threads[i], &failure), 0);
    if (failure != NULL) fail_msg("thread %d: %s", i, (const char*)failure);
  }
  graph_fixture_check_usable(&f);
  graph_fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_records_and_launches_chains),
      cmocka_unit_test(test_without_an_instance),
      cmocka_unit_test(test_failing_in_the_middle),
      cmocka_unit_test(test_nothing_recorded_is_an_error),
      cmocka_unit_test(test_nodes_are_counted),
      cmocka_unit_test(test_memory_nodes_are_refused_by_name),
      cmocka_unit_test(test_only_one_chain_is_taken),
      cmocka_unit_test(test_failing_allocations),
      cmocka_unit_test(test_queued_launches_outlive_the_graph),
      cmocka_unit_test(test_captures_of_threads_do_not_mix),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
