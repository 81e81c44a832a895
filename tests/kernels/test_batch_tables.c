// SPDX-License-Identifier: Apache-2.0
//
// Tables from elsewhere: given by the caller or by the host in the ring entry,
// offsets of 64 bits, and what the launchers refuse.

#include <stdlib.h>
#include <string.h>

#include "kernels/common/batch_tables.h"
#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/kernels/metadata_fixture.h"

static const metadata_options_t options = {8, 64, 4, 9, 5, SG_STEP_CONTENT_ANY};

enum { COUNT = 6, ROWS = 4 };
static const int32_t lens[COUNT] = {1, 1, 3, 0, 6, 1};
static const int32_t computed[COUNT] = {7, 2, 0, 0, 4, 0};
static const int32_t slots[COUNT] = {0, 1, 2, 3, 4, 6};
// Of the batch above, with chunks of 4.
static const int32_t good_indices[ROWS][2] = {{2, 0}, {4, 0}, {4, 1}, {5, 0}};
static const int64_t good_offsets[COUNT + 1] = {0, 0, 0, 1, 1, 3, 4};

typedef struct tables_t {
  int32_t indices[ROWS][2];
  int64_t offsets[COUNT + 1];
} tables_t;

static tables_t good_tables(void) {
  tables_t tables;
  memcpy(tables.indices, good_indices, sizeof(good_indices));
  memcpy(tables.offsets, good_offsets, sizeof(good_offsets));
  return tables;
}

// A step on tables that the caller put on the device.
static void run_given(metadata_fixture_t* f, const tables_t* tables) {
  device_upload(f->metadata.chunk_indices, tables->indices,
                sizeof(tables->indices));
  device_upload(f->metadata.chunk_offsets, tables->offsets,
                sizeof(tables->offsets));
  metadata_set_batch(f, COUNT, lens, computed, slots);
  metadata_step(f);
}

static void run_good_given(metadata_fixture_t* f) {
  tables_t tables = good_tables();
  run_given(f, &tables);
  metadata_check_good(f);
}

static void expect_bad(metadata_fixture_t* f, const tables_t* tables) {
  run_given(f, tables);
  assert_int_equal(f->counts.error_code, SG_STEP_ERROR_TABLES);
  // Given tables are the caller's: they are not written.
  assert_memory_equal(f->chunk_indices, tables->indices,
                      sizeof(tables->indices));
  assert_memory_equal(f->chunk_offsets, tables->offsets,
                      sizeof(tables->offsets));
  run_good_given(f);
}

