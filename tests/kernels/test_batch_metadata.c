// SPDX-License-Identifier: Apache-2.0
//
// Good batches through batch_ingest, chunk_metadata and step_done. With
// METADATA_MANY defined, many more of them.

#include <stdlib.h>
#include <string.h>

#include "kernels/common/batch_tables.h"
#include "tests/check.h"
#include "tests/kernels/metadata_fixture.h"
#include "tests/random.h"

#ifdef METADATA_MANY
enum { SMALL_ROUNDS = 30000, LARGE_ROUNDS = 600 };
#else
enum { SMALL_ROUNDS = 2500, LARGE_ROUNDS = 40 };
#endif

static const metadata_options_t large = {.sequences = 4100,
                                         .tokens = 40000,
                                         .chunk_size = 64,
                                         .slot_count = 5000,
                                         .null_slot = 0};

// Deals out slots without repeating one, none and null slots in between.
static void deal_slots(metadata_fixture_t* f, uint64_t* seed) {
  int32_t next = random_below(seed, 3);
  for (int32_t n = 0; n < f->batch.sequence_count; ++n) {
    int32_t kind = random_below(seed, 10);
    if (kind == 0) {
      f->batch.slots[n] = -1 - random_below(seed, 1000);
    } else if (kind == 1) {
      f->batch.slots[n] = f->options.null_slot;
    } else {
      if (next == f->options.null_slot) ++next;
      // The pool is larger than the batch, so that this stays in range.
      f->batch.slots[n] = next < f->options.slot_count ? next : -1;
      ++next;
    }
  }
}

static int32_t random_length(uint64_t* seed, int32_t chunk_size) {
  switch (random_below(seed, 6)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return chunk_size * (1 + random_below(seed, 3)) - 1 +
             random_below(seed, 3);
    default:
      return random_below(seed, 2 * chunk_size);
  }
}

// Decodes, then anything, with empty sequences among all of them.
static void random_batch(metadata_fixture_t* f, uint64_t* seed, int32_t count) {
  metadata_batch_t* b = &f->batch;
  int32_t style = random_below(seed, 4);
  int32_t decodes = style == 0   ? count
                    : style == 1 ? 0
                                 : random_below(seed, count + 1);
  int32_t room = f->options.tokens;
  b->sequence_count = count;
  b->query_start_loc[0] = 0;
  for (int32_t n = 0; n < count; ++n) {
    int32_t length = 1;
    b->computed_lens[n] = 1 + random_below(seed, 1000);
    if (n >= decodes) {
      length = random_length(seed, f->options.chunk_size);
      if (random_below(seed, 2) == 0) b->computed_lens[n] = 0;
    } else if (style == 3 && random_below(seed, count) == 0) {
      length = 0;
    }
    if (length > room) length = room;
    room -= length;
    b->query_start_loc[n + 1] = b->query_start_loc[n] + length;
  }
  deal_slots(f, seed);
}

static void test_random_batches(void** state) {
  (void)state;
  static const metadata_options_t options[] = {
      {40, 400, 16, 60, 7, SG_STEP_CONTENT_ANY},
      {33, 33, 64, 33, -1, SG_STEP_CONTENT_ANY},
      {1, 700, 1, 1, 0, SG_STEP_CONTENT_ANY},
      {70, 10000, 64, 100, 99, SG_STEP_CONTENT_ANY},
  };
  uint64_t seed = 1;
  for (int i = 0; i < 4; ++i) {
    metadata_fixture_t f;
    metadata_set_up(&f, &options[i]);
    for (int round = 0; round < SMALL_ROUNDS / 4; ++round) {
      random_batch(&f, &seed, random_below(&seed, options[i].sequences + 1));
      metadata_step(&f);
      metadata_check_good(&f);
    }
    metadata_tear_down(&f);
  }
}

static void test_many_sequences(void** state) {
  (void)state;
  static const int32_t counts[] = {0,    1,    2,    1023, 1024, 1025,
                                   2047, 2048, 2049, 4095, 4096, 4097};
  uint64_t seed = 2;
  metadata_fixture_t f;
  metadata_set_up(&f, &large);
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    for (int round = 0; round < 2; ++round) {
      random_batch(&f, &seed, counts[i]);
      metadata_step(&f);
      metadata_check_good(&f);
    }
  }
  for (int round = 0; round < LARGE_ROUNDS; ++round) {
    random_batch(&f, &seed, random_below(&seed, large.sequences + 1));
    metadata_step(&f);
    metadata_check_good(&f);
  }
  metadata_tear_down(&f);
}

