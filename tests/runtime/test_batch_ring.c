// SPDX-License-Identifier: Apache-2.0
//
// The ring of entries, with the test in the device's part: it announces the
// ends of steps and errors in the mailbox.

#include "runtime/batch_ring.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/chunk_metadata/chunk_metadata.h"
#include "runtime/base/shared_word.h"
#include "tests/check.h"
#include "tests/random.h"
#include "tests/runtime/toy_program.h"

enum { SEQUENCES = 6, TOKENS = 200, SLOTS = 10 };

typedef struct ring_fixture_t {
  toy_program_t toy;
  hipStream_t stream;
  sg_batch_ring_t ring;
  uint64_t seed;
  int32_t lens[SEQUENCES], computed[SEQUENCES], slots[SEQUENCES];
  sg_batch_t batch;
} ring_fixture_t;

static void set_up(ring_fixture_t* f, int32_t depth, sg_table_source_t tables) {
  int device_count = 0;
  if (hipGetDeviceCount(&device_count) != hipSuccess || device_count == 0) {
    exit(77);
  }
  memset(f, 0, sizeof(*f));
  f->seed = 1;
  toy_program_initialize(&f->toy, (sg_shape_limits_t){TOKENS, SEQUENCES}, SLOTS,
                         -1, tables);
  assert_hip(hipStreamCreateWithFlags(&f->stream, hipStreamNonBlocking));
  assert_ok(sg_batch_ring_initialize(depth, SEQUENCES,
                                     f->toy.program.ring_chunk_capacity,
                                     f->stream, &f->ring));
}

static void tear_down(ring_fixture_t* f) {
  sg_batch_ring_deinitialize(&f->ring);
  assert_hip(hipStreamDestroy(f->stream));
}

static void make_batch(ring_fixture_t* f) {
  int32_t count = random_below(&f->seed, SEQUENCES + 1);
  for (int32_t n = 0; n < count; ++n) {
    f->lens[n] =
        random_below(&f->seed, 2) == 0 ? random_below(&f->seed, 33) : 1;
    f->computed[n] = random_below(&f->seed, 50);
    f->slots[n] = random_below(&f->seed, SLOTS + 4) - 2;
  }
  f->batch = (sg_batch_t){count, f->lens, f->computed, f->slots};
}

static const unsigned char* entry_of(const ring_fixture_t* f, uint64_t step) {
  return f->ring.entries + (step % (uint64_t)f->ring.depth) *
                               (uint64_t)f->ring.layout.entry_bytes;
}

static void check_array(const unsigned char* entry, uint32_t offset,
                        const int32_t* expected, int32_t count) {
  if (count == 0) return;
  assert_memory_equal(entry + offset, expected, 4 * (size_t)count);
}

static void check_tables(const ring_fixture_t* f, const unsigned char* entry,
                         int32_t chunk_count) {
  int32_t indices[2 * TOKENS];
  int64_t offsets[SEQUENCES + 1];
  int32_t chunks =
      sg_chunk_tables_build(f->lens, f->computed, f->batch.sequence_count,
                            TOY_CHUNK_SIZE, indices, offsets);
  assert_int_equal(chunk_count, chunks);
  check_array(entry, f->ring.layout.chunk_indices_offset, indices, 2 * chunks);
  assert_memory_equal(entry + f->ring.layout.chunk_offsets_offset, offsets,
                      8 * (size_t)(f->batch.sequence_count + 1));
}

// The entry of |step| holds the batch at hand.
static void check_entry(const ring_fixture_t* f, uint64_t step,
                        const int32_t* source_slots) {
  const unsigned char* entry = entry_of(f, step);
  const sg_batch_entry_layout_t* layout = &f->ring.layout;
  sg_batch_entry_header_t header;
  memcpy(&header, entry, sizeof(header));
  int32_t count = f->batch.sequence_count;
  assert_int_equal(header.step, step);
  assert_int_equal(header.sequence_count, count);
  int32_t query_start_loc[SEQUENCES + 1] = {0};
  for (int32_t n = 0; n < count; ++n) {
    query_start_loc[n + 1] = query_start_loc[n] + f->lens[n];
  }
  check_array(entry, layout->query_start_loc_offset, query_start_loc,
              count + 1);
  check_array(entry, layout->computed_lens_offset, f->computed, count);
  check_array(entry, layout->slots_offset, f->slots, count);
  if (source_slots != NULL) {
    check_array(entry, layout->source_slots_offset, source_slots, count);
  }
  if (f->toy.program.ring_chunk_capacity > 0) {
    check_tables(f, entry, header.chunk_count);
  } else {
    assert_int_equal(header.chunk_count, 0);
  }
}

static sg_status_t write_batch(ring_fixture_t* f, uint64_t ahead) {
  return sg_batch_ring_write(&f->ring, &f->toy.program, &f->batch, NULL, ahead);
}

