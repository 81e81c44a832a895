// SPDX-License-Identifier: Apache-2.0
//
// Stream capture as HIP and CUDA document it.

#include <pthread.h>
#include <stdbool.h>

#include "tests/hip/conformance.h"

typedef struct fixture_t {
  // Both non-blocking.
  hipStream_t stream;
  hipStream_t fork;
  hipEvent_t event;
  hipEvent_t join;
  int32_t* log;
} fixture_t;

static fixture_t fixture;

static int set_up(void** state) {
  (void)state;
  assert_hip_ok(
      hipStreamCreateWithFlags(&fixture.stream, hipStreamNonBlocking));
  assert_hip_ok(hipStreamCreateWithFlags(&fixture.fork, hipStreamNonBlocking));
  assert_hip_ok(hipEventCreateWithFlags(&fixture.event, hipEventDisableTiming));
  assert_hip_ok(hipEventCreateWithFlags(&fixture.join, hipEventDisableTiming));
  fixture.log = conformance_numbers(64);
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  // A test that failed may have left a capture.
  hipGraph_t graph = NULL;
  (void)hipStreamEndCapture(fixture.stream, &graph);
  (void)hipGetLastError();
  assert_hip_ok(hipStreamDestroy(fixture.stream));
  assert_hip_ok(hipStreamDestroy(fixture.fork));
  assert_hip_ok(hipEventDestroy(fixture.event));
  assert_hip_ok(hipEventDestroy(fixture.join));
  assert_hip_ok(hipFree(fixture.log));
  return 0;
}

static hipError_t append(hipStream_t stream, int32_t value) {
  return conformance_append(stream, fixture.log + 1, fixture.log, value);
}

static void begin(hipStreamCaptureMode mode) {
  assert_hip_ok(hipStreamBeginCapture(fixture.stream, mode));
}

static int32_t log_length(void) {
  int32_t length = -1;
  conformance_read(fixture.log, &length, 1);
  return length;
}

static hipStreamCaptureStatus status_of(hipStream_t stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  assert_hip_ok(hipStreamIsCapturing(stream, &status));
  return status;
}

// The capture must end with |expected|, without a graph, and leave its streams
// usable.
static void assert_capture_fails(hipError_t expected) {
  hipGraph_t graph = (hipGraph_t)&fixture;
  assert_hip(expected, hipStreamEndCapture(fixture.stream, &graph));
  assert_null(graph);
  assert_int_equal(status_of(fixture.stream), hipStreamCaptureStatusNone);
  assert_int_equal(status_of(fixture.fork), hipStreamCaptureStatusNone);
  int32_t before = log_length();
  assert_hip_ok(append(fixture.stream, 1));
  assert_hip_ok(hipStreamSynchronize(fixture.stream));
  assert_hip_ok(append(fixture.fork, 1));
  assert_int_equal(log_length(), before + 2);
}

static void assert_invalidated(void) {
  assert_int_equal(status_of(fixture.stream),
                   hipStreamCaptureStatusInvalidated);
  assert_hip(hipErrorStreamCaptureInvalidated, append(fixture.stream, 1));
  assert_capture_fails(hipErrorStreamCaptureInvalidated);
}

