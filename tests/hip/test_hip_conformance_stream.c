// SPDX-License-Identifier: Apache-2.0
//
// Streams and events as HIP and CUDA document them.

#include "tests/hip/conformance.h"

// A log that kernels append to: the cursor and then the entries.
enum { LOG_COUNT = 256 };

static int32_t* make_log(void) { return conformance_numbers(LOG_COUNT + 1); }

static hipError_t append(hipStream_t stream, int32_t* log, int32_t value) {
  return conformance_append(stream, log + 1, log, value);
}

static void assert_log(const int32_t* log, const int32_t* expected,
                       int32_t count) {
  int32_t values[LOG_COUNT + 1];
  conformance_read(log, values, LOG_COUNT + 1);
  assert_int_equal(values[0], count);
  for (int32_t i = 0; i < count; ++i) {
    assert_int_equal(values[i + 1], expected[i]);
  }
}

static hipStream_t make_stream(unsigned flags) {
  hipStream_t stream = NULL;
  assert_hip_ok(hipStreamCreateWithFlags(&stream, flags));
  return stream;
}

static hipEvent_t make_event(void) {
  hipEvent_t event = NULL;
  assert_hip_ok(hipEventCreate(&event));
  return event;
}

static void test_enqueueing_does_not_wait(void** state) {
  (void)state;
  hipStream_t stream = make_stream(hipStreamDefault);
  int32_t* log = make_log();
  conformance_gate_t gate = conformance_gate_close(stream);
  assert_hip_ok(append(stream, log, 7));
  assert_hip_ok(hipMemsetAsync(log + 10, 0, 4, stream));
  assert_hip(hipErrorNotReady, hipStreamQuery(stream));
  (void)hipGetLastError();
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_hip_ok(hipStreamSynchronize(stream));
  assert_hip_ok(hipStreamQuery(stream));
  assert_log(log, (int32_t[]){7}, 1);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipFree(log));
}

static void test_a_stream_keeps_its_order(void** state) {
  (void)state;
  int32_t expected[LOG_COUNT];
  hipStream_t stream = make_stream(hipStreamNonBlocking);
  int32_t* log = make_log();
  for (int32_t i = 0; i < LOG_COUNT; ++i) {
    expected[i] = i;
    assert_hip_ok(append(stream, log, i));
  }
  assert_log(log, expected, LOG_COUNT);
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipFree(log));
}

static void test_pinned_copies_are_in_stream_order(void** state) {
  (void)state;
  enum { ROUNDS = 100 };
  hipStream_t stream = make_stream(hipStreamNonBlocking);
  int32_t* numbers = conformance_numbers(1);
  void* memory = NULL;
  assert_hip_ok(hipHostMalloc(&memory, 2 * ROUNDS * sizeof(int32_t),
                              hipHostMallocDefault));
  int32_t* in = memory;
  int32_t* out = in + ROUNDS;
  conformance_gate_t gate = conformance_gate_close(stream);
  for (int32_t i = 0; i < ROUNDS; ++i) {
    in[i] = i;
    out[i] = -1;
    assert_hip_ok(hipMemcpyAsync(numbers, in + i, sizeof(int32_t),
                                 hipMemcpyHostToDevice, stream));
    assert_hip_ok(conformance_add(stream, numbers, 1, 1000));
    assert_hip_ok(hipMemcpyAsync(out + i, numbers, sizeof(int32_t),
                                 hipMemcpyDeviceToHost, stream));
  }
  // None of it has happened; the sources may still change.
  assert_int_equal(out[0], -1);
  in[ROUNDS - 1] = 500;
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_hip_ok(hipStreamSynchronize(stream));
  for (int32_t i = 0; i < ROUNDS - 1; ++i) assert_int_equal(out[i], i + 1000);
  assert_int_equal(out[ROUNDS - 1], 1500);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipHostFree(memory));
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipFree(numbers));
}

