// SPDX-License-Identifier: Apache-2.0
//
// Batches whose lengths and slots are on the device.

#include <string.h>

#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/runtime/executor_fixture.h"

// Device memory that a batch is copied to.
typedef struct device_arrays_t {
  int32_t* query_start_loc;
  int32_t* computed_lens;
  int32_t* slots;
  int32_t* sequence_count;
} device_arrays_t;

// What is not filled in must not be read.
static int32_t* allocate_ints(size_t count) {
  return device_allocate(count * sizeof(int32_t), 0x5a);
}

static device_arrays_t allocate_arrays(void) {
  return (device_arrays_t){allocate_ints(FIXTURE_MAX_SEQUENCES + 1),
                           allocate_ints(FIXTURE_MAX_SEQUENCES),
                           allocate_ints(FIXTURE_MAX_SEQUENCES),
                           allocate_ints(1)};
}

static void free_arrays(device_arrays_t* a) {
  assert_hip(hipFree(a->query_start_loc));
  assert_hip(hipFree(a->computed_lens));
  assert_hip(hipFree(a->slots));
  assert_hip(hipFree(a->sequence_count));
}

static void copy_ints(int32_t* to, const int32_t* from, int32_t count) {
  device_upload(to, from, (size_t)count * sizeof(int32_t));
}

// Copies |batch| to the device; returns its tokens.
static int32_t upload(const device_arrays_t* a, const sg_batch_t* batch) {
  int32_t offsets[FIXTURE_MAX_SEQUENCES + 1] = {0};
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    offsets[n + 1] = offsets[n] + batch->query_lens[n];
  }
  copy_ints(a->query_start_loc, offsets, batch->sequence_count + 1);
  copy_ints(a->computed_lens, batch->computed_lens, batch->sequence_count);
  copy_ints(a->slots, batch->slots, batch->sequence_count);
  copy_ints(a->sequence_count, &batch->sequence_count, 1);
  return offsets[batch->sequence_count];
}

static bool has_prefill(const sg_batch_t* batch, int32_t tokens) {
  sg_batch_summary_t summary;
  sg_shape_limits_t limits = {FIXTURE_MAX_TOKENS, FIXTURE_MAX_SEQUENCES};
  assert_ok(sg_batch_summarize(batch, limits, &summary));
  return tokens > summary.decode_count;
}

static void test_device_batches_equal_the_model(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.verify_every = 2;
  fixture_t f;
  fixture_set_up(&f, &options);
  device_arrays_t arrays = allocate_arrays();
  int graphs = 0;
  for (int i = 0; i < 200; ++i) {
    test_batch_t b;
    fixture_random_batch(&f, &b);
    int32_t tokens = upload(&arrays, &b.batch);
    // Bounds above the real sizes, as a scheduler ahead of the device has them.
    int32_t slack = (int32_t)(fixture_random(&f) % 4);
    sg_device_batch_t batch = {.query_start_loc = arrays.query_start_loc,
                               .computed_lens = arrays.computed_lens,
                               .slots = arrays.slots,
                               .sequence_count = arrays.sequence_count,
                               .max_sequences = b.batch.sequence_count + slack,
                               .max_tokens = tokens + slack,
                               .has_prefill = has_prefill(&b.batch, tokens)};
    if (batch.max_sequences > FIXTURE_MAX_SEQUENCES) {
      batch.max_sequences = FIXTURE_MAX_SEQUENCES;
    }
    if (batch.max_tokens > FIXTURE_MAX_TOKENS) {
      batch.max_tokens = FIXTURE_MAX_TOKENS;
    }
    sg_step_report_t report;
    assert_ok(sg_executor_run_device(f.executor, &batch, f.stream, &report));
    assert_false(report.verified);
    assert_false(report.has_error);
    graphs += report.shape_index >= 0;
    fixture_apply(&f, &b.batch);
    fixture_check_state(&f);
    size_t bytes = (size_t)tokens * sizeof(uint64_t);
    if (bytes > 0) {
      assert_hip(hipMemcpy(f.o, f.device[TOY_O], bytes, hipMemcpyDeviceToHost));
      assert_memory_equal(f.o, f.model_o, bytes);
    }
  }
  assert_true(graphs > 100);
  free_arrays(&arrays);
  fixture_tear_down(&f);
}

