// SPDX-License-Identifier: Apache-2.0
//
// Faults of batches: each code with its sequence and value, which one is kept
// of several, and that the next good step is good.

#include <string.h>

#include "kernels/common/batch_tables.h"
#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/kernels/metadata_fixture.h"
#include "tests/random.h"

// The null slot is a real one, so that its exemption shows.
static const metadata_options_t options = {8, 64, 4, 9, 5, SG_STEP_CONTENT_ANY};

static const int32_t good_lens[] = {1, 1, 3, 0, 6, 1};
static const int32_t good_computed[] = {7, 2, 0, 0, 4, 0};
static const int32_t good_slots[] = {0, 1, 2, 3, 4, 6};
enum { GOOD_COUNT = 6 };

static void set_good(metadata_fixture_t* f) {
  metadata_set_batch(f, GOOD_COUNT, good_lens, good_computed, good_slots);
}

static void run_good(metadata_fixture_t* f) {
  set_good(f);
  metadata_step(f);
  metadata_check_good(f);
}

// Runs the batch at hand, expects the fault, then a good step.
static void expect_fault(metadata_fixture_t* f, int32_t code, int32_t sequence,
                         int64_t value) {
  uint64_t errors = f->mailbox->error_steps;
  metadata_step(f);
  metadata_check_error(f, code, sequence, value);
  assert_int_equal(f->mailbox->error_steps, errors + 1);
  assert_int_equal(f->mailbox->completed_step, f->step - 1);
  run_good(f);
  assert_int_equal(f->mailbox->error_steps, errors + 1);
}

static void test_stale_entry(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  run_good(&f);
  static const uint64_t found[] = {0, 1, 3, (uint64_t)1 << 32 | 2};
  for (int i = 0; i < 4; ++i) {
    set_good(&f);
    metadata_write_entry(&f, found[i]);
    metadata_run(&f);
    metadata_check_error(&f, SG_STEP_ERROR_STALE_ENTRY, -1, (int64_t)found[i]);
    run_good(&f);
  }
  // An entry that nobody wrote still has the step of the last time around.
  uint64_t expected = f.step - (uint64_t)f.ring_depth;
  metadata_run(&f);
  metadata_check_error(&f, SG_STEP_ERROR_STALE_ENTRY, -1, (int64_t)expected);
  run_good(&f);
  metadata_tear_down(&f);
}

static void test_sequence_count(void** state) {
  (void)state;
  static const int32_t counts[] = {9, INT32_MAX, -1, INT32_MIN};
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  for (int i = 0; i < 4; ++i) {
    set_good(&f);
    f.batch.sequence_count = counts[i];
    expect_fault(&f, SG_STEP_ERROR_SEQUENCE_COUNT, -1, counts[i]);
  }
  metadata_tear_down(&f);
  // More than the launch is for, though the ring has room for them.
  metadata_set_up(&f, &options);
  f.ingest.sequence_capacity = f.metadata.sequence_capacity = 5;
  set_good(&f);
  metadata_step(&f);
  metadata_check_error(&f, SG_STEP_ERROR_SEQUENCE_COUNT, -1, GOOD_COUNT);
  metadata_tear_down(&f);
}

static void test_offsets(void** state) {
  (void)state;
  static const int32_t firsts[] = {1, -1, INT32_MAX, INT32_MIN};
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  for (int i = 0; i < 4; ++i) {
    set_good(&f);
    f.batch.query_start_loc[0] = firsts[i];
    expect_fault(&f, SG_STEP_ERROR_FIRST_OFFSET, 0, firsts[i]);
    f.batch.sequence_count = 0;
    f.batch.query_start_loc[0] = firsts[i];
    expect_fault(&f, SG_STEP_ERROR_FIRST_OFFSET, 0, firsts[i]);
  }
  // good offsets: 0 1 2 5 5 11 12
  set_good(&f);
  f.batch.query_start_loc[4] = 3;
  expect_fault(&f, SG_STEP_ERROR_DECREASING_OFFSET, 3, -2);
  set_good(&f);
  f.batch.query_start_loc[6] = INT32_MIN;
  expect_fault(&f, SG_STEP_ERROR_DECREASING_OFFSET, 5, (int64_t)INT32_MIN - 11);
  // Decreasing below 0 and up again, with differences beyond 32 bits.
  set_good(&f);
  f.batch.query_start_loc[1] = -5;
  f.batch.query_start_loc[2] = INT32_MAX;
  expect_fault(&f, SG_STEP_ERROR_DECREASING_OFFSET, 0, -5);
  set_good(&f);
  f.batch.query_start_loc[6] = 64;
  metadata_step(&f);
  metadata_check_good(&f);
  set_good(&f);
  f.batch.query_start_loc[6] = 65;
  expect_fault(&f, SG_STEP_ERROR_TOKEN_COUNT, 5, 65);
  set_good(&f);
  f.batch.query_start_loc[3] = INT32_MAX;
  expect_fault(&f, SG_STEP_ERROR_TOKEN_COUNT, 2, INT32_MAX);
  metadata_tear_down(&f);
}