static void complete(ring_fixture_t* f, uint64_t step) {
  sg_store_release(&f->ring.mailbox->completed_step, step);
}

typedef struct range_t {
  uint64_t begin, end;
} range_t;

static void test_layout(void** state) {
  (void)state;
  ring_fixture_t f;
  set_up(&f, 3, SG_TABLES_HOST);
  const sg_batch_entry_layout_t* l = &f.ring.layout;
  assert_int_equal(l->sequence_capacity, SEQUENCES);
  assert_int_equal(l->chunk_capacity, f.toy.program.ring_chunk_capacity);
  const uint64_t n = SEQUENCES;
  const range_t ranges[] = {
      {0, sizeof(sg_batch_entry_header_t)},
      {l->query_start_loc_offset, l->query_start_loc_offset + 4 * (n + 1)},
      {l->computed_lens_offset, l->computed_lens_offset + 4 * n},
      {l->slots_offset, l->slots_offset + 4 * n},
      {l->source_slots_offset, l->source_slots_offset + 4 * n},
      {l->chunk_indices_offset,
       l->chunk_indices_offset + 8 * (uint64_t)l->chunk_capacity},
      {l->chunk_offsets_offset, l->chunk_offsets_offset + 8 * (n + 1)},
  };
  enum { COUNT = sizeof(ranges) / sizeof(ranges[0]) };
  for (int i = 0; i < COUNT; ++i) {
    assert_true(ranges[i].end <= l->entry_bytes);
    assert_int_equal(ranges[i].begin % (i < COUNT - 1 ? 4 : 8), 0);
    for (int j = 0; j < i; ++j) {
      assert_true(ranges[i].begin >= ranges[j].end ||
                  ranges[j].begin >= ranges[i].end);
    }
  }
  assert_int_equal(l->entry_bytes % 8, 0);
  tear_down(&f);
}

static void test_starts_at_step_one(void** state) {
  (void)state;
  ring_fixture_t f;
  set_up(&f, 3, SG_TABLES_DEVICE);
  assert_int_equal(f.ring.next_step, 1);
  assert_int_equal(f.ring.depth, 3);
  assert_int_equal(sg_batch_ring_in_flight(&f.ring), 0);
  sg_step_cursor_t cursor;
  assert_hip(hipMemcpy(&cursor, f.ring.cursor_device, sizeof(cursor),
                       hipMemcpyDeviceToHost));
  assert_int_equal(cursor.next_step, 1);
  assert_int_equal(f.ring.mailbox->completed_step, 0);
  assert_false(sg_batch_ring_has_error(&f.ring));
  tear_down(&f);
}

// Round and round, the device ending steps at its own pace.
static void wrap_around(int32_t depth, sg_table_source_t tables) {
  ring_fixture_t f;
  set_up(&f, depth, tables);
  uint64_t completed = 0;
  int busy = 0;
  for (int i = 0; i < 500; ++i) {
    make_batch(&f);
    uint64_t step = f.ring.next_step;
    bool room = step - completed <= (uint64_t)depth;
    assert_int_equal(sg_batch_ring_in_flight(&f.ring),
                     (int64_t)(step - 1 - completed));
    sg_status_t status = write_batch(&f, 0);
    if (room) {
      assert_ok(status);
      check_entry(&f, step, NULL);
      sg_batch_ring_advance(&f.ring, 1);
      assert_int_equal(f.ring.next_step, step + 1);
    } else {
      assert_code(status, SG_STATUS_BUSY);
      assert_int_equal(f.ring.next_step, step);
      ++busy;
    }
    if (random_below(&f.seed, 3) == 0 && completed + 1 < f.ring.next_step) {
      uint64_t open = f.ring.next_step - 1 - completed;
      completed += 1 + (uint64_t)random_below(&f.seed, (int32_t)open);
      complete(&f, completed);
    }
  }
  assert_true(busy > 10);
  assert_true(f.ring.next_step > 100);
  tear_down(&f);
}

static void test_wraps_around(void** state) {
  (void)state;
  static const int32_t depths[] = {1, 2, 3, 7};
  for (int i = 0; i < 4; ++i) {
    wrap_around(depths[i], SG_TABLES_DEVICE);
    wrap_around(depths[i], SG_TABLES_HOST);
  }
}