static void test_given_tables(void** state) {
  (void)state;
  static const int32_t wrong[] = {-1, 3, 7, 100, INT32_MAX, INT32_MIN};
  static const int64_t wrong_offsets[] = {
      -1, 2, 5, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  f.metadata.tables_given = 1;
  run_good_given(&f);
  for (int i = 0; i < 6; ++i) {
    for (int row = 0; row < ROWS; ++row) {
      for (int column = 0; column < 2; ++column) {
        tables_t tables = good_tables();
        tables.indices[row][column] = wrong[i];
        run_given(&f, &tables);
        assert_int_equal(f.counts.error_value, row);
        assert_int_equal(f.counts.error_sequence, good_indices[row][0]);
        expect_bad(&f, &tables);
      }
    }
    for (int n = 0; n <= COUNT; ++n) {
      tables_t tables = good_tables();
      tables.offsets[n] = wrong_offsets[i];
      if (tables.offsets[n] != good_offsets[n]) expect_bad(&f, &tables);
    }
  }
  metadata_tear_down(&f);
}

// Tables that are right for some other batch or chunk size.
static void test_tables_of_another_batch(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  f.metadata.tables_given = 1;
  tables_t shifted = good_tables();
  for (int n = 3; n <= COUNT; ++n) shifted.offsets[n] += 1;
  expect_bad(&f, &shifted);
  tables_t swapped = good_tables();
  memcpy(swapped.indices[1], good_indices[2], sizeof(good_indices[2]));
  memcpy(swapped.indices[2], good_indices[1], sizeof(good_indices[1]));
  expect_bad(&f, &swapped);
  // Chunks of 8.
  tables_t larger = {{{2, 0}, {4, 0}, {5, 0}, {5, 0}}, {0, 0, 0, 1, 1, 2, 3}};
  expect_bad(&f, &larger);
  // As if decodes had chunks.
  tables_t decodes = {{{0, 0}, {1, 0}, {2, 0}, {4, 0}}, {0, 1, 2, 3, 3, 5, 6}};
  expect_bad(&f, &decodes);
  metadata_tear_down(&f);
}

static void write_host_entry(metadata_fixture_t* f, const tables_t* tables,
                             int32_t chunk_count) {
  metadata_set_batch(f, COUNT, lens, computed, slots);
  metadata_write_entry(f, f->step);
  unsigned char* entry =
      f->ring + (f->step % (uint64_t)f->ring_depth) * f->layout.entry_bytes;
  sg_batch_entry_header_t header = {
      .step = f->step, .sequence_count = COUNT, .chunk_count = chunk_count};
  memcpy(entry, &header, sizeof(header));
  memcpy(entry + f->layout.chunk_indices_offset, tables->indices,
         sizeof(tables->indices));
  memcpy(entry + f->layout.chunk_offsets_offset, tables->offsets,
         sizeof(tables->offsets));
}

static void test_host_tables_travel_in_the_entry(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  f.metadata.tables_given = 1;
  f.ingest.chunk_indices = f.metadata.chunk_indices;
  f.ingest.chunk_offsets = f.metadata.chunk_offsets;
  tables_t tables = good_tables();
  static const int32_t counts[] = {INT32_MAX, 1000, -1, INT32_MIN};
  for (int i = 0; i < 4; ++i) {
    write_host_entry(&f, &tables, ROWS);
    metadata_run(&f);
    metadata_check_good(&f);
    tables_t bad = good_tables();
    bad.indices[1 + i % 3][i % 2] += 1;
    write_host_entry(&f, &bad, ROWS);
    metadata_run(&f);
    assert_int_equal(f.counts.error_code, SG_STEP_ERROR_TABLES);
    write_host_entry(&f, &tables, counts[i]);
    metadata_run(&f);
    metadata_check_error(&f, SG_STEP_ERROR_TABLES, -1, counts[i]);
  }
  metadata_tear_down(&f);
}

// Offsets of 64 bits as a caller may have them on the device.
static void run_wide(metadata_fixture_t* f, const int64_t* offsets,
                     void* device) {
  device_upload(device, offsets, 8 * (COUNT + 1));
  sg_batch_counts_t counts = {.sequence_count = COUNT};
  device_upload(f->ingest.counts, &counts, sizeof(counts));
  sg_enqueue_t where = {f->stream, NULL, f->target, -1};
  assert_ok(sg_chunk_metadata_enqueue(&where, &f->metadata));
  metadata_read(f);
}

static void test_offsets_of_64_bits(void** state) {
  (void)state;
  static const int64_t good[COUNT + 1] = {0, 1, 2, 5, 5, 11, 12};
  const int64_t large = ((int64_t)1 << 32) + 3;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  // The ingest leaves lengths and slots in place.
  metadata_set_batch(&f, COUNT, lens, computed, slots);
  metadata_step(&f);
  metadata_check_good(&f);
  void* device = device_allocate(8 * (size_t)(options.sequences + 1), 0xee);
  f.metadata.query_start_loc = device;
  f.metadata.offset_bytes = 8;
  f.metadata.query_start_loc_copy = f.ingest.query_start_loc;
  device_fill(f.ingest.query_start_loc, 0xee, 4 * (COUNT + 1));
  run_wide(&f, good, device);
  assert_memory_equal(f.query_start_loc, f.batch.query_start_loc,
                      4 * (COUNT + 1));
  metadata_check_good(&f);
  const struct {
    int index;
    int64_t offset;
    int32_t code, sequence;
    int64_t value;
  } bad[] = {
      {0, large, SG_STEP_ERROR_FIRST_OFFSET, 0, large},
      {0, (int64_t)1 << 32, SG_STEP_ERROR_FIRST_OFFSET, 0, (int64_t)1 << 32},
      {3, large, SG_STEP_ERROR_TOKEN_COUNT, 2, large},
      {3, INT64_MAX, SG_STEP_ERROR_TOKEN_COUNT, 2, INT64_MAX},
      {6, ((int64_t)1 << 32) + 12, SG_STEP_ERROR_TOKEN_COUNT, 5,
       ((int64_t)1 << 32) + 12},
      {5, -large, SG_STEP_ERROR_DECREASING_OFFSET, 4, -large - 5},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    int64_t offsets[COUNT + 1];
    memcpy(offsets, good, sizeof(good));
    offsets[bad[i].index] = bad[i].offset;
    run_wide(&f, offsets, device);
    metadata_check_error(&f, bad[i].code, bad[i].sequence, bad[i].value);
  }
  // Differences beyond 64 bits are not computed.
  static const int64_t wild[COUNT + 1] = {
      0, 1, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0};
  run_wide(&f, wild, device);
  metadata_check_error(&f, SG_STEP_ERROR_TOKEN_COUNT, 1, INT64_MAX);
  run_wide(&f, good, device);
  metadata_check_good(&f);
  assert_hip(hipFree(device));
  metadata_tear_down(&f);
}

static void test_launchers_refuse_bad_params(void** state) {
  (void)state;
  metadata_fixture_t f;
  metadata_set_up(&f, &options);
  sg_enqueue_t where = {f.stream, NULL, f.target, -1};
  static const int32_t widths[] = {0, 2, 5, 16, -4};
  for (int i = 0; i < 5; ++i) {
    sg_chunk_metadata_params_t p = f.metadata;
    p.offset_bytes = widths[i];
    p.query_start_loc_copy = f.ingest.query_start_loc;
    assert_code(sg_chunk_metadata_enqueue(&where, &p),
                SG_STATUS_INVALID_ARGUMENT);
  }
  sg_chunk_metadata_params_t p = f.metadata;
  p.offset_bytes = 8;
  assert_code(sg_chunk_metadata_enqueue(&where, &p),
              SG_STATUS_INVALID_ARGUMENT);
  // 64 tokens in 8 sequences: 8 partial chunks and 14 whole ones.
  assert_int_equal(f.metadata.chunk_capacity, 22);
  p = f.metadata;
  p.chunk_capacity = 21;
  sg_status_t status = sg_chunk_metadata_enqueue(&where, &p);
  assert_code(status, SG_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(status.message, "21"));
  assert_non_null(strstr(status.message, "22"));
  sg_batch_ingest_params_t ingest = f.ingest;
  ingest.sequence_capacity = f.layout.sequence_capacity + 1;
  assert_code(sg_batch_ingest_enqueue(&where, &ingest),
              SG_STATUS_INVALID_ARGUMENT);
  ingest = f.ingest;
  ingest.chunk_indices = f.metadata.chunk_indices;
  ingest.chunk_offsets = f.metadata.chunk_offsets;
  ingest.chunk_capacity = f.layout.chunk_capacity + 1;
  assert_code(sg_batch_ingest_enqueue(&where, &ingest),
              SG_STATUS_INVALID_ARGUMENT);
  metadata_set_batch(&f, COUNT, lens, computed, slots);
  metadata_step(&f);
  metadata_check_good(&f);
  metadata_tear_down(&f);
}

static void test_workspace_is_a_stamp_a_slot(void** state) {
  (void)state;
  static const int32_t counts[] = {0, 1, 5000, INT32_MAX};
  for (int i = 0; i < 4; ++i) {
    size_t bytes = 0;
    assert_ok(sg_chunk_metadata_workspace_bytes(counts[i], &bytes));
    assert_int_equal(bytes, 8 * ((size_t)counts[i] + 1));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_given_tables),
      cmocka_unit_test(test_tables_of_another_batch),
      cmocka_unit_test(test_host_tables_travel_in_the_entry),
      cmocka_unit_test(test_offsets_of_64_bits),
      cmocka_unit_test(test_launchers_refuse_bad_params),
      cmocka_unit_test(test_workspace_is_a_stamp_a_slot),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
