// SPDX-License-Identifier: Apache-2.0
//
// Steps of the toy program through the executor, on any flavour.

#include <string.h>

#include "runtime/base/shared_word.h"
#include "tests/check.h"
#include "tests/runtime/executor_fixture.h"

static void run_random_steps(const fixture_options_t* options, int count,
                             sg_statistics_t* out_statistics) {
  fixture_t f;
  fixture_set_up(&f, options);
  for (int i = 0; i < count; ++i) {
    test_batch_t b;
    sg_step_report_t report;
    fixture_random_batch(&f, &b);
    fixture_step(&f, &b.batch, &report);
    assert_int_equal(report.shape_index < 0, report.reason != SG_EAGER_NONE);
    assert_false(report.has_error);
  }
  sg_executor_statistics(f.executor, out_statistics);
  assert_int_equal(out_statistics->steps, count);
  assert_int_equal(out_statistics->graph_steps + out_statistics->eager_steps,
                   count);
  assert_int_equal(out_statistics->error_steps, 0);
  fixture_tear_down(&f);
}

static void test_replays_equal_the_model(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  sg_statistics_t statistics;
  run_random_steps(&options, 300, &statistics);
  assert_true(statistics.graph_steps > 200);
  // Batches of more than 20 sequences that are not decodes alone fit no shape.
  assert_true(statistics.eager_by_reason[SG_EAGER_SEQUENCES] > 0);
}

static void test_eager_steps_equal_the_model(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.always_eager = true;
  sg_statistics_t statistics;
  run_random_steps(&options, 100, &statistics);
  assert_int_equal(statistics.eager_by_reason[SG_EAGER_REQUESTED], 100);
}

static void test_host_tables_travel_in_the_ring(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.tables = SG_TABLES_HOST;
  sg_statistics_t statistics;
  run_random_steps(&options, 200, &statistics);
}

static void test_lazy_capture_on_second_use(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.captured = false;
  options.capture = SG_CAPTURE_LAZY;
  sg_statistics_t statistics;
  run_random_steps(&options, 200, &statistics);
  // Each of the five shapes is met once before it is captured.
  assert_int_equal(statistics.eager_by_reason[SG_EAGER_NOT_CAPTURED], 5);
}

static void test_verified_steps_have_no_mismatch(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.verify_every = 3;
  sg_statistics_t statistics;
  run_random_steps(&options, 150, &statistics);
  assert_int_equal(statistics.verified_steps, 50);
  assert_int_equal(statistics.mismatched_rows, 0);
}

static const int32_t one[] = {1, 1};
static const int32_t seven[] = {7, 7};
static const int32_t three_slots[] = {3, 4};

// A program whose later recordings differ from its graphs stands for a kernel
// that depends on the capacity.
static void test_verify_sees_a_difference(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.verify_every = 1;
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_batch_t batch = {2, one, seven, three_slots};
  assert_ok(sg_executor_run(f.executor, &batch, f.stream, NULL));
  assert_hip(hipStreamSynchronize(f.stream));
  sg_mismatch_record_t mismatch;
  assert_false(sg_executor_first_mismatch(f.executor, &mismatch));
  // From here on eager steps see another null slot than the graphs do.
  f.toy.program.null_slot = 4;
  assert_ok(sg_executor_run(f.executor, &batch, f.stream, NULL));
  assert_hip(hipStreamSynchronize(f.stream));
  assert_true(sg_executor_first_mismatch(f.executor, &mismatch));
  assert_true(mismatch.step > 0);
  assert_int_equal(mismatch.row, mismatch.buffer == TOY_STATE ? 4 : 1);
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.mismatched_rows, 1);
  fixture_tear_down(&f);
}

static void test_full_ring_is_busy_and_loses_nothing(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.ring_depth = 4;
  fixture_t f;
  fixture_set_up(&f, &options);
  uint64_t* flag;
  void *host = NULL, *device = NULL;
  assert_hip(hipHostMalloc(&host, sizeof(uint64_t),
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipHostGetDevicePointer(&device, host, 0));
  flag = host;
  *flag = 0;
  gate_params_t gate = {device};
  void* arguments[] = {&gate};
  dim3 unit = {1, 1, 1};
  assert_hip(
      hipLaunchKernel(gate_handle(), unit, unit, arguments, 0, f.stream));
  sg_batch_t batch = {2, one, seven, three_slots};
  for (int i = 0; i < 4; ++i) {
    assert_ok(sg_executor_run(f.executor, &batch, f.stream, NULL));
    fixture_apply(&f, &batch);
  }
  for (int i = 0; i < 3; ++i) {
    assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
                SG_STATUS_BUSY);
  }
  sg_store_release(flag, 1);
  fixture_check_state(&f);
  fixture_step(&f, &batch, NULL);
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.busy_calls, 3);
  assert_int_equal(statistics.steps, 5);
  fixture_tear_down(&f);
  assert_hip(hipHostFree(host));
}

