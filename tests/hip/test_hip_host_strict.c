// SPDX-License-Identifier: Apache-2.0
//
// Strict mode of the host's runtime: what no step of ours may do in a capture
// is refused in every capture mode, and invalidates the capture.

#include <pthread.h>
#include <stdio.h>

#include "runtime/hip_host/hip_host.h"
#include "tests/hip/conformance.h"

typedef struct fixture_t {
  // Captures.
  hipStream_t stream;
  // Does not; both are non-blocking.
  hipStream_t other;
  // Recorded on |other|, and happened.
  hipEvent_t event;
  hipGraphExec_t exec;
  int32_t* numbers;
  void* pinned;
} fixture_t;

static fixture_t fixture;

static int set_up(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  assert_hip_ok(
      hipStreamCreateWithFlags(&fixture.stream, hipStreamNonBlocking));
  assert_hip_ok(hipStreamCreateWithFlags(&fixture.other, hipStreamNonBlocking));
  assert_hip_ok(hipEventCreate(&fixture.event));
  assert_hip_ok(hipEventRecord(fixture.event, fixture.other));
  assert_hip_ok(hipEventSynchronize(fixture.event));
  assert_hip_ok(hipGraphCreate(&graph, /*flags=*/0));
  assert_hip_ok(hipGraphInstantiate(&fixture.exec, graph, NULL, NULL, 0));
  assert_hip_ok(hipGraphDestroy(graph));
  fixture.numbers = conformance_numbers(64);
  assert_hip_ok(hipHostMalloc(&fixture.pinned, 256, hipHostMallocMapped));
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  assert_hip_ok(hipStreamDestroy(fixture.stream));
  assert_hip_ok(hipStreamDestroy(fixture.other));
  assert_hip_ok(hipEventDestroy(fixture.event));
  assert_hip_ok(hipGraphExecDestroy(fixture.exec));
  assert_hip_ok(hipFree(fixture.numbers));
  assert_hip_ok(hipHostFree(fixture.pinned));
  (void)hipGetLastError();
  return 0;
}

static void do_nothing(void* data) { (void)data; }

static hipError_t call_device_synchronize(void) {
  return hipDeviceSynchronize();
}
static hipError_t call_stream_synchronize(void) {
  return hipStreamSynchronize(fixture.stream);
}
static hipError_t call_other_synchronize(void) {
  return hipStreamSynchronize(fixture.other);
}
static hipError_t call_null_synchronize(void) {
  return hipStreamSynchronize(NULL);
}
static hipError_t call_event_synchronize(void) {
  return hipEventSynchronize(fixture.event);
}
static hipError_t call_stream_query(void) {
  return hipStreamQuery(fixture.stream);
}
static hipError_t call_other_query(void) {
  return hipStreamQuery(fixture.other);
}
static hipError_t call_event_query(void) {
  return hipEventQuery(fixture.event);
}
static hipError_t call_malloc(void) {
  void* pointer = NULL;
  return hipMalloc(&pointer, 64);
}
static hipError_t call_host_malloc(void) {
  void* pointer = NULL;
  return hipHostMalloc(&pointer, 64, hipHostMallocDefault);
}
static hipError_t call_malloc_async(void) {
  void* pointer = NULL;
  return hipMallocAsync(&pointer, 64, fixture.stream);
}
static hipError_t call_free(void) { return hipFree(fixture.numbers); }
static hipError_t call_free_null(void) { return hipFree(NULL); }
static hipError_t call_host_free(void) { return hipHostFree(fixture.pinned); }
static hipError_t call_free_async(void) {
  return hipFreeAsync(fixture.numbers, fixture.stream);
}
static hipError_t call_memcpy(void) {
  return hipMemcpy(fixture.numbers, fixture.numbers + 8, 16,
                   hipMemcpyDeviceToDevice);
}
static hipError_t call_memset(void) {
  return hipMemset(fixture.numbers, 0, 16);
}
static hipError_t call_pageable_copy(void) {
  int32_t value = 1;
  return hipMemcpyAsync(fixture.numbers, &value, sizeof(value),
                        hipMemcpyHostToDevice, fixture.stream);
}
static hipError_t call_pageable_copy_elsewhere(void) {
  int32_t value = 1;
  return hipMemcpyAsync(&value, fixture.numbers, sizeof(value),
                        hipMemcpyDeviceToHost, fixture.other);
}
static hipError_t call_pageable_rows(void) {
  int32_t values[4] = {0};
  return hipMemcpy2DAsync(fixture.numbers, 16, values, 8, 4, 2,
                          hipMemcpyHostToDevice, fixture.stream);
}
static hipError_t call_host_function(void) {
  return hipLaunchHostFunc(fixture.stream, do_nothing, NULL);
}
static hipError_t call_graph_launch(void) {
  return hipGraphLaunch(fixture.exec, fixture.stream);
}
static hipError_t call_stream_destroy(void) {
  return hipStreamDestroy(fixture.stream);
}