// Worked out by hand: chunks of 4, a decode, empty sequences everywhere.
static void test_a_batch_by_hand(void** state) {
  (void)state;
  static const metadata_options_t options = {8, 32, 4,
                                             9, -1, SG_STEP_CONTENT_ANY};
  static const int32_t lens[] = {1, 0, 5, 0, 1, 8, 0};
  static const int32_t computed[] = {3, 3, 0, 0, 9, 2, 0};
  static const int32_t slots[] = {4, 0, 1, 0, 2, 8, -1};
  static const int32_t indices[] = {2, 0, 2, 1, 4, 0, 5, 0, 5, 1};
  static const int64_t offsets[] = {0, 0, 0, 2, 2, 3, 5, 5};
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  metadata_set_batch(&f, 7, lens, computed, slots);
  metadata_step(&f);
  metadata_check_good(&f);
  assert_int_equal(f.counts.token_count, 15);
  assert_int_equal(f.counts.decode_count, 1);
  assert_int_equal(f.counts.chunk_count, 5);
  assert_memory_equal(f.chunk_indices, indices, sizeof(indices));
  assert_memory_equal(f.chunk_offsets, offsets, sizeof(offsets));
  metadata_tear_down(&f);
}

// Capacities filled to the last row: as many chunks as can be.
static void test_full_capacities(void** state) {
  (void)state;
  static const metadata_options_t options = {5, 21, 4,
                                             5, -1, SG_STEP_CONTENT_ANY};
  static const int32_t lens[] = {1, 5, 5, 5, 5};
  static const int32_t slots[] = {0, 1, 2, 3, 4};
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  metadata_set_batch(&f, 5, lens, NULL, slots);
  metadata_step(&f);
  metadata_check_good(&f);
  assert_int_equal(f.counts.chunk_count, f.chunks);
  metadata_tear_down(&f);
}

// A graph of small capacity reads a ring with larger ones.
static void test_capacities_below_the_rings(void** state) {
  (void)state;
  static const metadata_options_t options = {20, 200, 16,
                                             30, -1,  SG_STEP_CONTENT_ANY};
  static const int32_t lens[] = {1, 17, 30};
  static const int32_t slots[] = {29, 1, 2};
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  f.ingest.sequence_capacity = f.metadata.sequence_capacity = 3;
  f.metadata.token_capacity = 48;
  f.ingest.chunk_capacity = f.metadata.chunk_capacity =
      (int32_t)sg_chunk_capacity(48, 3, 16);
  metadata_set_batch(&f, 3, lens, NULL, slots);
  metadata_step(&f);
  f.options.sequences = 3;
  metadata_check_good(&f);
  // What lies beyond these capacities is not touched.
  static const unsigned char garbage[4] = {0xee, 0xee, 0xee, 0xee};
  assert_memory_equal(&f.query_start_loc[4], garbage, 4);
  assert_memory_equal(&f.slots[3], garbage, 4);
  assert_memory_equal(&f.chunk_offsets[4], garbage, 4);
  f.options.sequences = 20;
  metadata_tear_down(&f);
}

// A small batch after a large one finds nothing of it.
static void test_no_stale_tails(void** state) {
  (void)state;
  uint64_t seed = 3;
  metadata_fixture_t f;
  metadata_set_up(&f, &large);
  static const int32_t counts[] = {4100, 3, 0, 4100, 1024, 1, 4100, 0};
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    random_batch(&f, &seed, counts[i]);
    metadata_step(&f);
    metadata_check_good(&f);
  }
  metadata_tear_down(&f);
}

// The same slots in step after step are no duplicates.
static void test_slots_may_return_in_later_steps(void** state) {
  (void)state;
  static const metadata_options_t options = {4, 64, 16,
                                             4, -1, SG_STEP_CONTENT_ANY};
  static const int32_t lens[] = {1, 1, 9, 2};
  static const int32_t computed[] = {5, 5, 0, 1};
  int32_t slots[] = {0, 1, 2, 3};
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  for (int i = 0; i < 300; ++i) {
    int32_t first = slots[0];
    for (int j = 0; j < 3; ++j) slots[j] = slots[j + 1];
    slots[3] = first;
    metadata_set_batch(&f, 4, lens, computed, slots);
    metadata_step(&f);
    metadata_check_good(&f);
    assert_int_equal(f.mailbox->completed_step, i + 1);
    assert_int_equal(f.mailbox->error_steps, 0);
  }
  metadata_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_batches),
      cmocka_unit_test(test_many_sequences),
      cmocka_unit_test(test_a_batch_by_hand),
      cmocka_unit_test(test_full_capacities),
      cmocka_unit_test(test_capacities_below_the_rings),
      cmocka_unit_test(test_no_stale_tails),
      cmocka_unit_test(test_slots_may_return_in_later_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
