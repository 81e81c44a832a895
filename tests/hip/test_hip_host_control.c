// SPDX-License-Identifier: Apache-2.0
//
// The host's runtime beyond HIP: counters, ordered failures, faults, limits,
// dead handles.

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "runtime/hip/host_kernel.h"
#include "runtime/hip_host/hip_host.h"
#include "tests/hip/conformance.h"

static int reset(void** state) {
  (void)state;
  sg_hip_host_reset_faults();
  sg_hip_host_reset_counters();
  (void)hipGetLastError();
  return 0;
}

static hipStream_t make_stream(void) {
  hipStream_t stream = NULL;
  assert_hip_ok(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  return stream;
}

// An executable graph of |count| kernels that add 1 to numbers[0].
static hipGraphExec_t make_exec(hipStream_t stream, int32_t* numbers,
                                int count) {
  hipGraph_t graph = NULL;
  hipGraphExec_t exec = NULL;
  assert_hip_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  for (int i = 0; i < count; ++i) {
    assert_hip_ok(conformance_add(stream, numbers, 1, 1));
  }
  assert_hip_ok(hipStreamEndCapture(stream, &graph));
  assert_hip_ok(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
  assert_hip_ok(hipGraphDestroy(graph));
  return exec;
}

static void test_calls_are_counted_by_name_and_kind(void** state) {
  (void)state;
  int32_t value = 0;
  sg_hip_host_counters_t counters;
  int32_t* numbers = conformance_numbers(1);
  hipStream_t stream = make_stream();
  sg_hip_host_reset_counters();
  assert_hip_ok(conformance_add(stream, numbers, 1, 1));
  assert_hip_ok(hipMemcpyAsync(&value, numbers, sizeof(value),
                               hipMemcpyDeviceToHost, stream));
  assert_hip_ok(hipStreamQuery(stream));
  assert_hip_ok(hipStreamSynchronize(stream));
  assert_hip_ok(hipFree(numbers));
  sg_hip_host_get_counters(&counters);
  assert_int_equal(counters.calls, 5);
  assert_int_equal(counters.waits, 3);
  assert_int_equal(counters.queries, 1);
  assert_int_equal(counters.allocations, 1);
  assert_int_equal(counters.pageable_copies, 1);
  assert_int_equal(sg_hip_host_call_count("hipLaunchKernel"), 1);
  assert_int_equal(sg_hip_host_call_count("hipMemcpyAsync"), 1);
  assert_int_equal(sg_hip_host_call_count("hipNoSuchThing"), 0);
  assert_hip_ok(hipStreamDestroy(stream));
}

static void test_a_thousand_queued_steps_allocate_nothing(void** state) {
  (void)state;
  enum { STEPS = 2000 };
  sg_hip_host_counters_t counters;
  int32_t value = 0;
  void* pinned = NULL;
  hipEvent_t event = NULL;
  hipStream_t stream = make_stream();
  int32_t* numbers = conformance_numbers(2);
  hipGraphExec_t exec = make_exec(stream, numbers, 3);
  assert_hip_ok(hipHostMalloc(&pinned, 64, hipHostMallocMapped));
  assert_hip_ok(hipEventCreate(&event));
  conformance_gate_t gate = conformance_gate_close(stream);
  sg_hip_host_reset_counters();
  for (int i = 0; i < STEPS; ++i) {
    assert_hip_ok(hipMemcpyAsync(numbers + 1, pinned, sizeof(int32_t),
                                 hipMemcpyHostToDevice, stream));
    assert_hip_ok(hipGraphLaunch(exec, stream));
    assert_hip_ok(hipEventRecord(event, stream));
    assert_hip_ok(conformance_add(stream, numbers, 1, 1));
  }
  sg_hip_host_get_counters(&counters);
  assert_int_equal(counters.calls, 4 * STEPS);
  assert_int_equal(counters.allocations, 0);
  assert_int_equal(counters.waits, 0);
  // The pool holds 8192 commands; only what is queued beyond is a growth.
  for (int i = 0; i < 8192; ++i) assert_hip_ok(hipEventRecord(event, stream));
  sg_hip_host_get_counters(&counters);
  assert_int_equal(counters.pool_growths, 1);
  assert_int_equal(counters.allocations, 1);
  conformance_let_run();
  conformance_gate_open(&gate);
  conformance_read(numbers, &value, 1);
  assert_int_equal(value, 4 * STEPS);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipGraphExecDestroy(exec));
  assert_hip_ok(hipEventDestroy(event));
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipHostFree(pinned));
  assert_hip_ok(hipFree(numbers));
}

