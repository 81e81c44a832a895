// SPDX-License-Identifier: Apache-2.0
//
// Verifying covers every pool and every output of a whole layer: a step whose
// eager repetition agrees is silent, and a byte that differs in any one of them
// is found and named.

#include <string.h>

#include "tests/check.h"
#include "tests/graphs/kda_fixture.h"

enum { N = 3, SPOILED_SLOT = 7, SPOILED_SEQUENCE = 1 };

static const int32_t lens[N] = {1, 20, 40};
static const int32_t computed[N] = {5, 7, 0};
static const int32_t slots[N] = {2, SPOILED_SLOT, 4};

// The program's own function, and the bytes of the live step that are changed
// before it is called.
static sg_status_t (*compare)(void* self, const sg_recording_t* recording);
static int spoiled_buffer;
static size_t spoiled_offset;

static sg_status_t spoil_and_compare(void* self,
                                     const sg_recording_t* recording) {
  if (spoiled_buffer >= 0) {
    char* address = recording->buffers[spoiled_buffer];
    assert_hip(
        hipMemsetAsync(address + spoiled_offset, 0x77, 1, recording->stream));
  }
  return compare(self, recording);
}

static void set_up(kda_fixture_t* f) {
  kda_fixture_options_t options = kda_fixture_defaults();
  options.with_conv = true;
  options.with_norm = true;
  options.verify_every = 1;
  kda_fixture_set_up(f, &options);
  // A past for the slots.
  const sg_batch_t past = {N, (const int32_t[N]){5, 7, 3},
                           (const int32_t[N]){0}, slots};
  kda_fixture_run(f, &past, NULL);
}

// Runs a step with a byte changed in |buffer|, or in none where it is -1.
static void run_spoiled(kda_fixture_t* f, int buffer, size_t offset) {
  // The executor has the program by its address.
  sg_program_t* program = (sg_program_t*)(uintptr_t)f->program;
  compare = program->record_compare;
  program->record_compare = spoil_and_compare;
  spoiled_buffer = buffer;
  spoiled_offset = offset;
  const sg_batch_t batch = {N, lens, computed, slots};
  kda_fixture_run(f, &batch, NULL);
  program->record_compare = compare;
}

static void check_difference_is_found(sg_kda_buffer_t buffer, int32_t layer) {
  kda_fixture_t f;
  set_up(&f);
  const sg_buffer_spec_t* spec = kda_fixture_spec(&f, layer, buffer);
  // The last byte of a slot, or of the last row of the spoiled sequence.
  int32_t row =
      spec->role == SG_BUFFER_POOL ? SPOILED_SLOT : lens[0] + lens[1] - 1;
  int index = kda_fixture_index(&f, layer, buffer);
  run_spoiled(&f, index,
              (size_t)row * spec->stride_bytes + spec->row_bytes - 1);
  sg_mismatch_record_t mismatch;
  assert_true(sg_executor_first_mismatch(f.executor, &mismatch));
  assert_int_equal(mismatch.buffer, index);
  assert_int_equal(mismatch.row, row);
  assert_int_equal(mismatch.mismatched_rows, 1);
  kda_fixture_tear_down(&f);
}

static void test_equal_steps_are_silent(void** state) {
  (void)state;
  kda_fixture_t f;
  set_up(&f);
  run_spoiled(&f, /*buffer=*/-1, 0);
  sg_mismatch_record_t mismatch;
  assert_false(sg_executor_first_mismatch(f.executor, &mismatch));
  sg_statistics_t statistics;
  sg_executor_statistics(f.executor, &statistics);
  assert_int_equal(statistics.verified_steps, 2);
  kda_fixture_tear_down(&f);
}

static void test_every_pool_and_output_is_compared(void** state) {
  (void)state;
  for (int32_t layer = 0; layer < KDA_MAX_LAYERS; ++layer) {
    check_difference_is_found(SG_KDA_BUFFER_CONV_CACHE, layer);
    check_difference_is_found(SG_KDA_BUFFER_STATE, layer);
    check_difference_is_found(SG_KDA_BUFFER_O, layer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_steps_are_silent),
      cmocka_unit_test(test_every_pool_and_output_is_compared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