static void test_captured_work_runs_when_launched(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  hipGraphExec_t exec = NULL;
  begin(hipStreamCaptureModeGlobal);
  assert_int_equal(status_of(fixture.stream), hipStreamCaptureStatusActive);
  for (int32_t i = 0; i < 3; ++i) {
    // The params are those of the call, not of the launch.
    assert_hip_ok(append(fixture.stream, i));
  }
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_int_equal(log_length(), 0);
  assert_hip_ok(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
  assert_hip_ok(hipGraphDestroy(graph));
  assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
  assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
  assert_hip_ok(hipStreamSynchronize(fixture.stream));
  int32_t values[7];
  conformance_read(fixture.log, values, 7);
  const int32_t expected[7] = {6, 0, 1, 2, 0, 1, 2};
  assert_memory_equal(values, expected, sizeof(values));
  assert_hip_ok(hipGraphExecDestroy(exec));
}

static void test_copies_and_fills_become_nodes(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  begin(hipStreamCaptureModeThreadLocal);
  assert_hip_ok(hipMemsetAsync(fixture.log, 0, 16, fixture.stream));
  assert_hip_ok(hipMemcpyAsync(fixture.log, fixture.log + 8, 16,
                               hipMemcpyDeviceToDevice, fixture.stream));
  assert_hip_ok(append(fixture.stream, 1));
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  hipGraphNode_t nodes[3] = {NULL};
  size_t count = 3;
  assert_hip_ok(hipGraphGetNodes(graph, nodes, &count));
  assert_int_equal(count, 3);
  int seen_fill = 0;
  int seen_copy = 0;
  int seen_kernel = 0;
  for (size_t i = 0; i < count; ++i) {
    hipGraphNodeType type;
    assert_hip_ok(hipGraphNodeGetType(nodes[i], &type));
    seen_fill += type == hipGraphNodeTypeMemset;
    seen_copy += type == hipGraphNodeTypeMemcpy;
    seen_kernel += type == hipGraphNodeTypeKernel;
  }
  assert_int_equal(seen_fill, 1);
  assert_int_equal(seen_copy, 1);
  assert_int_equal(seen_kernel, 1);
  assert_hip_ok(hipGraphGetEdges(graph, NULL, NULL, &count));
  assert_int_equal(count, 2);
  assert_hip_ok(hipGraphDestroy(graph));
}

static void test_an_empty_capture_is_an_empty_graph(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  size_t count = 1;
  begin(hipStreamCaptureModeRelaxed);
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_hip_ok(hipGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 0);
  assert_hip_ok(hipGraphDestroy(graph));
}

static void test_captures_have_ids_of_their_own(void** state) {
  (void)state;
  unsigned long long first = 0;
  unsigned long long second = 0;
  hipGraph_t graph = NULL;
  hipStreamCaptureStatus status;
  begin(hipStreamCaptureModeGlobal);
  assert_hip_ok(hipStreamGetCaptureInfo(fixture.stream, &status, &first));
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_hip_ok(hipGraphDestroy(graph));
  begin(hipStreamCaptureModeGlobal);
  const hipGraphNode_t* dependencies = NULL;
  size_t count = 0;
  hipGraph_t growing = NULL;
  assert_hip_ok(append(fixture.stream, 1));
  assert_hip_ok(hipStreamGetCaptureInfo_v2(fixture.stream, &status, &second,
                                           &growing, &dependencies, &count));
  assert_int_equal(status, hipStreamCaptureStatusActive);
  assert_int_equal(count, 1);
  assert_non_null(dependencies[0]);
  assert_non_null(growing);
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_ptr_equal(graph, growing);
  assert_int_not_equal(first, second);
  assert_hip_ok(hipGraphDestroy(graph));
}

static void test_the_null_stream_cannot_capture(void** state) {
  (void)state;
  assert_hip(hipErrorStreamCaptureUnsupported,
             hipStreamBeginCapture(NULL, hipStreamCaptureModeGlobal));
}

static void test_begin_and_end_must_match(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  assert_hip(hipErrorIllegalState, hipStreamEndCapture(fixture.stream, &graph));
  begin(hipStreamCaptureModeGlobal);
  assert_hip(hipErrorIllegalState,
             hipStreamBeginCapture(fixture.stream, hipStreamCaptureModeGlobal));
  (void)hipStreamEndCapture(fixture.stream, &graph);
  if (graph != NULL) assert_hip_ok(hipGraphDestroy(graph));
  assert_int_equal(status_of(fixture.stream), hipStreamCaptureStatusNone);
}

// Brings the forked stream into the capture.
static void fork_capture(void) {
  assert_hip_ok(hipEventRecord(fixture.event, fixture.stream));
  assert_hip_ok(hipStreamWaitEvent(fixture.fork, fixture.event, /*flags=*/0));
}

static void join_capture(void) {
  assert_hip_ok(hipEventRecord(fixture.join, fixture.fork));
  assert_hip_ok(hipStreamWaitEvent(fixture.stream, fixture.join, /*flags=*/0));
}

static void test_events_fork_and_join(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  begin(hipStreamCaptureModeGlobal);
  assert_hip_ok(append(fixture.stream, 1));
  fork_capture();
  assert_int_equal(status_of(fixture.fork), hipStreamCaptureStatusActive);
  assert_hip_ok(hipMemsetAsync(fixture.log + 40, 1, 4, fixture.stream));
  assert_hip_ok(hipMemsetAsync(fixture.log + 50, 2, 4, fixture.fork));
  join_capture();
  assert_hip_ok(append(fixture.stream, 2));
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_int_equal(status_of(fixture.fork), hipStreamCaptureStatusNone);
  // A diamond.
  size_t nodes = 0;
  size_t roots = 0;
  size_t edges = 0;
  assert_hip_ok(hipGraphGetNodes(graph, NULL, &nodes));
  assert_hip_ok(hipGraphGetRootNodes(graph, NULL, &roots));
  assert_hip_ok(hipGraphGetEdges(graph, NULL, NULL, &edges));
  assert_int_equal(nodes, 4);
  assert_int_equal(roots, 1);
  assert_int_equal(edges, 4);
  assert_hip_ok(hipGraphDestroy(graph));
}

static void test_a_fork_must_be_joined(void** state) {
  (void)state;
  begin(hipStreamCaptureModeGlobal);
  fork_capture();
  assert_hip_ok(append(fixture.fork, 1));
  assert_hip_ok(append(fixture.stream, 1));
  assert_capture_fails(hipErrorStreamCaptureUnjoined);
}

static void test_the_fork_cannot_end_the_capture(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  begin(hipStreamCaptureModeGlobal);
  fork_capture();
  join_capture();
  assert_hip(hipErrorStreamCaptureUnmatched,
             hipStreamEndCapture(fixture.fork, &graph));
  (void)hipStreamEndCapture(fixture.stream, &graph);
  if (graph != NULL) assert_hip_ok(hipGraphDestroy(graph));
  assert_int_equal(status_of(fixture.stream), hipStreamCaptureStatusNone);
}

static void test_uncaptured_work_cannot_be_waited_for(void** state) {
  (void)state;
  assert_hip_ok(append(fixture.fork, 1));
  assert_hip_ok(hipEventRecord(fixture.event, fixture.fork));
  begin(hipStreamCaptureModeGlobal);
  assert_hip(hipErrorStreamCaptureIsolation,
             hipStreamWaitEvent(fixture.stream, fixture.event, /*flags=*/0));
  assert_invalidated();
}

static void test_captures_cannot_merge(void** state) {
  (void)state;
  begin(hipStreamCaptureModeGlobal);
  assert_hip_ok(
      hipStreamBeginCapture(fixture.fork, hipStreamCaptureModeGlobal));
  assert_hip_ok(hipEventRecord(fixture.event, fixture.fork));
  assert_hip(hipErrorStreamCaptureMerge,
             hipStreamWaitEvent(fixture.stream, fixture.event, /*flags=*/0));
  hipGraph_t graph = NULL;
  (void)hipStreamEndCapture(fixture.fork, &graph);
  if (graph != NULL) assert_hip_ok(hipGraphDestroy(graph));
  assert_capture_fails(hipErrorStreamCaptureInvalidated);
}

static void test_a_capturing_stream_cannot_be_waited_for(void** state) {
  (void)state;
  begin(hipStreamCaptureModeGlobal);
  assert_hip(hipErrorStreamCaptureUnsupported,
             hipStreamSynchronize(fixture.stream));
  assert_invalidated();
  begin(hipStreamCaptureModeGlobal);
  assert_hip(hipErrorStreamCaptureUnsupported, hipStreamQuery(fixture.stream));
  assert_invalidated();
  begin(hipStreamCaptureModeGlobal);
  assert_hip(hipErrorStreamCaptureUnsupported, hipDeviceSynchronize());
  assert_invalidated();
}

static void test_a_captured_event_cannot_be_waited_for(void** state) {
  (void)state;
  begin(hipStreamCaptureModeGlobal);
  assert_hip_ok(hipEventRecord(fixture.event, fixture.stream));
  assert_hip(hipErrorCapturedEvent, hipEventQuery(fixture.event));
  assert_invalidated();
  begin(hipStreamCaptureModeGlobal);
  assert_hip_ok(hipEventRecord(fixture.event, fixture.stream));
  assert_hip(hipErrorCapturedEvent, hipEventSynchronize(fixture.event));
  assert_invalidated();
}

static void test_a_blocking_capture_excludes_the_null_stream(void** state) {
  (void)state;
  hipStream_t blocking = NULL;
  hipGraph_t graph = NULL;
  hipStreamCaptureStatus status;
  assert_hip_ok(hipStreamCreate(&blocking));
  assert_hip_ok(
      hipStreamBeginCapture(blocking, hipStreamCaptureModeThreadLocal));
  assert_hip(hipErrorStreamCaptureImplicit,
             hipStreamIsCapturing(NULL, &status));
  assert_hip(hipErrorStreamCaptureImplicit, append(NULL, 1));
  assert_hip(hipErrorStreamCaptureInvalidated,
             hipStreamEndCapture(blocking, &graph));
  assert_null(graph);
  assert_hip_ok(append(NULL, 1));
  assert_int_equal(log_length(), 1);
  assert_hip_ok(hipStreamDestroy(blocking));
}

static void test_allocation_in_a_global_capture_is_refused(void** state) {
  (void)state;
  void* pointer = NULL;
  begin(hipStreamCaptureModeGlobal);
  assert_hip(hipErrorStreamCaptureUnsupported, hipMalloc(&pointer, 64));
  assert_invalidated();
}

// What another thread does during a capture.
typedef struct visit_t {
  bool is_relaxed;
  hipError_t allocation;
  hipError_t end;
  hipGraph_t graph;
} visit_t;

static void* allocate_elsewhere(void* argument) {
  visit_t* visit = argument;
  void* pointer = NULL;
  if (visit->is_relaxed) {
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    (void)hipThreadExchangeStreamCaptureMode(&mode);
  }
  visit->allocation = hipMalloc(&pointer, 64);
  if (pointer != NULL) (void)hipFree(pointer);
  return NULL;
}

static void* end_elsewhere(void* argument) {
  visit_t* visit = argument;
  visit->end = hipStreamEndCapture(fixture.stream, &visit->graph);
  return NULL;
}

static void run_elsewhere(void* (*function)(void*), visit_t* visit) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, function, visit), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_modes_say_what_other_threads_may_do(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  visit_t visit = {.is_relaxed = false};
  begin(hipStreamCaptureModeGlobal);
  run_elsewhere(allocate_elsewhere, &visit);
  assert_hip(hipErrorStreamCaptureUnsupported, visit.allocation);
  assert_invalidated();

  begin(hipStreamCaptureModeThreadLocal);
  run_elsewhere(allocate_elsewhere, &visit);
  assert_hip_ok(visit.allocation);
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_hip_ok(hipGraphDestroy(graph));

  visit.is_relaxed = true;
  begin(hipStreamCaptureModeGlobal);
  run_elsewhere(allocate_elsewhere, &visit);
  assert_hip_ok(visit.allocation);
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_hip_ok(hipGraphDestroy(graph));
}

