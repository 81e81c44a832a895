// SPDX-License-Identifier: Apache-2.0
//
// Buffers of the executor's own, slots, capture policies, budgets and the log.

#include <string.h>

#include "tests/check.h"
#include "tests/runtime/executor_fixture.h"

static const int32_t one[] = {1, 1};
static const int32_t seven[] = {7, 7};
static const int32_t slots[] = {3, 4};
static const sg_batch_t decodes = {2, one, seven, slots};

static void test_owned_buffers(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.owned = true;
  fixture_t f;
  fixture_set_up(&f, &options);
  for (int i = 0; i < 50; ++i) {
    test_batch_t b;
    fixture_random_batch(&f, &b);
    fixture_step(&f, &b.batch, NULL);
  }
  fixture_tear_down(&f);
}

static void test_rebinding_one_buffer(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  fixture_step(&f, &decodes, NULL);
  // The executor's own memory starts zeroed, so the slots start anew.
  sg_buffer_binding_t own = {0};
  assert_ok(sg_executor_rebind(f.executor, TOY_STATE, own));
  void* before = f.device[TOY_STATE];
  f.device[TOY_STATE] = sg_executor_buffer(f.executor, TOY_STATE);
  assert_ptr_not_equal(before, f.device[TOY_STATE]);
  memset(f.model_state, 0, sizeof(f.model_state));
  sg_step_report_t report;
  fixture_step(&f, &decodes, &report);
  assert_int_equal(report.reason, SG_EAGER_NOT_CAPTURED);
  assert_code(sg_executor_rebind(f.executor, TOY_BUFFER_COUNT, own),
              SG_STATUS_INVALID_ARGUMENT);
  // Back to the caller's memory, which still holds what it held.
  assert_ok(sg_executor_rebind(
      f.executor, TOY_STATE,
      (sg_buffer_binding_t){before, f.toy.specs[TOY_STATE].bytes}));
  f.device[TOY_STATE] = before;
  fixture_tear_down(&f);
}