static void test_steps_on_two_streams_keep_their_order(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  hipStream_t second;
  assert_hip(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
  for (int i = 0; i < 60; ++i) {
    test_batch_t b;
    fixture_random_batch(&f, &b);
    hipStream_t stream = i % 3 == 0 ? second : f.stream;
    assert_ok(sg_executor_run(f.executor, &b.batch, stream, NULL));
    fixture_apply(&f, &b.batch);
  }
  assert_hip(hipStreamSynchronize(second));
  fixture_check_state(&f);
  fixture_tear_down(&f);
  assert_hip(hipStreamDestroy(second));
}

static void test_bad_batches_enqueue_nothing(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  static const int32_t negative[] = {1, -1};
  static const int32_t long_lens[] = {96, 1};
  sg_batch_t batch = {2, negative, seven, three_slots};
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_INVALID_DATA);
  batch = (sg_batch_t){2, one, negative, three_slots};
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_INVALID_DATA);
  batch = (sg_batch_t){2, long_lens, seven, three_slots};
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_OUT_OF_RANGE);
  batch = (sg_batch_t){FIXTURE_MAX_SEQUENCES + 1, one, seven, three_slots};
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_OUT_OF_RANGE);
  batch.sequence_count = -1;
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_OUT_OF_RANGE);
  fixture_check_state(&f);
  batch = (sg_batch_t){0};
  fixture_step(&f, &batch, NULL);
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.steps, 1);
  fixture_tear_down(&f);
}

// Slots are checked on the device: a step with a fault changes nothing, its
// outputs are zero, the error is told once, and the next step is right.
static void check_device_error(const int32_t* slots, int32_t code,
                               int32_t sequence, int64_t value, bool eager) {
  fixture_options_t options = fixture_defaults();
  options.always_eager = eager;
  options.verify_every = 2;
  fixture_t f;
  fixture_set_up(&f, &options);
  static const int32_t lens[] = {1, 0, 2, 3};
  static const int32_t computed[] = {7, 7, 7, 0};
  static const int32_t good_slots[] = {0, 1, 2, 3};
  sg_batch_t good = {4, lens, computed, good_slots};
  sg_batch_t bad = {4, lens, computed, slots};
  fixture_step(&f, &good, NULL);
  sg_step_report_t bad_report, good_report;
  assert_ok(sg_executor_run(f.executor, &bad, f.stream, &bad_report));
  assert_false(bad_report.has_error);
  fixture_check_state(&f);
  uint64_t zero[6] = {0};
  assert_hip(
      hipMemcpy(f.o, f.device[TOY_O], sizeof(zero), hipMemcpyDeviceToHost));
  assert_memory_equal(f.o, zero, sizeof(zero));
  fixture_step(&f, &good, &good_report);
  assert_true(good_report.has_error);
  assert_int_equal(good_report.error.step, bad_report.step);
  assert_int_equal(good_report.error.code, code);
  assert_int_equal(good_report.error.sequence, sequence);
  assert_int_equal(good_report.error.value, value);
  sg_step_error_record_t record;
  assert_false(sg_executor_poll_error(f.executor, &record));
  assert_false(
      sg_executor_first_mismatch(f.executor, &(sg_mismatch_record_t){0}));
  fixture_tear_down(&f);
}

static void test_slot_errors_change_no_slot(void** state) {
  (void)state;
  static const int32_t out_of_range[] = {0, 1, FIXTURE_SLOTS, 3};
  static const int32_t duplicate[] = {0, 1, 2, 0};
  for (int eager = 0; eager < 2; ++eager) {
    check_device_error(out_of_range, SG_STEP_ERROR_SLOT_RANGE, 2, FIXTURE_SLOTS,
                       eager);
    check_device_error(duplicate, SG_STEP_ERROR_SLOT_DUPLICATE, 3, 0, eager);
  }
  // An empty sequence may share a slot, or have one out of range.
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  static const int32_t lens[] = {1, 0, 0};
  static const int32_t computed[] = {7, 7, 7};
  static const int32_t slots[] = {2, 2, FIXTURE_SLOTS + 3};
  sg_batch_t batch = {3, lens, computed, slots};
  fixture_step(&f, &batch, NULL);
  sg_step_error_record_t record;
  assert_false(sg_executor_poll_error(f.executor, &record));
  fixture_tear_down(&f);
}

static void test_first_error_is_kept_until_read(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  int32_t slots[] = {FIXTURE_SLOTS + 1, 4};
  sg_batch_t batch = {2, one, seven, slots};
  for (int i = 0; i < 3; ++i) {
    slots[0] = FIXTURE_SLOTS + 1 + i;
    assert_ok(sg_executor_run(f.executor, &batch, f.stream, NULL));
  }
  assert_hip(hipStreamSynchronize(f.stream));
  sg_step_error_record_t record;
  assert_true(sg_executor_poll_error(f.executor, &record));
  assert_int_equal(record.value, FIXTURE_SLOTS + 1);
  assert_false(sg_executor_poll_error(f.executor, &record));
  assert_ok(sg_executor_run(f.executor, &batch, f.stream, NULL));
  assert_hip(hipStreamSynchronize(f.stream));
  assert_true(sg_executor_poll_error(f.executor, &record));
  assert_int_equal(record.value, FIXTURE_SLOTS + 3);
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.error_steps, 4);
  fixture_tear_down(&f);
}

