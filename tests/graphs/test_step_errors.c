// SPDX-License-Identifier: Apache-2.0
//
// Every fault that the device can find in a batch, met in the middle of a
// queue: the step changes no slot, its outputs are zero, the fault is reported
// with its sequence and value, and the next step is right. Batches are spoiled
// in the ring, behind the host's own checks.

#include <stdlib.h>
#include <string.h>

#include "runtime/base/shared_word.h"
#include "runtime/executor_internal.h"
#include "tests/check.h"
#include "tests/graphs/kda_fixture.h"
#include "tests/runtime/toy_kernel.h"

enum { N = 4 };

// The batch that is spoiled: a decode, a resumed prefill, an empty sequence and
// a fresh prefill; or decodes alone.
static const int32_t mixed_lens[N] = {1, 20, 0, 40};
static const int32_t mixed_computed[N] = {5, 7, 3, 0};
static const int32_t decode_lens[N] = {1, 1, 1, 1};
static const int32_t decode_computed[N] = {5, 7, 3, 9};
static const int32_t slots[N] = {0, 1, 2, 4};

typedef struct entry_t {
  sg_batch_entry_header_t* header;
  int32_t* query_start_loc;
  int32_t* computed_lens;
  int32_t* slots;
  int32_t* chunk_indices;
  int64_t* chunk_offsets;
} entry_t;

typedef void (*spoil_function_t)(entry_t* entry);

typedef struct error_case_t {
  const char* name;
  spoil_function_t spoil;
  bool decodes;
  sg_table_source_t tables;
  sg_step_error_t code;
  int32_t sequence;
  int64_t value;
} error_case_t;

static void spoil_step(entry_t* e) { e->header->step = 77; }
static void spoil_count(entry_t* e) { e->header->sequence_count = -2; }
static void spoil_large_count(entry_t* e) { e->header->sequence_count = 13; }
static void spoil_first(entry_t* e) { e->query_start_loc[0] = 3; }
static void spoil_order(entry_t* e) { e->query_start_loc[2] = 0; }
static void spoil_end(entry_t* e) { e->query_start_loc[4] = 5000; }
static void spoil_range(entry_t* e) { e->slots[1] = KDA_SLOTS; }
static void spoil_duplicate(entry_t* e) { e->slots[3] = 0; }
static void spoil_phase(entry_t* e) { e->computed_lens[2] = 0; }
static void spoil_table(entry_t* e) { e->chunk_indices[1] = 6; }
static void spoil_offsets(entry_t* e) { e->chunk_offsets[3] = 2; }
static void spoil_computed(entry_t* e) { e->computed_lens[1] = -4; }

static const error_case_t cases[] = {
    {"stale entry", spoil_step, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_STALE_ENTRY, -1, 77},
    {"negative count", spoil_count, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_SEQUENCE_COUNT, -1, -2},
    {"large count", spoil_large_count, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_SEQUENCE_COUNT, -1, 13},
    {"first offset", spoil_first, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_FIRST_OFFSET, 0, 3},
    {"decreasing offset", spoil_order, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_DECREASING_OFFSET, 1, -1},
    {"end beyond capacity", spoil_end, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_TOKEN_COUNT, 3, 5000},
    {"slot out of range", spoil_range, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_SLOT_RANGE, 1, KDA_SLOTS},
    {"duplicate slot", spoil_duplicate, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_SLOT_DUPLICATE, 3, 0},
    {"prefill among decodes", spoil_phase, true, SG_TABLES_DEVICE,
     SG_STEP_ERROR_PHASE, 2, 1},
    {"wrong chunk row", spoil_table, false, SG_TABLES_HOST,
     SG_STEP_ERROR_TABLES, 1, 0},
    {"wrong chunk offset", spoil_offsets, false, SG_TABLES_HOST,
     SG_STEP_ERROR_TABLES, 3, 1},
    {"negative computed length", spoil_computed, false, SG_TABLES_DEVICE,
     SG_STEP_ERROR_COMPUTED_LENGTH, 1, -4},
};

static entry_t entry_of(const kda_fixture_t* f, uint64_t step) {
  const sg_batch_ring_t* ring = &f->executor->ring;
  unsigned char* base =
      ring->entries + (step % (uint64_t)ring->depth) * ring->layout.entry_bytes;
  return (entry_t){
      .header = (void*)base,
      .query_start_loc = (void*)(base + ring->layout.query_start_loc_offset),
      .computed_lens = (void*)(base + ring->layout.computed_lens_offset),
      .slots = (void*)(base + ring->layout.slots_offset),
      .chunk_indices = (void*)(base + ring->layout.chunk_indices_offset),
      .chunk_offsets = (void*)(base + ring->layout.chunk_offsets_offset)};
}

