// SPDX-License-Identifier: Apache-2.0
//
// Graphs by key: what a key is made of, adding, finding, forgetting.

#include "runtime/graph_cache.h"

#include <string.h>

#include "tests/base/counting_allocator.h"
#include "tests/check.h"
#include "tests/runtime/graph_fixture.h"

static sg_graph_key_t key_of(int32_t tokens, int32_t sequences) {
  return sg_graph_key_make(
      1, 1, (sg_step_capacity_t){SG_PHASE_MIXED, tokens, sequences});
}

// Made on a dirty stack twice, so that a byte left alone would show.
static void make_dirty(unsigned char fill, sg_graph_key_t* out_key) {
  sg_step_capacity_t capacity;
  memset(&capacity, fill, sizeof(capacity));
  capacity.phase = SG_PHASE_PREFILL;
  capacity.max_tokens = 512;
  capacity.max_sequences = 64;
  *out_key = sg_graph_key_make(0x123456789abcdef0u, 7, capacity);
}

static void test_keys_compare_as_bytes(void** state) {
  (void)state;
  assert_int_equal(sizeof(sg_graph_key_t), 32);
  sg_graph_key_t a, b;
  memset(&a, 0x55, sizeof(a));
  memset(&b, 0xaa, sizeof(b));
  make_dirty(0x11, &a);
  make_dirty(0xee, &b);
  assert_memory_equal(&a, &b, sizeof(a));
  assert_int_equal(a.fingerprint, 0x123456789abcdef0u);
  assert_int_equal(a.binding, 7);
  assert_int_equal(a.phase, SG_PHASE_PREFILL);
  assert_int_equal(a.max_tokens, 512);
  assert_int_equal(a.max_sequences, 64);
}

// Every part of a key tells keys apart, and only the exact key is found.
static void test_every_part_of_a_key_counts(void** state) {
  (void)state;
  const sg_step_capacity_t capacity = {SG_PHASE_MIXED, 64, 32};
  sg_step_capacity_t phase = capacity, tokens = capacity, sequences = capacity;
  phase.phase = SG_PHASE_PREFILL;
  tokens.max_tokens = 32;
  sequences.max_sequences = 64;
  const sg_graph_key_t keys[] = {
      sg_graph_key_make(1, 2, capacity),
      sg_graph_key_make(2, 2, capacity),
      sg_graph_key_make(1, 1, capacity),
      sg_graph_key_make((uint64_t)1 << 32 | 1, 2, capacity),
      sg_graph_key_make(1, (uint64_t)1 << 32 | 2, capacity),
      sg_graph_key_make(1, 2, phase),
      sg_graph_key_make(1, 2, tokens),
      sg_graph_key_make(1, 2, sequences),
  };
  enum { COUNT = sizeof(keys) / sizeof(keys[0]) };
  sg_graph_cache_t cache;
  assert_ok(sg_graph_cache_initialize(sg_allocator_system(), COUNT, 1, &cache));
  for (int i = 0; i < COUNT; ++i) {
    assert_null(sg_graph_cache_find(&cache, &keys[i]));
    assert_ok(sg_graph_cache_add(&cache, &keys[i]));
  }
  for (int i = 0; i < COUNT; ++i) {
    sg_graph_entry_t* entry = sg_graph_cache_find(&cache, &keys[i]);
    assert_non_null(entry);
    assert_memory_equal(&entry->key, &keys[i], sizeof(keys[i]));
    for (int j = 0; j < i; ++j) {
      assert_ptr_not_equal(entry, sg_graph_cache_find(&cache, &keys[j]));
    }
  }
  sg_graph_cache_deinitialize(&cache);
}

static void test_new_entries_are_absent(void** state) {
  (void)state;
  sg_graph_cache_t cache;
  assert_ok(sg_graph_cache_initialize(sg_allocator_system(), 2, 1, &cache));
  sg_graph_key_t key = key_of(8, 8);
  assert_ok(sg_graph_cache_add(&cache, &key));
  sg_graph_entry_t* entry = sg_graph_cache_find(&cache, &key);
  assert_non_null(entry);
  assert_int_equal(entry->state, SG_GRAPH_ABSENT);
  assert_null(entry->pieces[0].exec);
  assert_int_equal(entry->wanted_count, 0);
  assert_int_equal(entry->statistics.hits, 0);
  assert_false(entry->statistics.captured);
  assert_int_equal(sg_graph_cache_bytes(&cache), 0);
  sg_graph_cache_deinitialize(&cache);
}