static void test_the_nth_call_fails(void** state) {
  (void)state;
  int32_t value = 0;
  int32_t* numbers = conformance_numbers(1);
  hipStream_t stream = make_stream();
  assert_hip_ok(sg_hip_host_fail_calls("hipLaunchKernel", 2, 2,
                                       hipErrorLaunchOutOfResources));
  assert_hip_ok(conformance_add(stream, numbers, 1, 1));
  assert_hip(hipErrorLaunchOutOfResources,
             conformance_add(stream, numbers, 1, 10));
  assert_hip(hipErrorLaunchOutOfResources, hipGetLastError());
  assert_hip(hipErrorLaunchOutOfResources,
             conformance_add(stream, numbers, 1, 10));
  assert_hip_ok(conformance_add(stream, numbers, 1, 1));
  conformance_read(numbers, &value, 1);
  assert_int_equal(value, 2);
  // Withdrawn before it strikes.
  assert_hip_ok(
      sg_hip_host_fail_calls("hipLaunchKernel", 1, 1, hipErrorUnknown));
  assert_hip_ok(
      sg_hip_host_fail_calls("hipLaunchKernel", 1, 0, hipErrorUnknown));
  assert_hip_ok(conformance_add(stream, numbers, 1, 1));
  assert_hip(hipErrorInvalidValue,
             sg_hip_host_fail_calls("hipNoSuchThing", 1, 1, hipErrorUnknown));
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipFree(numbers));
}

static void test_a_failed_end_still_ends_the_capture(void** state) {
  (void)state;
  hipStreamCaptureStatus status;
  hipGraph_t graph = NULL;
  hipStream_t stream = make_stream();
  assert_hip_ok(
      sg_hip_host_fail_calls("hipStreamEndCapture", 1, 1, hipErrorOutOfMemory));
  assert_hip_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  assert_hip(hipErrorOutOfMemory, hipStreamEndCapture(stream, &graph));
  assert_null(graph);
  assert_hip_ok(hipStreamIsCapturing(stream, &status));
  assert_int_equal(status, hipStreamCaptureStatusNone);
  assert_hip_ok(hipStreamDestroy(stream));
}

static void test_a_fault_breaks_the_device(void** state) {
  (void)state;
  int32_t value = 0;
  hipEvent_t event = NULL;
  void* pointer = NULL;
  int32_t* numbers = conformance_numbers(1);
  hipStream_t stream = make_stream();
  hipGraphExec_t exec = make_exec(stream, numbers, 1);
  assert_hip_ok(hipEventCreate(&event));
  conformance_gate_t gate = conformance_gate_close(stream);
  assert_hip_ok(conformance_add(stream, numbers, 1, 1));
  assert_hip_ok(sg_hip_host_enqueue_fault(stream, hipErrorIllegalAddress));
  assert_hip_ok(hipGraphLaunch(exec, stream));
  assert_hip_ok(hipEventRecord(event, stream));
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_hip(hipErrorIllegalAddress, hipStreamSynchronize(stream));
  // And it stays broken for every kind of call.
  assert_hip(hipErrorIllegalAddress, hipStreamQuery(stream));
  assert_hip(hipErrorIllegalAddress, hipEventQuery(event));
  assert_hip(hipErrorIllegalAddress, hipEventSynchronize(event));
  assert_hip(hipErrorIllegalAddress, hipDeviceSynchronize());
  assert_hip(hipErrorIllegalAddress, conformance_add(stream, numbers, 1, 1));
  assert_hip(hipErrorIllegalAddress, hipGraphLaunch(exec, stream));
  assert_hip(hipErrorIllegalAddress, hipEventRecord(event, NULL));
  assert_hip(hipErrorIllegalAddress, hipMalloc(&pointer, 64));
  assert_hip(hipErrorIllegalAddress,
             hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  sg_hip_host_reset_faults();
  // What was queued behind the fault has not run.
  conformance_read(numbers, &value, 1);
  assert_int_equal(value, 1);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipGraphExecDestroy(exec));
  assert_hip_ok(hipEventDestroy(event));
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipFree(numbers));
}

