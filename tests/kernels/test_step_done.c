// SPDX-License-Identifier: Apache-2.0
//
// What the end of a step tells the host.

#include <string.h>

#include "runtime/base/shared_word.h"
#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/kernels/metadata_fixture.h"

static const metadata_options_t options = {4, 16, 4,
                                           4, -1, SG_STEP_CONTENT_ANY};

// Ends |step| with an error, or none.
static void end_step(metadata_fixture_t* f, uint64_t step, int32_t code,
                     int32_t sequence, int64_t value) {
  sg_step_cursor_t cursor = {.next_step = step + 1, .current_step = step};
  sg_batch_counts_t counts = {
      .error_code = code, .error_sequence = sequence, .error_value = value};
  device_upload(f->ingest.cursor, &cursor, sizeof(cursor));
  device_upload(f->ingest.counts, &counts, sizeof(counts));
  sg_enqueue_t where = {f->stream, NULL, f->target, -1};
  assert_ok(sg_step_done_enqueue(&where, &f->done));
  assert_hip(hipStreamSynchronize(f->stream));
  assert_int_equal(sg_load_acquire(&f->mailbox->completed_step), step);
}

static void check_record(const metadata_fixture_t* f, uint64_t step,
                         int32_t code, int32_t sequence, int64_t value) {
  assert_int_equal(f->mailbox->error.step, step);
  assert_int_equal(f->mailbox->error.code, code);
  assert_int_equal(f->mailbox->error.sequence, sequence);
  assert_int_equal(f->mailbox->error.value, value);
}

static void test_good_steps_only_complete(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  for (uint64_t step = 1; step < 20; ++step) {
    end_step(&f, step, SG_STEP_ERROR_NONE, -1, 0);
  }
  end_step(&f, (uint64_t)1 << 40, SG_STEP_ERROR_NONE, -1, 0);
  assert_int_equal(f.mailbox->errors_written, 0);
  assert_int_equal(f.mailbox->error_steps, 0);
  metadata_tear_down(&f);
}

static void test_first_error_stays_until_read(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  const int64_t large = (int64_t)1 << 50;
  end_step(&f, 1, SG_STEP_ERROR_SLOT_RANGE, 3, large);
  assert_int_equal(f.mailbox->errors_written, 1);
  assert_int_equal(f.mailbox->error_steps, 1);
  check_record(&f, 1, SG_STEP_ERROR_SLOT_RANGE, 3, large);
  // Later errors are counted and do not take its place.
  end_step(&f, 2, SG_STEP_ERROR_PHASE, 1, 7);
  end_step(&f, 3, SG_STEP_ERROR_NONE, -1, 0);
  end_step(&f, 4, SG_STEP_ERROR_STALE_ENTRY, -1, 9);
  assert_int_equal(f.mailbox->errors_written, 1);
  assert_int_equal(f.mailbox->error_steps, 3);
  check_record(&f, 1, SG_STEP_ERROR_SLOT_RANGE, 3, large);
  // The host has read it: the next one takes its place.
  sg_store_release(&f.mailbox->errors_read, 1);
  end_step(&f, 5, SG_STEP_ERROR_NONE, -1, 0);
  assert_int_equal(f.mailbox->errors_written, 1);
  end_step(&f, 6, SG_STEP_ERROR_STALE_ENTRY, -1, -9);
  assert_int_equal(f.mailbox->errors_written, 2);
  assert_int_equal(f.mailbox->errors_read, 1);
  assert_int_equal(f.mailbox->error_steps, 4);
  check_record(&f, 6, SG_STEP_ERROR_STALE_ENTRY, -1, -9);
  metadata_tear_down(&f);
}

// The cursor says which step ended, as batch_ingest left it.
static void test_steps_are_numbered_by_the_ingest(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  static const int32_t lens[] = {2, 3};
  for (uint64_t step = 1; step <= 10; ++step) {
    metadata_set_batch(&f, 2, lens, NULL, NULL);
    metadata_step(&f);
    metadata_check_good(&f);
    assert_int_equal(sg_load_acquire(&f.mailbox->completed_step), step);
    sg_step_cursor_t cursor;
    assert_hip(hipMemcpy(&cursor, f.ingest.cursor, sizeof(cursor),
                         hipMemcpyDeviceToHost));
    assert_int_equal(cursor.current_step, step);
    assert_int_equal(cursor.next_step, step + 1);
  }
  metadata_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_good_steps_only_complete),
      cmocka_unit_test(test_first_error_stays_until_read),
      cmocka_unit_test(test_steps_are_numbered_by_the_ingest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