// Runs |device_batch|, which has a fault, and checks that it changed nothing.
static void check_fault(fixture_t* f, const sg_device_batch_t* batch,
                        sg_step_error_t code, int32_t sequence, int64_t value) {
  assert_ok(sg_executor_run_device(f->executor, batch, f->stream, NULL));
  fixture_check_state(f);
  sg_step_error_record_t error;
  assert_true(sg_executor_poll_error(f->executor, &error));
  assert_int_equal(error.code, code);
  assert_int_equal(error.sequence, sequence);
  assert_int_equal(error.value, value);
}

static void test_what_exceeds_the_bounds_is_a_fault(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  device_arrays_t arrays = allocate_arrays();
  static const int32_t lens[] = {1, 1, 7};
  static const int32_t computed[] = {4, 5, 6};
  static const int32_t slots[] = {0, 1, 2};
  sg_batch_t b = {3, lens, computed, slots};
  upload(&arrays, &b);
  sg_device_batch_t batch = {.query_start_loc = arrays.query_start_loc,
                             .computed_lens = arrays.computed_lens,
                             .slots = arrays.slots,
                             .sequence_count = arrays.sequence_count,
                             .max_sequences = 3,
                             .max_tokens = 9,
                             .has_prefill = true};
  // More sequences on the device than were announced.
  batch.max_sequences = 2;
  check_fault(&f, &batch, SG_STEP_ERROR_SEQUENCE_COUNT, -1, -1);
  // A prefill where none was announced.
  batch.max_sequences = 3;
  batch.has_prefill = false;
  batch.max_tokens = 24;
  check_fault(&f, &batch, SG_STEP_ERROR_PHASE, 2, 7);
  // Offsets that the host never saw.
  batch.has_prefill = true;
  int32_t bad[] = {0, 2, 1, 9};
  copy_ints(arrays.query_start_loc, bad, 4);
  check_fault(&f, &batch, SG_STEP_ERROR_DECREASING_OFFSET, 1, -1);
  // The next good step is right.
  fixture_step(&f, &b, NULL);
  free_arrays(&arrays);
  fixture_tear_down(&f);
}

static void test_bad_device_batches_are_refused(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.tables = SG_TABLES_HOST;
  fixture_t f;
  fixture_set_up(&f, &options);
  device_arrays_t arrays = allocate_arrays();
  sg_device_batch_t batch = {.query_start_loc = arrays.query_start_loc,
                             .computed_lens = arrays.computed_lens,
                             .slots = arrays.slots,
                             .max_sequences = 1,
                             .max_tokens = 1};
  assert_code(sg_executor_run_device(f.executor, &batch, f.stream, NULL),
              SG_STATUS_UNSUPPORTED);
  fixture_tear_down(&f);
  options.tables = SG_TABLES_DEVICE;
  fixture_set_up(&f, &options);
  batch.max_tokens = FIXTURE_MAX_TOKENS + 1;
  assert_code(sg_executor_run_device(f.executor, &batch, f.stream, NULL),
              SG_STATUS_OUT_OF_RANGE);
  batch.max_tokens = 1;
  batch.slots = NULL;
  assert_code(sg_executor_run_device(f.executor, &batch, f.stream, NULL),
              SG_STATUS_INVALID_ARGUMENT);
  batch.slots = arrays.slots;
  assert_code(sg_executor_begin(f.executor, NULL, NULL, f.stream, NULL),
              SG_STATUS_INVALID_ARGUMENT);
  fixture_check_state(&f);
  free_arrays(&arrays);
  fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_device_batches_equal_the_model),
      cmocka_unit_test(test_what_exceeds_the_bounds_is_a_fault),
      cmocka_unit_test(test_bad_device_batches_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