typedef struct forbidden_t {
  const char* name;
  hipError_t (*call)(void);
} forbidden_t;

static const forbidden_t forbidden[] = {
    {"device synchronize", call_device_synchronize},
    {"stream synchronize", call_stream_synchronize},
    {"other stream synchronize", call_other_synchronize},
    {"null stream synchronize", call_null_synchronize},
    {"event synchronize", call_event_synchronize},
    {"stream query", call_stream_query},
    {"other stream query", call_other_query},
    {"event query", call_event_query},
    {"malloc", call_malloc},
    {"host malloc", call_host_malloc},
    {"malloc async", call_malloc_async},
    {"free", call_free},
    {"free of NULL", call_free_null},
    {"host free", call_host_free},
    {"free async", call_free_async},
    {"memcpy", call_memcpy},
    {"memset", call_memset},
    {"pageable copy", call_pageable_copy},
    {"pageable copy on another stream", call_pageable_copy_elsewhere},
    {"pageable rows", call_pageable_rows},
    {"host function", call_host_function},
    {"graph launch", call_graph_launch},
    {"destroying the stream", call_stream_destroy},
};

static void assert_forbidden(const forbidden_t* what,
                             hipStreamCaptureMode mode) {
  hipGraph_t graph = NULL;
  assert_hip_ok(hipStreamBeginCapture(fixture.stream, mode));
  hipError_t error = what->call();
  if (error != hipErrorStreamCaptureUnsupported) {
    fail_msg("%s in mode %d gave %s", what->name, (int)mode,
             hipGetErrorName(error));
  }
  error = hipStreamEndCapture(fixture.stream, &graph);
  if (error != hipErrorStreamCaptureInvalidated) {
    fail_msg("%s in mode %d left the capture with %s", what->name, (int)mode,
             hipGetErrorName(error));
  }
  assert_null(graph);
}

static void test_forbidden_calls_in_every_mode(void** state) {
  (void)state;
  const hipStreamCaptureMode modes[] = {hipStreamCaptureModeGlobal,
                                        hipStreamCaptureModeThreadLocal,
                                        hipStreamCaptureModeRelaxed};
  for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); ++i) {
    for (size_t j = 0; j < 3; ++j) assert_forbidden(&forbidden[i], modes[j]);
  }
  assert_hip_ok(conformance_add(fixture.stream, fixture.numbers, 1, 1));
  assert_hip_ok(hipStreamSynchronize(fixture.stream));
}

static void test_a_relaxed_thread_is_not_exempt(void** state) {
  (void)state;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  assert_hip_ok(hipThreadExchangeStreamCaptureMode(&mode));
  const forbidden_t allocation = {"malloc", call_malloc};
  assert_forbidden(&allocation, hipStreamCaptureModeGlobal);
  assert_hip_ok(hipThreadExchangeStreamCaptureMode(&mode));
}

static void test_what_a_step_does_is_allowed(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  hipEvent_t event = NULL;
  hipStream_t created = NULL;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  assert_hip_ok(
      hipStreamBeginCapture(fixture.stream, hipStreamCaptureModeThreadLocal));
  assert_hip_ok(conformance_add(fixture.stream, fixture.numbers, 1, 1));
  assert_hip_ok(hipMemcpyAsync(fixture.numbers, fixture.pinned, 16,
                               hipMemcpyHostToDevice, fixture.stream));
  assert_hip_ok(hipMemsetD32Async(fixture.numbers, 7, 4, fixture.stream));
  assert_hip_ok(hipEventCreate(&event));
  assert_hip_ok(hipStreamCreate(&created));
  assert_hip_ok(hipMemGetInfo(&free_bytes, &total_bytes));
  // Other streams go on working.
  assert_hip_ok(conformance_add(fixture.other, fixture.numbers, 1, 1));
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_hip_ok(hipGraphDestroy(graph));
  assert_hip_ok(hipEventDestroy(event));
  assert_hip_ok(hipStreamDestroy(created));
}