static void test_slots(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  for (int32_t n = 0; n < GOOD_COUNT; ++n) {
    if (good_lens[n] == 0) continue;
    set_good(&f);
    f.batch.slots[n] = 9;
    expect_fault(&f, SG_STEP_ERROR_SLOT_RANGE, n, 9);
    set_good(&f);
    f.batch.slots[n] = INT32_MAX;
    expect_fault(&f, SG_STEP_ERROR_SLOT_RANGE, n, INT32_MAX);
    if (n == 0) continue;
    set_good(&f);
    f.batch.slots[n] = 0;
    expect_fault(&f, SG_STEP_ERROR_SLOT_DUPLICATE, n, 0);
  }
  // The last slot is in range.
  set_good(&f);
  f.batch.slots[0] = 8;
  metadata_step(&f);
  metadata_check_good(&f);
  metadata_tear_down(&f);
}

// The null slot, no slot and the slots of empty sequences may be there twice
// or be out of range.
static void test_slots_that_are_none(void** state) {
  (void)state;
  static const int32_t lens[] = {1, 0, 2, 0, 2, 2};
  static const int32_t slots[][6] = {
      {5, 5, 5, 5, 5, 5},         {-1, -1, -1, -1, -1, -1},
      {0, 0, 1, 1, 2, 3},         {0, 1, 1, 2, 2, 3},
      {0, 9, 1, INT32_MAX, 2, 3}, {-7, INT32_MIN, INT32_MIN, 8, 8, -7},
  };
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); ++i) {
    metadata_set_batch(&f, 6, lens, NULL, slots[i]);
    metadata_step(&f);
    metadata_check_good(&f);
  }
  metadata_tear_down(&f);
}

static void test_computed_lengths(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  for (int32_t n = 0; n < GOOD_COUNT; ++n) {
    if (good_lens[n] == 0) continue;
    set_good(&f);
    f.batch.computed_lens[n] = -3;
    expect_fault(&f, SG_STEP_ERROR_COMPUTED_LENGTH, n, -3);
    set_good(&f);
    f.batch.computed_lens[n] = INT32_MIN;
    expect_fault(&f, SG_STEP_ERROR_COMPUTED_LENGTH, n, INT32_MIN);
  }
  metadata_tear_down(&f);
}

static void test_phases(void** state) {
  (void)state;
  static const int32_t ones[] = {1, 1, 1, 1};
  static const int32_t known[] = {4, 4, 4, 4};
  static const int32_t last_fresh[] = {4, 4, 4, 0};
  static const int32_t gap[] = {1, 0, 1, 0};
  static const int32_t tail[] = {1, 1, 0, 0};
  static const int32_t longer[] = {1, 2, 1, 1};
  static const int32_t head[] = {0, 1, 1, 5};
  metadata_options_t decodes = options, prefills = options;
  decodes.content = SG_STEP_CONTENT_DECODES;
  prefills.content = SG_STEP_CONTENT_PREFILLS;
  metadata_fixture_t f;
  metadata_set_up(&f, &decodes);
  const struct {
    const int32_t *lens, *computed;
    int32_t sequence, value;
  } bad[] = {{ones, last_fresh, 3, 1},
             {gap, known, 2, 1},
             {longer, known, 1, 2},
             {head, known, 1, 1}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    metadata_set_batch(&f, 4, bad[i].lens, bad[i].computed, NULL);
    metadata_step(&f);
    metadata_check_error(&f, SG_STEP_ERROR_PHASE, bad[i].sequence,
                         bad[i].value);
    metadata_set_batch(&f, 4, i % 2 == 0 ? tail : ones, known, good_slots);
    metadata_step(&f);
    metadata_check_good(&f);
  }
  metadata_tear_down(&f);
  metadata_set_up(&f, &prefills);
  metadata_set_batch(&f, 4, ones, known, NULL);
  metadata_step(&f);
  metadata_check_error(&f, SG_STEP_ERROR_PHASE, 0, 1);
  // Single tokens after the first sequence are prefill, and so are empty ones.
  metadata_set_batch(&f, 4, head, known, good_slots);
  metadata_step(&f);
  metadata_check_good(&f);
  metadata_tear_down(&f);
}

static void test_set_errors_stay(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  run_good(&f);
  sg_batch_counts_t set = f.counts;
  set.error_code = SG_STEP_ERROR_PHASE;
  set.error_sequence = 4;
  set.error_value = 77;
  device_upload(f.ingest.counts, &set, sizeof(set));
  // A fault that would go before it, were it not set already.
  int32_t first = 3;
  device_upload(f.ingest.query_start_loc, &first, sizeof(first));
  sg_enqueue_t where = {f.stream, NULL, f.target, -1};
  assert_ok(sg_chunk_metadata_enqueue(&where, &f.metadata));
  metadata_read(&f);
  metadata_check_error(&f, SG_STEP_ERROR_PHASE, 4, 77);
  metadata_tear_down(&f);
}

typedef struct fault_t {
  int32_t code;
  int32_t sequence;
  int64_t value;
} fault_t;