static void test_only_a_relaxed_capture_ends_in_another_thread(void** state) {
  (void)state;
  visit_t visit = {.graph = NULL};
  hipGraph_t graph = NULL;
  begin(hipStreamCaptureModeThreadLocal);
  run_elsewhere(end_elsewhere, &visit);
  assert_hip(hipErrorStreamCaptureWrongThread, visit.end);
  (void)hipStreamEndCapture(fixture.stream, &graph);
  if (graph != NULL) assert_hip_ok(hipGraphDestroy(graph));
  assert_int_equal(status_of(fixture.stream), hipStreamCaptureStatusNone);

  begin(hipStreamCaptureModeRelaxed);
  run_elsewhere(end_elsewhere, &visit);
  assert_hip_ok(visit.end);
  assert_hip_ok(hipGraphDestroy(visit.graph));
}

static void test_a_thread_exchanges_its_mode(void** state) {
  (void)state;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  assert_hip_ok(hipThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, hipStreamCaptureModeGlobal);
  assert_hip_ok(hipThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, hipStreamCaptureModeRelaxed);
}

#define capture_test(function) \
  cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      capture_test(test_captured_work_runs_when_launched),
      capture_test(test_copies_and_fills_become_nodes),
      capture_test(test_an_empty_capture_is_an_empty_graph),
      capture_test(test_captures_have_ids_of_their_own),
      capture_test(test_the_null_stream_cannot_capture),
      capture_test(test_begin_and_end_must_match),
      capture_test(test_events_fork_and_join),
      capture_test(test_a_fork_must_be_joined),
      capture_test(test_the_fork_cannot_end_the_capture),
      capture_test(test_uncaptured_work_cannot_be_waited_for),
      capture_test(test_captures_cannot_merge),
      capture_test(test_a_capturing_stream_cannot_be_waited_for),
      capture_test(test_a_captured_event_cannot_be_waited_for),
      capture_test(test_a_blocking_capture_excludes_the_null_stream),
      capture_test(test_allocation_in_a_global_capture_is_refused),
      capture_test(test_modes_say_what_other_threads_may_do),
      capture_test(test_only_a_relaxed_capture_ends_in_another_thread),
      capture_test(test_a_thread_exchanges_its_mode),
  };
  int skip = conformance_exit_code_without_device();
  if (skip != 0) return skip;
  return cmocka_run_group_tests(tests, conformance_set_up,
                                conformance_tear_down);
}