static void test_full_and_doubled(void** state) {
  (void)state;
  counting_allocator_t counting = {0};
  sg_graph_cache_t cache;
  assert_ok(
      sg_graph_cache_initialize(counting_allocator(&counting), 3, 1, &cache));
  sg_graph_key_t keys[4];
  for (int32_t i = 0; i < 4; ++i) keys[i] = key_of(8 * (i + 1), 8);
  for (int i = 0; i < 2; ++i) assert_ok(sg_graph_cache_add(&cache, &keys[i]));
  assert_code(sg_graph_cache_add(&cache, &keys[0]),
              SG_STATUS_FAILED_PRECONDITION);
  assert_int_equal(cache.entry_count, 2);
  assert_ok(sg_graph_cache_add(&cache, &keys[2]));
  assert_code(sg_graph_cache_add(&cache, &keys[3]), SG_STATUS_OUT_OF_RANGE);
  assert_int_equal(cache.entry_count, 3);
  assert_null(sg_graph_cache_find(&cache, &keys[3]));
  sg_graph_cache_clear(&cache);
  assert_int_equal(cache.entry_count, 0);
  for (int i = 0; i < 4; ++i) {
    assert_null(sg_graph_cache_find(&cache, &keys[i]));
  }
  assert_ok(sg_graph_cache_add(&cache, &keys[3]));
  assert_non_null(sg_graph_cache_find(&cache, &keys[3]));
  sg_graph_cache_deinitialize(&cache);
  assert_int_equal(counting.live, 0);
}

static void test_no_room_at_all(void** state) {
  (void)state;
  sg_graph_cache_t cache;
  sg_graph_key_t key = key_of(8, 8);
  assert_ok(sg_graph_cache_initialize(sg_allocator_system(), 0, 1, &cache));
  assert_null(sg_graph_cache_find(&cache, &key));
  assert_code(sg_graph_cache_add(&cache, &key), SG_STATUS_OUT_OF_RANGE);
  sg_graph_cache_deinitialize(&cache);
  sg_graph_cache_deinitialize(NULL);
  sg_graph_cache_t zeroed;
  memset(&zeroed, 0, sizeof(zeroed));
  sg_graph_cache_deinitialize(&zeroed);
  counting_allocator_t counting = {.fail_nth = 1};
  memset(&cache, 0xaa, sizeof(cache));
  assert_code(
      sg_graph_cache_initialize(counting_allocator(&counting), 3, 1, &cache),
      SG_STATUS_OUT_OF_MEMORY);
  sg_graph_cache_deinitialize(&cache);
  assert_int_equal(counting.live, 0);
}

// Measured bytes may be negative, when others freed memory meanwhile; what the
// graphs take is never a huge number because of that.
static void test_bytes_are_summed(void** state) {
  (void)state;
  sg_graph_cache_t cache;
  assert_ok(sg_graph_cache_initialize(sg_allocator_system(), 3, 1, &cache));
  static const int64_t bytes[] = {4096, 1 << 20, -8192};
  for (int32_t i = 0; i < 3; ++i) {
    sg_graph_key_t key = key_of(i + 1, 8);
    assert_ok(sg_graph_cache_add(&cache, &key));
    sg_graph_entry_t* entry = sg_graph_cache_find(&cache, &key);
    entry->state = SG_GRAPH_READY;
    entry->statistics.graph_bytes = bytes[i];
    if (i == 1) assert_int_equal(sg_graph_cache_bytes(&cache), 4096 + 1048576);
  }
  assert_true(sg_graph_cache_bytes(&cache) <= 4096 + 1048576);
  sg_graph_key_t first = key_of(1, 8), second = key_of(2, 8);
  sg_graph_cache_find(&cache, &first)->statistics.graph_bytes = 0;
  sg_graph_cache_find(&cache, &second)->statistics.graph_bytes = 0;
  assert_int_equal(sg_graph_cache_bytes(&cache), 0);
  sg_graph_cache_deinitialize(&cache);
}

static sg_status_t record_two(void* self, hipStream_t stream,
                              const sg_launch_trace_t* trace) {
  SG_RETURN_IF_ERROR(graph_fixture_toy_enqueue(self, stream, trace, 0, 0));
  return graph_fixture_toy_enqueue(self, stream, trace, 1, 1);
}

// Clearing destroys graphs; what was launched still runs.
static void test_clear_destroys_graphs(void** state) {
  (void)state;
  graph_fixture_t f;
  graph_fixture_set_up(&f);
  counting_allocator_t counting = {0};
  sg_graph_cache_t cache;
  assert_ok(
      sg_graph_cache_initialize(counting_allocator(&counting), 3, 1, &cache));
  int64_t live = counting.live;
  for (int32_t i = 1; i <= 3; ++i) {
    sg_graph_key_t key = key_of(i, 8);
    assert_ok(sg_graph_cache_add(&cache, &key));
    sg_graph_entry_t* entry = sg_graph_cache_find(&cache, &key);
    assert_ok(graph_fixture_record(counting_allocator(&counting), f.stream,
                                   record_two, &f, true, &entry->pieces[0]));
    entry->state = SG_GRAPH_READY;
    assert_hip(hipGraphLaunch(entry->pieces[0].exec, f.stream));
    graph_fixture_expect(&f, 0);
    graph_fixture_expect(&f, 1);
  }
  sg_graph_cache_clear(&cache);
  assert_int_equal(counting.live, live);
  graph_fixture_check(&f);
  sg_graph_cache_deinitialize(&cache);
  assert_int_equal(counting.live, 0);
  graph_fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_compare_as_bytes),
      cmocka_unit_test(test_every_part_of_a_key_counts),
      cmocka_unit_test(test_new_entries_are_absent),
      cmocka_unit_test(test_full_and_doubled),
      cmocka_unit_test(test_no_room_at_all),
      cmocka_unit_test(test_bytes_are_summed),
      cmocka_unit_test(test_clear_destroys_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