static void test_memory_has_a_limit(void** state) {
  (void)state;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  void* first = NULL;
  void* second = NULL;
  size_t before = sg_hip_host_memory_in_use(0);
  assert_hip_ok(hipMemGetInfo(&free_bytes, &total_bytes));
  size_t machine_bytes = total_bytes;
  assert_hip_ok(sg_hip_host_set_memory_limit(0, before + (1 << 20)));
  assert_hip_ok(hipMalloc(&first, 600 << 10));
  assert_hip(hipErrorOutOfMemory, hipMalloc(&second, 600 << 10));
  assert_null(second);
  assert_hip_ok(hipMemGetInfo(&free_bytes, &total_bytes));
  assert_int_equal(total_bytes, before + (1 << 20));
  assert_int_equal(free_bytes, (1 << 20) - (600 << 10));
  assert_hip_ok(hipFree(first));
  assert_int_equal(sg_hip_host_memory_in_use(0), before);
  assert_hip_ok(hipMalloc(&second, 600 << 10));
  assert_hip_ok(hipFree(second));
  assert_hip_ok(sg_hip_host_set_memory_limit(0, machine_bytes));
}

static void test_dead_handles_are_refused(void** state) {
  (void)state;
  hipStream_t stream = make_stream();
  hipStream_t live = make_stream();
  hipEvent_t event = NULL;
  hipGraph_t graph = NULL;
  hipGraphNode_t node = NULL;
  size_t count = 0;
  int32_t* numbers = conformance_numbers(1);
  hipGraphExec_t exec = make_exec(stream, numbers, 1);
  assert_hip_ok(hipEventCreate(&event));
  assert_hip_ok(hipGraphCreate(&graph, /*flags=*/0));
  assert_hip_ok(hipGraphAddEmptyNode(&node, graph, NULL, 0));
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipGraphDestroy(graph));
  assert_hip_ok(hipGraphExecDestroy(exec));
  // A new object takes the slot that was freed last, but not its handle.
  hipEvent_t newer = NULL;
  assert_hip_ok(hipEventDestroy(event));
  assert_hip_ok(hipEventCreate(&newer));

  assert_hip(hipErrorInvalidHandle, hipStreamDestroy(stream));
  assert_hip(hipErrorInvalidHandle, hipStreamSynchronize(stream));
  assert_hip(hipErrorInvalidHandle, conformance_add(stream, numbers, 1, 1));
  assert_hip(hipErrorInvalidHandle,
             hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  assert_hip(hipErrorInvalidHandle, hipEventRecord(event, live));
  assert_hip(hipErrorInvalidHandle, hipStreamWaitEvent(live, event, 0));
  assert_hip(hipErrorInvalidHandle, hipEventDestroy(event));
  assert_hip(hipErrorInvalidValue, hipGraphLaunch(exec, live));
  assert_hip(hipErrorInvalidValue, hipGraphExecDestroy(exec));
  assert_hip(hipErrorInvalidValue, hipGraphGetNodes(graph, NULL, &count));
  assert_hip(hipErrorInvalidValue, hipGraphDestroy(graph));
  hipGraphNodeType type;
  assert_hip(hipErrorInvalidValue, hipGraphNodeGetType(node, &type));
  // Nor is a handle of another type or a plain address taken for one.
  assert_hip(hipErrorInvalidHandle, hipStreamSynchronize((hipStream_t)newer));
  assert_hip(hipErrorInvalidHandle,
             hipStreamSynchronize((hipStream_t)(void*)&count));
  assert_hip_ok(hipEventDestroy(newer));
  assert_hip_ok(hipStreamDestroy(live));
  assert_hip_ok(hipFree(numbers));
}