static void test_slots_are_copied_and_zeroed_in_order(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  hipStream_t second;
  assert_hip(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
  static const int32_t to[] = {10, 11};
  static const int32_t cleared[] = {3};
  // Queued without waiting, the slot calls on another stream than the steps.
  for (int i = 0; i < 20; ++i) {
    assert_ok(sg_executor_run(f.executor, &decodes, f.stream, NULL));
    fixture_apply(&f, &decodes);
    assert_ok(sg_executor_copy_slots(f.executor, slots, to, 2, second));
    f.model_state[10] = f.model_state[3];
    f.model_state[11] = f.model_state[4];
    assert_ok(sg_executor_zero_slots(f.executor, cleared, 1, second));
    f.model_state[3] = 0;
  }
  assert_ok(sg_executor_run(f.executor, &decodes, f.stream, NULL));
  fixture_apply(&f, &decodes);
  fixture_check_state(&f);
  static const int32_t wrong[] = {-1, FIXTURE_SLOTS, FIXTURE_NULL_SLOT};
  for (int i = 0; i < 3; ++i) {
    assert_code(
        sg_executor_copy_slots(f.executor, slots, &wrong[i], 1, f.stream),
        SG_STATUS_OUT_OF_RANGE);
    assert_code(sg_executor_zero_slots(f.executor, &wrong[i], 1, f.stream),
                SG_STATUS_OUT_OF_RANGE);
  }
  fixture_check_state(&f);
  fixture_tear_down(&f);
  assert_hip(hipStreamDestroy(second));
}

static void test_background_capture_while_steps_run(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.capture = SG_CAPTURE_BACKGROUND;
  options.ring_depth = 8;
  for (int round = 0; round < 5; ++round) {
    fixture_t f;
    fixture_set_up(&f, &options);
    for (int i = 0; i < 60; ++i) {
      test_batch_t b;
      fixture_random_batch(&f, &b);
      fixture_step(&f, &b.batch, NULL);
      if (i == 40) sg_executor_wait_captured(f.executor);
    }
    sg_step_report_t report;
    fixture_step(&f, &decodes, &report);
    assert_int_equal(report.shape_index, 0);
    sg_statistics_t statistics;
    sg_executor_statistics(f.executor, &statistics);
    assert_int_equal(statistics.error_steps, 0);
    // Every other round ends while captures may be going on.
    if (round % 2 == 1) {
      sg_buffer_binding_t own = {0};
      assert_ok(sg_executor_rebind(f.executor, TOY_X, own));
      assert_ok(sg_executor_capture(f.executor, NULL, NULL));
    }
    fixture_tear_down(&f);
  }
}

static size_t count_captured(const fixture_t* f) {
  size_t count = 0;
  for (size_t i = 0; i < f->shapes.shape_count; ++i) {
    sg_shape_statistics_t statistics;
    sg_executor_shape_statistics(f->executor, i, &statistics);
    count += statistics.captured;
  }
  return count;
}

static void test_estimate_says_what_is_taken(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.verify_every = 2;
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_executor_options_t executor_options;
  sg_executor_options_initialize(&executor_options);
  executor_options.verify_every = 2;
  sg_memory_estimate_t estimate;
  assert_ok(sg_executor_estimate(f.context, &executor_options, &f.toy.program,
                                 &f.shapes, &estimate));
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(
      estimate.arena_bytes + estimate.shadow_bytes + sizeof(sg_step_cursor_t),
      statistics.device_bytes);
  assert_int_equal(estimate.pinned_bytes, statistics.pinned_bytes);
  // Ingest, metadata, layer and end in each of the five shapes.
  assert_int_equal(estimate.node_count, 5 * 4);
  assert_int_equal(estimate.graph_bytes, 5 * 4 * SG_GRAPH_NODE_BYTES);
  fixture_tear_down(&f);
}

static void test_shrinking_budget_evicts_the_least_used(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  uint64_t total = 0;
  for (size_t i = 0; i < f.shapes.shape_count; ++i) {
    sg_shape_statistics_t statistics;
    sg_executor_shape_statistics(f.executor, i, &statistics);
    if (statistics.graph_bytes > 0) total += (uint64_t)statistics.graph_bytes;
  }
  // A runtime that takes graphs from a pool shows no difference: nothing to
  // evict by.
  if (total == 0) {
    fixture_tear_down(&f);
    return;
  }
  fixture_step(&f, &decodes, NULL);
  sg_executor_set_memory_budget(f.executor, total - 1);
  assert_int_equal(count_captured(&f), 4);
  sg_executor_set_memory_budget(f.executor, 1);
  assert_int_equal(count_captured(&f), 0);
  sg_step_report_t report;
  fixture_step(&f, &decodes, &report);
  assert_int_equal(report.reason, SG_EAGER_MEMORY_BUDGET);
  assert_true(report.reason_limit == 1);
  assert_true(report.reason_actual > 1);
  sg_executor_set_memory_budget(f.executor, 0);
  assert_ok(sg_executor_capture(f.executor, NULL, NULL));
  assert_int_equal(count_captured(&f), 5);
  fixture_step(&f, &decodes, &report);
  assert_int_equal(report.shape_index, 0);
  fixture_tear_down(&f);
}

typedef struct log_t {
  int counts[SG_LOG_ERROR + 1];
  char last[400];
} log_t;

static void keep_line(void* self, sg_log_level_t level, const char* message) {
  log_t* log = self;
  ++log->counts[level];
  strncpy(log->last, message, sizeof(log->last) - 1);
}

static void test_log_tells_of_captures(void** state) {
  (void)state;
  log_t log = {0};
  fixture_options_t options = fixture_defaults();
  options.log = keep_line;
  options.log_self = &log;
  fixture_t f;
  fixture_set_up(&f, &options);
  assert_int_equal(log.counts[SG_LOG_INFO], 5);
  assert_int_equal(log.counts[SG_LOG_WARNING], 0);
  assert_non_null(strstr(log.last, "captured decode 8 tokens"));
  fixture_tear_down(&f);
}

static void test_capturing_streams_are_refused(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  fixture_step(&f, &decodes, NULL);
  assert_hip(hipStreamBeginCapture(f.stream, hipStreamCaptureModeThreadLocal));
  assert_code(sg_executor_run(f.executor, &decodes, f.stream, NULL),
              SG_STATUS_FAILED_PRECONDITION);
  hipGraph_t graph = NULL;
  assert_hip(hipStreamEndCapture(f.stream, &graph));
  if (graph != NULL) assert_hip(hipGraphDestroy(graph));
  fixture_step(&f, &decodes, NULL);
  fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_owned_buffers),
      cmocka_unit_test(test_rebinding_one_buffer),
      cmocka_unit_test(test_slots_are_copied_and_zeroed_in_order),
      cmocka_unit_test(test_background_capture_while_steps_run),
      cmocka_unit_test(test_estimate_says_what_is_taken),
      cmocka_unit_test(test_shrinking_budget_evicts_the_least_used),
      cmocka_unit_test(test_log_tells_of_captures),
      cmocka_unit_test(test_capturing_streams_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