static void test_busy_writes_nothing_and_has_numbers(void** state) {
  (void)state;
  ring_fixture_t f;
  set_up(&f, 13, SG_TABLES_HOST);
  for (int i = 0; i < 13; ++i) {
    make_batch(&f);
    assert_ok(sg_batch_ring_check_room(&f.ring, 13 - i));
    assert_code(sg_batch_ring_check_room(&f.ring, 14 - i), SG_STATUS_BUSY);
    assert_ok(write_batch(&f, 0));
    sg_batch_ring_advance(&f.ring, 1);
  }
  size_t bytes = 13 * (size_t)f.ring.layout.entry_bytes;
  unsigned char* before = malloc(bytes);
  assert_non_null(before);
  memcpy(before, f.ring.entries, bytes);
  make_batch(&f);
  sg_status_t status = write_batch(&f, 0);
  assert_code(status, SG_STATUS_BUSY);
  assert_non_null(strstr(status.message, "13"));
  status = sg_batch_ring_check_room(&f.ring, 1);
  assert_code(status, SG_STATUS_BUSY);
  assert_non_null(strstr(status.message, "13"));
  assert_memory_equal(f.ring.entries, before, bytes);
  free(before);
  complete(&f, 1);
  assert_ok(sg_batch_ring_check_room(&f.ring, 1));
  assert_code(sg_batch_ring_check_room(&f.ring, 2), SG_STATUS_BUSY);
  assert_code(write_batch(&f, 1), SG_STATUS_BUSY);
  assert_ok(write_batch(&f, 0));
  check_entry(&f, 14, NULL);
  tear_down(&f);
}

// A batch written and not advanced over may be written again, as another.
static void test_only_advancing_takes_a_step(void** state) {
  (void)state;
  ring_fixture_t f;
  set_up(&f, 2, SG_TABLES_DEVICE);
  for (int i = 0; i < 10; ++i) {
    make_batch(&f);
    assert_ok(write_batch(&f, 0));
    check_entry(&f, 1, NULL);
    assert_int_equal(sg_batch_ring_in_flight(&f.ring), 0);
  }
  tear_down(&f);
}

// A verified step: two entries, the second with the original slots beside.
static void test_two_entries_for_a_verified_step(void** state) {
  (void)state;
  ring_fixture_t f;
  set_up(&f, 4, SG_TABLES_HOST);
  static const int32_t sources[SEQUENCES] = {9, 8, 7, -1, 5, 4};
  for (uint64_t step = 1; step < 100; step += 2) {
    make_batch(&f);
    assert_ok(sg_batch_ring_check_room(&f.ring, 2));
    assert_ok(write_batch(&f, 0));
    assert_ok(
        sg_batch_ring_write(&f.ring, &f.toy.program, &f.batch, sources, 1));
    check_entry(&f, step, NULL);
    check_entry(&f, step + 1, sources);
    sg_batch_ring_advance(&f.ring, 2);
    assert_int_equal(f.ring.next_step, step + 2);
    if (step > 1) complete(&f, step - 1);
  }
  tear_down(&f);
}

static void device_error(ring_fixture_t* f, uint64_t step, int64_t value) {
  sg_step_mailbox_t* mailbox = f->ring.mailbox;
  mailbox->error = (sg_step_error_record_t){step, value, 6, 2};
  sg_store_release(&mailbox->errors_written, mailbox->errors_written + 1);
}

static void test_errors_are_taken_once(void** state) {
  (void)state;
  ring_fixture_t f;
  set_up(&f, 2, SG_TABLES_DEVICE);
  sg_step_error_record_t error;
  assert_false(sg_batch_ring_take_error(&f.ring, &error));
  for (uint64_t i = 1; i < 10; ++i) {
    device_error(&f, 100 * i, -(int64_t)i);
    assert_true(sg_batch_ring_has_error(&f.ring));
    // Looking does not take it.
    assert_true(sg_batch_ring_has_error(&f.ring));
    assert_int_equal(f.ring.mailbox->errors_read, i - 1);
    memset(&error, 0xaa, sizeof(error));
    assert_true(sg_batch_ring_take_error(&f.ring, &error));
    assert_int_equal(error.step, 100 * i);
    assert_int_equal(error.value, -(int64_t)i);
    assert_int_equal(error.code, 6);
    assert_int_equal(error.sequence, 2);
    // Which tells the device that there is room for the next.
    assert_int_equal(f.ring.mailbox->errors_read, i);
    assert_false(sg_batch_ring_has_error(&f.ring));
    assert_false(sg_batch_ring_take_error(&f.ring, &error));
  }
  tear_down(&f);
}

static void test_deinitialize_accepts_nothing(void** state) {
  (void)state;
  sg_batch_ring_deinitialize(NULL);
  sg_batch_ring_t zeroed;
  memset(&zeroed, 0, sizeof(zeroed));
  sg_batch_ring_deinitialize(&zeroed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_starts_at_step_one),
      cmocka_unit_test(test_wraps_around),
      cmocka_unit_test(test_busy_writes_nothing_and_has_numbers),
      cmocka_unit_test(test_only_advancing_takes_a_step),
      cmocka_unit_test(test_two_entries_for_a_verified_step),
      cmocka_unit_test(test_errors_are_taken_once),
      cmocka_unit_test(test_deinitialize_accepts_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