static bool is_slot(const metadata_fixture_t* f, int32_t n) {
  int32_t slot = f->batch.slots[n];
  return slot >= 0 && slot != f->options.null_slot &&
         f->batch.query_start_loc[n] != f->batch.query_start_loc[n + 1];
}

// The first fault of sequence |n|, in the order of the enumeration.
static fault_t fault_of(const metadata_fixture_t* f, int32_t n,
                        int32_t decodes) {
  const metadata_batch_t* b = &f->batch;
  const int32_t* offsets = b->query_start_loc;
  int64_t length = (int64_t)offsets[n + 1] - offsets[n];
  int32_t slot = b->slots[n];
  if (length < 0) return (fault_t){SG_STEP_ERROR_DECREASING_OFFSET, n, length};
  if (offsets[n + 1] > f->options.tokens) {
    return (fault_t){SG_STEP_ERROR_TOKEN_COUNT, n, offsets[n + 1]};
  }
  if (is_slot(f, n) && slot >= f->options.slot_count) {
    return (fault_t){SG_STEP_ERROR_SLOT_RANGE, n, slot};
  }
  for (int32_t i = 0; i < n && is_slot(f, n); ++i) {
    if (is_slot(f, i) && b->slots[i] == slot) {
      return (fault_t){SG_STEP_ERROR_SLOT_DUPLICATE, n, slot};
    }
  }
  bool bad_phase =
      (f->options.content == SG_STEP_CONTENT_DECODES && n >= decodes &&
       length > 0) ||
      (f->options.content == SG_STEP_CONTENT_PREFILLS && n < decodes);
  if (bad_phase) return (fault_t){SG_STEP_ERROR_PHASE, n, length};
  if (length > 0 && b->computed_lens[n] < 0) {
    return (fault_t){SG_STEP_ERROR_COMPUTED_LENGTH, n, b->computed_lens[n]};
  }
  return (fault_t){SG_STEP_ERROR_NONE, -1, 0};
}

static fault_t first_fault(const metadata_fixture_t* f) {
  const metadata_batch_t* b = &f->batch;
  int32_t decodes = 0;
  while (decodes < b->sequence_count &&
         b->query_start_loc[decodes + 1] - b->query_start_loc[decodes] == 1 &&
         b->computed_lens[decodes] > 0) {
    ++decodes;
  }
  for (int32_t n = 0; n < b->sequence_count; ++n) {
    fault_t fault = fault_of(f, n, decodes);
    if (fault.code != SG_STEP_ERROR_NONE) return fault;
  }
  return (fault_t){SG_STEP_ERROR_NONE, -1, 0};
}

static void random_faulty_batch(metadata_fixture_t* f, uint64_t* seed) {
  int32_t count = random_below(seed, options.sequences + 1);
  int32_t lens[8], computed[8], slots[8];
  int32_t decodes = random_below(seed, count + 1);
  for (int32_t n = 0; n < count; ++n) {
    lens[n] = n < decodes ? 1 : random_below(seed, 8);
    computed[n] = 1 + random_below(seed, 5);
    if (n >= decodes && random_below(seed, 2) == 0) computed[n] = 0;
    slots[n] = n;
    int32_t kind = random_below(seed, 24);
    if (kind == 0) lens[n] = -1 - random_below(seed, 3);
    if (kind == 1) lens[n] = 20 + random_below(seed, 60);
    if (kind == 2) slots[n] = random_below(seed, 14) - 2;
    if (kind == 3) computed[n] = -1 - random_below(seed, 3);
    if (kind == 4) lens[n] = 0;
  }
  metadata_set_batch(f, count, lens, computed, slots);
}

static void test_random_faults(void** state) {
  (void)state;
  uint64_t seed = 9;
  int met[SG_STEP_ERROR_COMPUTED_LENGTH + 1] = {0};
  for (int content = 0; content < 3; ++content) {
    metadata_options_t with_content = options;
    with_content.content = (sg_step_content_t)content;
    metadata_fixture_t f;
    metadata_set_up(&f, &with_content);
    for (int i = 0; i < 1200; ++i) {
      random_faulty_batch(&f, &seed);
      fault_t fault = first_fault(&f);
      metadata_step(&f);
      metadata_check_error(&f, fault.code, fault.sequence, fault.value);
      if (fault.code == SG_STEP_ERROR_NONE) metadata_check_good(&f);
      ++met[fault.code];
    }
    metadata_tear_down(&f);
  }
  for (int code = SG_STEP_ERROR_DECREASING_OFFSET; code <= SG_STEP_ERROR_PHASE;
       ++code) {
    assert_true(met[code] > 20);
  }
  assert_true(met[SG_STEP_ERROR_COMPUTED_LENGTH] > 20);
  assert_true(met[SG_STEP_ERROR_NONE] > 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stale_entry),
      cmocka_unit_test(test_sequence_count),
      cmocka_unit_test(test_offsets),
      cmocka_unit_test(test_slots),
      cmocka_unit_test(test_slots_that_are_none),
      cmocka_unit_test(test_computed_lengths),
      cmocka_unit_test(test_phases),
      cmocka_unit_test(test_set_errors_stay),
      cmocka_unit_test(test_random_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