static void test_streams_run_side_by_side(void** state) {
  (void)state;
  hipStream_t held = make_stream(hipStreamNonBlocking);
  hipStream_t other = make_stream(hipStreamNonBlocking);
  int32_t* log = make_log();
  conformance_gate_t gate = conformance_gate_close(held);
  assert_hip_ok(append(other, log, 1));
  assert_hip_ok(hipStreamSynchronize(other));
  // The null stream has nothing to do with either.
  assert_hip_ok(hipStreamSynchronize(NULL));
  assert_hip(hipErrorNotReady, hipStreamQuery(held));
  (void)hipGetLastError();
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_log(log, (int32_t[]){1}, 1);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipStreamDestroy(held));
  assert_hip_ok(hipStreamDestroy(other));
  assert_hip_ok(hipFree(log));
}

static void test_the_null_stream_orders_blocking_streams(void** state) {
  (void)state;
  hipStream_t before = make_stream(hipStreamDefault);
  hipStream_t after = make_stream(hipStreamDefault);
  int32_t* log = make_log();
  conformance_gate_t gate = conformance_gate_close(before);
  assert_hip_ok(append(before, log, 1));
  assert_hip_ok(append(NULL, log, 2));
  assert_hip_ok(append(after, log, 3));
  assert_hip(hipErrorNotReady, hipStreamQuery(after));
  assert_hip(hipErrorNotReady, hipStreamQuery(NULL));
  (void)hipGetLastError();
  conformance_let_run();
  conformance_gate_open(&gate);
  // The null stream's wait covers the streams that it is ordered with.
  assert_hip_ok(hipStreamSynchronize(NULL));
  assert_hip_ok(hipStreamQuery(before));
  assert_log(log, (int32_t[]){1, 2, 3}, 3);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipStreamDestroy(before));
  assert_hip_ok(hipStreamDestroy(after));
  assert_hip_ok(hipFree(log));
}

static void test_non_blocking_streams_pass_the_null_stream(void** state) {
  (void)state;
  hipStream_t stream = make_stream(hipStreamNonBlocking);
  int32_t* log = make_log();
  conformance_gate_t gate = conformance_gate_close(NULL);
  assert_hip_ok(append(stream, log, 1));
  assert_hip_ok(hipStreamSynchronize(stream));
  assert_hip(hipErrorNotReady, hipStreamQuery(NULL));
  (void)hipGetLastError();
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_log(log, (int32_t[]){1}, 1);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipStreamDestroy(stream));
  assert_hip_ok(hipFree(log));
}

static void test_filling_device_memory_does_not_wait(void** state) {
  (void)state;
  int32_t* numbers = conformance_numbers(2);
  conformance_gate_t gate = conformance_gate_close(NULL);
  assert_hip_ok(hipMemset(numbers, 0x11, sizeof(int32_t)));
  assert_hip(hipErrorNotReady, hipStreamQuery(NULL));
  (void)hipGetLastError();
  conformance_let_run();
  conformance_gate_open(&gate);
  int32_t values[2];
  conformance_read(numbers, values, 2);
  assert_int_equal(values[0], 0x11111111);
  assert_int_equal(values[1], 0);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipFree(numbers));
}

static void test_filled_memory_of_the_host_can_be_read(void** state) {
  (void)state;
  enum { COUNT = 1 << 20 };
  void* memory = NULL;
  assert_hip_ok(
      hipHostMalloc(&memory, COUNT * sizeof(int32_t), hipHostMallocDefault));
  const int32_t* values = memory;
  assert_hip_ok(hipMemset(memory, 0x11, COUNT * sizeof(int32_t)));
  assert_int_equal(values[COUNT - 1], 0x11111111);
  assert_hip_ok(hipHostFree(memory));
}

static void test_a_destroyed_stream_finishes_its_work(void** state) {
  (void)state;
  hipStream_t stream = make_stream(hipStreamNonBlocking);
  int32_t* log = make_log();
  conformance_gate_t gate = conformance_gate_close(stream);
  assert_hip_ok(append(stream, log, 9));
  assert_hip_ok(hipStreamDestroy(stream));
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_log(log, (int32_t[]){9}, 1);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipFree(log));
}