static void test_a_captured_event_in_an_eager_stream(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  assert_hip_ok(
      hipStreamBeginCapture(fixture.stream, hipStreamCaptureModeGlobal));
  assert_hip_ok(hipEventRecord(fixture.event, fixture.stream));
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_hip_ok(hipGraphDestroy(graph));
  assert_hip(hipErrorCapturedEvent,
             hipStreamWaitEvent(fixture.other, fixture.event, /*flags=*/0));
  assert_hip(hipErrorCapturedEvent, hipEventQuery(fixture.event));
  // Recording it in an eager stream makes it an event of that stream.
  assert_hip_ok(hipEventRecord(fixture.event, fixture.other));
  assert_hip_ok(hipEventSynchronize(fixture.event));
}

static void* synchronize_elsewhere(void* argument) {
  *(hipError_t*)argument = hipStreamSynchronize(fixture.other);
  return NULL;
}

static void test_other_threads_may_wait_in_a_local_capture(void** state) {
  (void)state;
  pthread_t thread;
  hipError_t error = hipErrorUnknown;
  hipGraph_t graph = NULL;
  assert_hip_ok(
      hipStreamBeginCapture(fixture.stream, hipStreamCaptureModeThreadLocal));
  assert_int_equal(pthread_create(&thread, NULL, synchronize_elsewhere, &error),
                   0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_hip_ok(error);
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  assert_hip_ok(hipGraphDestroy(graph));
}

static void test_without_strict_the_mode_decides(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  void* pointer = NULL;
  int32_t value = 3;
  sg_hip_host_set_strict(false);
  assert_hip_ok(
      hipStreamBeginCapture(fixture.stream, hipStreamCaptureModeRelaxed));
  assert_hip_ok(hipMalloc(&pointer, 64));
  assert_hip_ok(hipMemcpyAsync(pointer, &value, sizeof(value),
                               hipMemcpyHostToDevice, fixture.stream));
  assert_hip_ok(hipStreamSynchronize(fixture.other));
  assert_hip_ok(hipStreamEndCapture(fixture.stream, &graph));
  sg_hip_host_set_strict(true);
  // The copy reads when the graph runs.
  hipGraphExec_t exec = NULL;
  assert_hip_ok(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
  value = 4;
  assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
  int32_t copied = 0;
  conformance_read(pointer, &copied, 1);
  assert_int_equal(copied, 4);
  assert_hip_ok(hipGraphExecDestroy(exec));
  assert_hip_ok(hipGraphDestroy(graph));
  assert_hip_ok(hipFree(pointer));
}

static void test_graphs_refuse_host_nodes(void** state) {
  (void)state;
  hipGraph_t graph = NULL;
  hipGraphNode_t node = NULL;
  hipHostNodeParams params = {0};
  params.fn = do_nothing;
  assert_hip_ok(hipGraphCreate(&graph, /*flags=*/0));
  assert_hip(hipErrorNotSupported,
             hipGraphAddHostNode(&node, graph, NULL, 0, &params));
  assert_hip_ok(hipGraphDestroy(graph));
}

#define strict_test(function) \
  cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      strict_test(test_forbidden_calls_in_every_mode),
      strict_test(test_a_relaxed_thread_is_not_exempt),
      strict_test(test_what_a_step_does_is_allowed),
      strict_test(test_a_captured_event_in_an_eager_stream),
      strict_test(test_other_threads_may_wait_in_a_local_capture),
      strict_test(test_without_strict_the_mode_decides),
      strict_test(test_graphs_refuse_host_nodes),
  };
  return cmocka_run_group_tests(tests, conformance_set_up,
                                conformance_tear_down);
}