// Holds the stream back, queues the batch, spoils its entry and lets go.
static uint64_t run_spoiled(kda_fixture_t* f, const sg_batch_t* batch,
                            spoil_function_t spoil) {
  void *host = NULL, *device = NULL;
  assert_hip(hipHostMalloc(&host, sizeof(uint64_t),
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipHostGetDevicePointer(&device, host, 0));
  *(uint64_t*)host = 0;
  gate_params_t gate = {device};
  void* arguments[] = {&gate};
  dim3 unit = {1, 1, 1};
  assert_hip(
      hipLaunchKernel(gate_handle(), unit, unit, arguments, 0, f->stream));
  sg_step_report_t report;
  assert_ok(sg_executor_run(f->executor, batch, f->stream, &report));
  entry_t entry = entry_of(f, report.step);
  spoil(&entry);
  sg_store_release(host, 1);
  assert_hip(hipStreamSynchronize(f->stream));
  assert_hip(hipHostFree(host));
  return report.step;
}

static void check_outputs_are_zero(const kda_fixture_t* f, size_t tokens) {
  size_t bytes = tokens * kda_fixture_spec(f, 0, SG_KDA_BUFFER_O)->row_bytes;
  unsigned char* o = malloc(bytes);
  assert_non_null(o);
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    kda_fixture_read(f, layer, SG_KDA_BUFFER_O, o, bytes);
    for (size_t i = 0; i < bytes; ++i) assert_int_equal(o[i], 0);
  }
  free(o);
}

// Every pool, one behind the other.
static unsigned char* read_pools(const kda_fixture_t* f, size_t* out_bytes) {
  static const sg_kda_buffer_t pools[] = {SG_KDA_BUFFER_STATE,
                                          SG_KDA_BUFFER_CONV_CACHE};
  size_t bytes = 0;
  for (size_t i = 0; i < f->program->buffer_count; ++i) {
    const sg_buffer_spec_t* spec = &f->program->buffers[i];
    if (spec->role == SG_BUFFER_POOL) bytes += spec->bytes;
  }
  unsigned char* contents = malloc(bytes + 1);
  assert_non_null(contents);
  *out_bytes = 0;
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); ++i) {
      const sg_buffer_spec_t* spec = kda_fixture_spec(f, layer, pools[i]);
      if (spec == NULL) continue;
      kda_fixture_read(f, layer, pools[i], contents + *out_bytes, spec->bytes);
      *out_bytes += spec->bytes;
    }
  }
  assert_int_equal(*out_bytes, bytes);
  return contents;
}

static void check_error(const error_case_t* c, kda_fixture_t* f,
                        uint64_t step) {
  sg_step_error_record_t error;
  assert_true(sg_executor_poll_error(f->executor, &error));
  if (error.code != (int32_t)c->code || error.sequence != c->sequence ||
      error.value != c->value || error.step != step) {
    fail_msg("%s: code %d, sequence %d, value %lld, step %llu", c->name,
             error.code, error.sequence, (long long)error.value,
             (unsigned long long)error.step);
  }
  assert_false(sg_executor_poll_error(f->executor, &error));
}

static void check_case(const error_case_t* c, bool eager, bool whole_layer) {
  kda_fixture_options_t options = kda_fixture_defaults();
  options.tables = c->tables;
  options.always_eager = eager;
  options.with_conv = whole_layer;
  options.with_norm = whole_layer;
  kda_fixture_t f;
  kda_fixture_set_up(&f, &options);
  sg_batch_t batch = {N, c->decodes ? decode_lens : mixed_lens,
                      c->decodes ? decode_computed : mixed_computed, slots};
  // The slots get a past first; it is random.
  sg_batch_t first = {N, mixed_lens, (const int32_t[N]){0}, slots};
  for (int n = 0; n < N; ++n) f.computed[slots[n]] = mixed_lens[n];
  kda_fixture_step(&f, &first, 1e-5, 1e-5, NULL);
  size_t bytes;
  unsigned char* before = read_pools(&f, &bytes);

  uint64_t step = run_spoiled(&f, &batch, c->spoil);
  unsigned char* after = read_pools(&f, &bytes);
  assert_memory_equal(before, after, bytes);
  check_outputs_are_zero(&f, c->decodes ? 4 : 61);
  check_error(c, &f, step);

  // Slot 2 was empty so far and holds NaN: the good step starts it anew.
  sg_batch_t good = {N, mixed_lens, mixed_computed, slots};
  kda_fixture_step(&f, &good, 1e-5, 1e-5, NULL);
  free(before);
  free(after);
  kda_fixture_tear_down(&f);
}

static void check_cases(bool eager, bool whole_layer) {
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    check_case(&cases[i], eager, whole_layer);
  }
}

static void test_each_error_replayed(void** state) {
  (void)state;
  check_cases(/*eager=*/false, /*whole_layer=*/false);
}

static void test_each_error_eager(void** state) {
  (void)state;
  check_cases(/*eager=*/true, /*whole_layer=*/false);
}

static void test_each_error_with_conv_and_norm(void** state) {
  (void)state;
  check_cases(/*eager=*/false, /*whole_layer=*/true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_error_replayed),
      cmocka_unit_test(test_each_error_eager),
      cmocka_unit_test(test_each_error_with_conv_and_norm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