static void test_copies_stay_within_their_memory(void** state) {
  (void)state;
  int32_t values[8] = {0};
  int32_t* numbers = conformance_numbers(4);
  assert_hip(hipErrorInvalidValue,
             hipMemcpy(numbers, values, 20, hipMemcpyHostToDevice));
  assert_hip(hipErrorInvalidValue,
             hipMemcpy(values, numbers + 2, 12, hipMemcpyDeviceToHost));
  assert_hip(hipErrorInvalidValue,
             hipMemcpy(numbers, values, 16, hipMemcpyDeviceToHost));
  assert_hip(hipErrorInvalidValue,
             hipMemcpy(numbers, values, 16, hipMemcpyDeviceToDevice));
  assert_hip(hipErrorInvalidValue, hipMemset(numbers + 1, 0, 16));
  assert_hip(hipErrorInvalidValue, hipMemset(values, 0, 16));
  assert_hip(hipErrorInvalidValue, hipFree(numbers + 1));
  assert_hip_ok(hipFree(numbers));
  assert_hip(hipErrorInvalidValue, hipFree(numbers));
}

static void run_sum(const void* params, const sg_host_block_t* block) {
  float* out_first = *(float* const*)params;
  const float* shared = block->shared;
  out_first[block->index] = shared[0];
}

static void test_poison_fills_shared_memory(void** state) {
  (void)state;
  static const sg_host_kernel_t kernel = {
      .name = "sum", .params_bytes = sizeof(float*), .run_block = run_sum};
  float firsts[8];
  int32_t* numbers = conformance_numbers(8);
  void* arguments[1] = {&numbers};
  dim3 grid = {.x = 8, .y = 1, .z = 1};
  dim3 block = {.x = 1, .y = 1, .z = 1};
  sg_hip_host_set_poison(true);
  assert_hip_ok(hipLaunchKernel(&kernel, grid, block, arguments, 64, NULL));
  assert_hip_ok(
      hipMemcpy(firsts, numbers, sizeof(firsts), hipMemcpyDeviceToHost));
  sg_hip_host_set_poison(false);
  for (int i = 0; i < 8; ++i) assert_true(isnan(firsts[i]));
  assert_hip_ok(hipFree(numbers));
}

static void test_devices_are_kept_apart(void** state) {
  (void)state;
  int count = 0;
  void* pointer = NULL;
  assert_hip_ok(sg_hip_host_set_device_count(2));
  assert_hip_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 2);
  hipStream_t first = make_stream();
  int32_t* numbers = conformance_numbers(1);
  size_t first_bytes = sg_hip_host_memory_in_use(0);
  assert_hip_ok(hipSetDevice(1));
  assert_hip_ok(hipMalloc(&pointer, 4096));
  assert_int_equal(sg_hip_host_memory_in_use(0), first_bytes);
  assert_int_equal(sg_hip_host_memory_in_use(1), 4096);
  // A launch belongs on a stream of the current device.
  assert_hip(hipErrorInvalidHandle, conformance_add(first, numbers, 1, 1));
  assert_hip_ok(hipFree(pointer));
  assert_hip_ok(hipSetDevice(0));
  assert_hip_ok(conformance_add(first, numbers, 1, 1));
  assert_hip_ok(hipStreamDestroy(first));
  assert_hip_ok(hipFree(numbers));
  assert_hip_ok(sg_hip_host_set_device_count(0));
  assert_hip(hipErrorNoDevice, hipGetDeviceCount(&count));
  assert_hip_ok(sg_hip_host_set_device_count(1));
}