static void test_no_match_may_be_an_error(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.on_no_match = SG_NO_MATCH_ERROR;
  options.max_padding_ratio = 2.0;
  fixture_t f;
  fixture_set_up(&f, &options);
  static const int32_t lens[] = {9, 1};
  sg_batch_t batch = {2, lens, seven, three_slots};
  sg_status_t status = sg_executor_run(f.executor, &batch, f.stream, NULL);
  assert_code(status, SG_STATUS_NOT_FOUND);
  assert_non_null(strstr(status.message, "padding"));
  fixture_check_state(&f);
  fixture_tear_down(&f);
}

static void test_misuse_returns_a_status(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.captured = false;
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_buffer_binding_t bindings[TOY_BUFFER_COUNT];
  for (int i = 0; i < TOY_BUFFER_COUNT; ++i) {
    bindings[i] = (sg_buffer_binding_t){f.device[i], f.toy.specs[i].bytes};
  }
  assert_code(sg_executor_bind(f.executor, bindings, 2),
              SG_STATUS_INVALID_ARGUMENT);
  bindings[1].bytes -= 1;
  sg_status_t status = sg_executor_bind(f.executor, bindings, 3);
  assert_code(status, SG_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(status.message, "state"));
  bindings[1].bytes += 1;
  bindings[1].address = (unsigned char*)f.device[1] + 8;
  assert_code(sg_executor_bind(f.executor, bindings, 3),
              SG_STATUS_INVALID_ARGUMENT);
  sg_executor_t* second = NULL;
  sg_executor_options_t bad;
  sg_executor_options_initialize(&bad);
  bad.ring_depth = 0;
  assert_code(
      sg_executor_create(f.context, &bad, &f.toy.program, &f.shapes, &second),
      SG_STATUS_INVALID_ARGUMENT);
  sg_executor_options_initialize(&bad);
  assert_ok(
      sg_executor_create(f.context, &bad, &f.toy.program, &f.shapes, &second));
  sg_batch_t batch = {0};
  assert_code(sg_executor_run(second, &batch, f.stream, NULL),
              SG_STATUS_FAILED_PRECONDITION);
  assert_code(sg_executor_capture(second, NULL, NULL),
              SG_STATUS_FAILED_PRECONDITION);
  sg_executor_destroy(second);
  sg_executor_destroy(NULL);
  fixture_tear_down(&f);
}

static void test_binding_again_drops_old_graphs(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_batch_t batch = {2, one, seven, three_slots};
  sg_step_report_t report;
  fixture_step(&f, &batch, &report);
  assert_int_equal(report.shape_index, 0);
  sg_buffer_binding_t bindings[TOY_BUFFER_COUNT];
  for (int i = 0; i < TOY_BUFFER_COUNT; ++i) {
    bindings[i] = (sg_buffer_binding_t){f.device[i], f.toy.specs[i].bytes};
  }
  void* moved = NULL;
  assert_hip(hipMalloc(&moved, f.toy.specs[TOY_O].bytes));
  bindings[TOY_O].address = moved;
  assert_ok(sg_executor_bind(f.executor, bindings, TOY_BUFFER_COUNT));
  assert_hip(hipFree(f.device[TOY_O]));
  f.device[TOY_O] = moved;
  fixture_step(&f, &batch, &report);
  assert_int_equal(report.reason, SG_EAGER_NOT_CAPTURED);
  assert_ok(sg_executor_capture(f.executor, NULL, NULL));
  fixture_step(&f, &batch, &report);
  assert_int_equal(report.shape_index, 0);
  fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replays_equal_the_model),
      cmocka_unit_test(test_eager_steps_equal_the_model),
      cmocka_unit_test(test_host_tables_travel_in_the_ring),
      cmocka_unit_test(test_lazy_capture_on_second_use),
      cmocka_unit_test(test_verified_steps_have_no_mismatch),
      cmocka_unit_test(test_verify_sees_a_difference),
      cmocka_unit_test(test_full_ring_is_busy_and_loses_nothing),
      cmocka_unit_test(test_steps_on_two_streams_keep_their_order),
      cmocka_unit_test(test_bad_batches_enqueue_nothing),
      cmocka_unit_test(test_slot_errors_change_no_slot),
      cmocka_unit_test(test_first_error_is_kept_until_read),
      cmocka_unit_test(test_no_match_may_be_an_error),
      cmocka_unit_test(test_misuse_returns_a_status),
      cmocka_unit_test(test_binding_again_drops_old_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