static void test_an_event_tells_when_its_stream_got_there(void** state) {
  (void)state;
  hipStream_t stream = make_stream(hipStreamNonBlocking);
  hipEvent_t event = make_event();
  // Never recorded: nothing to wait for.
  assert_hip_ok(hipEventQuery(event));
  assert_hip_ok(hipEventSynchronize(event));
  conformance_gate_t gate = conformance_gate_close(stream);
  assert_hip_ok(hipEventRecord(event, stream));
  assert_hip(hipErrorNotReady, hipEventQuery(event));
  (void)hipGetLastError();
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_hip_ok(hipEventSynchronize(event));
  assert_hip_ok(hipEventQuery(event));
  assert_hip_ok(hipStreamSynchronize(stream));
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipEventDestroy(event));
  assert_hip_ok(hipStreamDestroy(stream));
}

static void test_an_event_orders_streams(void** state) {
  (void)state;
  hipStream_t first = make_stream(hipStreamNonBlocking);
  hipStream_t second = make_stream(hipStreamNonBlocking);
  hipEvent_t event = make_event();
  int32_t* log = make_log();
  conformance_gate_t gate = conformance_gate_close(first);
  assert_hip_ok(append(first, log, 1));
  assert_hip_ok(hipEventRecord(event, first));
  assert_hip_ok(hipStreamWaitEvent(second, event, /*flags=*/0));
  assert_hip_ok(append(second, log, 2));
  // The wait is for the record that was the last when it was enqueued; the
  // event may be recorded again, and destroyed.
  assert_hip_ok(hipEventRecord(event, second));
  assert_hip_ok(hipEventDestroy(event));
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_log(log, (int32_t[]){1, 2}, 2);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipStreamDestroy(first));
  assert_hip_ok(hipStreamDestroy(second));
  assert_hip_ok(hipFree(log));
}

static void test_elapsed_time(void** state) {
  (void)state;
  float ms = -1.0f;
  hipStream_t stream = make_stream(hipStreamNonBlocking);
  hipEvent_t start = make_event();
  hipEvent_t stop = make_event();
  hipEvent_t untimed = NULL;
  assert_hip_ok(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
  assert_hip(hipErrorInvalidHandle, hipEventElapsedTime(&ms, start, stop));
  assert_hip_ok(hipEventRecord(start, stream));
  conformance_gate_t gate = conformance_gate_close(stream);
  assert_hip_ok(hipEventRecord(stop, stream));
  assert_hip_ok(hipEventRecord(untimed, stream));
  assert_hip(hipErrorNotReady, hipEventElapsedTime(&ms, start, stop));
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_hip_ok(hipStreamSynchronize(stream));
  assert_hip_ok(hipEventElapsedTime(&ms, start, stop));
  assert_true(ms > 0.0f);
  assert_hip(hipErrorInvalidHandle, hipEventElapsedTime(&ms, start, untimed));
  (void)hipGetLastError();
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipEventDestroy(start));
  assert_hip_ok(hipEventDestroy(stop));
  assert_hip_ok(hipEventDestroy(untimed));
  assert_hip_ok(hipStreamDestroy(stream));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_enqueueing_does_not_wait),
      cmocka_unit_test(test_a_stream_keeps_its_order),
      cmocka_unit_test(test_pinned_copies_are_in_stream_order),
      cmocka_unit_test(test_streams_run_side_by_side),
      cmocka_unit_test(test_the_null_stream_orders_blocking_streams),
      cmocka_unit_test(test_non_blocking_streams_pass_the_null_stream),
      cmocka_unit_test(test_filling_device_memory_does_not_wait),
      cmocka_unit_test(test_filled_memory_of_the_host_can_be_read),
      cmocka_unit_test(test_a_destroyed_stream_finishes_its_work),
      cmocka_unit_test(test_an_event_tells_when_its_stream_got_there),
      cmocka_unit_test(test_an_event_orders_streams),
      cmocka_unit_test(test_elapsed_time),
  };
  int skip = conformance_exit_code_without_device();
  if (skip != 0) return skip;
  return cmocka_run_group_tests(tests, conformance_set_up,
                                conformance_tear_down);
}