static void test_any_number_of_workers(void** state) {
  (void)state;
  enum { COUNT = 64 * CONFORMANCE_ADD_THREADS };
  static int32_t values[COUNT];
  const int counts[] = {1, 7, 2};
  int32_t* numbers = conformance_numbers(COUNT);
  for (int i = 0; i < 3; ++i) {
    assert_hip_ok(sg_hip_host_set_worker_count(counts[i]));
    for (int j = 0; j < 10; ++j) {
      assert_hip_ok(conformance_add(NULL, numbers, COUNT, 1));
    }
  }
  conformance_read(numbers, values, COUNT);
  for (int i = 0; i < COUNT; ++i) assert_int_equal(values[i], 30);
  assert_hip(hipErrorInvalidValue, sg_hip_host_set_worker_count(0));
  assert_hip_ok(hipFree(numbers));
}

// A thread's share of the next test; cmocka's assertions belong to the main
// thread, so it keeps its first error.
typedef struct job_t {
  int32_t* numbers;
  hipError_t error;
} job_t;

static void keep(job_t* job, hipError_t error) {
  if (job->error == hipSuccess) job->error = error;
}

static void record_and_launch(job_t* job, hipStream_t stream) {
  hipGraph_t graph = NULL;
  hipGraphExec_t exec = NULL;
  keep(job, hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  for (int i = 0; i < 4; ++i) {
    keep(job, conformance_add(stream, job->numbers, 1, 1));
  }
  keep(job, hipStreamEndCapture(stream, &graph));
  keep(job, hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
  keep(job, hipGraphDestroy(graph));
  for (int i = 0; i < 5; ++i) keep(job, hipGraphLaunch(exec, stream));
  keep(job, hipGraphExecDestroy(exec));
}

static void* work_on_a_stream(void* argument) {
  job_t* job = argument;
  hipStream_t stream = NULL;
  keep(job, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (int i = 0; i < 50; ++i) record_and_launch(job, stream);
  keep(job, hipStreamSynchronize(stream));
  keep(job, hipStreamDestroy(stream));
  return NULL;
}

static void test_threads_work_at_the_same_time(void** state) {
  (void)state;
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  job_t jobs[THREADS];
  int32_t values[THREADS * 64];
  int32_t* numbers = conformance_numbers(THREADS * 64);
  for (int i = 0; i < THREADS; ++i) {
    jobs[i] = (job_t){.numbers = numbers + 64 * i, .error = hipSuccess};
    assert_int_equal(
        pthread_create(&threads[i], NULL, work_on_a_stream, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_hip_ok(jobs[i].error);
  }
  conformance_read(numbers, values, THREADS * 64);
  for (int i = 0; i < THREADS; ++i) assert_int_equal(values[64 * i], 1000);
  assert_hip_ok(hipFree(numbers));
}

static void set_flag(void* data) { *(int*)data += 1; }

static void test_host_functions_run_in_stream_order(void** state) {
  (void)state;
  int flag = 0;
  hipStream_t stream = make_stream();
  conformance_gate_t gate = conformance_gate_close(stream);
  assert_hip_ok(hipLaunchHostFunc(stream, set_flag, &flag));
  assert_int_equal(flag, 0);
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_hip_ok(hipStreamSynchronize(stream));
  assert_int_equal(flag, 1);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipStreamDestroy(stream));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_calls_are_counted_by_name_and_kind, reset),
      cmocka_unit_test_setup(test_a_thousand_queued_steps_allocate_nothing,
                             reset),
      cmocka_unit_test_setup(test_the_nth_call_fails, reset),
      cmocka_unit_test_setup(test_a_failed_end_still_ends_the_capture, reset),
      cmocka_unit_test_setup(test_a_fault_breaks_the_device, reset),
      cmocka_unit_test_setup(test_memory_has_a_limit, reset),
      cmocka_unit_test_setup(test_dead_handles_are_refused, reset),
      cmocka_unit_test_setup(test_copies_stay_within_their_memory, reset),
      cmocka_unit_test_setup(test_poison_fills_shared_memory, reset),
      cmocka_unit_test_setup(test_devices_are_kept_apart, reset),
      cmocka_unit_test_setup(test_any_number_of_workers, reset),
      cmocka_unit_test_setup(test_threads_work_at_the_same_time, reset),
      cmocka_unit_test_setup(test_host_functions_run_in_stream_order, reset),
  };
  return cmocka_run_group_tests(tests, conformance_set_up,
                                conformance_tear_down);
}
