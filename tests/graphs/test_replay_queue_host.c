// SPDX-License-Identifier: Apache-2.0
//
// A thousand steps queued while the device is held back: nothing on the way
// waits, queries or allocates, and every step's output equals that of an eager
// step run by itself. Host flavour only, since its runtime counts the calls.

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/shared_word.h"
#include "runtime/hip_host/hip_host.h"
#include "tests/check.h"
#include "tests/graphs/kda_fixture.h"
#include "tests/runtime/toy_kernel.h"

enum { STEPS = 1000 };

static uint64_t allocation_count;

static void* counted_allocate(void* self, size_t bytes) {
  (void)self;
  __atomic_fetch_add(&allocation_count, 1, __ATOMIC_RELAXED);
  return calloc(1, bytes);
}

static void counted_release(void* self, void* memory) {
  (void)self;
  __atomic_fetch_add(&allocation_count, 1, __ATOMIC_RELAXED);
  free(memory);
}

typedef struct queue_test_t {
  kda_fixture_t replayed;
  kda_fixture_t eager;
  size_t row_bytes;
  kda_batch_t* batches;
  int32_t* token_counts;
  // Pinned copies of o, one after another, and where each starts.
  unsigned char* outputs;
  size_t* offsets;
} queue_test_t;

static void set_up(queue_test_t* t, int32_t ring_depth) {
  kda_fixture_options_t options = kda_fixture_defaults();
  options.ring_depth = ring_depth;
  options.allocator = (sg_allocator_t){NULL, counted_allocate, counted_release};
  kda_fixture_set_up(&t->replayed, &options);
  options.always_eager = true;
  options.ring_depth = 64;
  options.captured = false;
  kda_fixture_set_up(&t->eager, &options);
  t->row_bytes = kda_fixture_spec(&t->replayed, 1, SG_KDA_BUFFER_O)->row_bytes;
  t->batches = calloc(STEPS, sizeof(*t->batches));
  t->token_counts = calloc(STEPS, sizeof(*t->token_counts));
  t->offsets = calloc(STEPS + 1, sizeof(*t->offsets));
  assert_true(t->batches && t->token_counts && t->offsets);
  for (int i = 0; i < STEPS; ++i) {
    kda_batch_t* b = &t->batches[i];
    kda_fixture_random_batch(&t->replayed, b);
    b->batch.query_lens = b->query_lens;
    b->batch.computed_lens = b->computed_lens;
    b->batch.slots = b->slots;
    for (int32_t n = 0; n < b->batch.sequence_count; ++n) {
      t->token_counts[i] += b->query_lens[n];
    }
    t->offsets[i + 1] =
        t->offsets[i] + (size_t)t->token_counts[i] * t->row_bytes;
  }
  void* memory = NULL;
  assert_hip(hipHostMalloc(&memory, t->offsets[STEPS], hipHostMallocDefault));
  t->outputs = memory;
}

static void tear_down(queue_test_t* t) {
  kda_fixture_tear_down(&t->replayed);
  kda_fixture_tear_down(&t->eager);
  assert_hip(hipHostFree(t->outputs));
  free(t->batches);
  free(t->token_counts);
  free(t->offsets);
}

// Queues step |i| from arrays that hold something else right after the call.
// Returns how often the ring was full.
static uint64_t queue_step(queue_test_t* t, int i) {
  kda_batch_t passed = t->batches[i];
  sg_batch_t batch = {passed.batch.sequence_count, passed.query_lens,
                      passed.computed_lens, passed.slots};
  uint64_t busy = 0;
  sg_status_t status;
  for (;; ++busy) {
    status =
        sg_executor_run(t->replayed.executor, &batch, t->replayed.stream, NULL);
    if (status.code != SG_STATUS_BUSY) break;
    sched_yield();
  }
  assert_ok(status);
  memset(&passed, 0x55, sizeof(passed));
  size_t bytes = t->offsets[i + 1] - t->offsets[i];
  if (bytes == 0) return busy;
  int last_o = kda_fixture_index(&t->replayed, 1, SG_KDA_BUFFER_O);
  assert_hip(hipMemcpyAsync(t->outputs + t->offsets[i],
                            t->replayed.device[last_o], bytes,
                            hipMemcpyDeviceToHost, t->replayed.stream));
  return busy;
}

static void compare_with_eager(queue_test_t* t) {
  unsigned char* expected = malloc((size_t)KDA_MAX_TOKENS * t->row_bytes);
  assert_non_null(expected);
  for (int i = 0; i < STEPS; ++i) {
    assert_ok(sg_executor_run(t->eager.executor, &t->batches[i].batch,
                              t->eager.stream, NULL));
    assert_hip(hipStreamSynchronize(t->eager.stream));
    size_t bytes = t->offsets[i + 1] - t->offsets[i];
    kda_fixture_read(&t->eager, 1, SG_KDA_BUFFER_O, expected, bytes);
    if (memcmp(expected, t->outputs + t->offsets[i], bytes) != 0) {
      fail_msg("step %d: a replay differs from the eager step", i);
    }
  }
  free(expected);
  for (int32_t layer = 0; layer < 2; ++layer) {
    size_t bytes =
        kda_fixture_spec(&t->eager, layer, SG_KDA_BUFFER_STATE)->bytes;
    void* left = malloc(bytes);
    void* right = malloc(bytes);
    assert_true(left && right);
    kda_fixture_read(&t->replayed, layer, SG_KDA_BUFFER_STATE, left, bytes);
    kda_fixture_read(&t->eager, layer, SG_KDA_BUFFER_STATE, right, bytes);
    assert_memory_equal(left, right, bytes);
    free(left);
    free(right);
  }
}

static void test_thousand_steps_queued_without_waiting(void** state) {
  (void)state;
  queue_test_t t = {0};
  set_up(&t, 1024);
  void *host = NULL, *device = NULL;
  assert_hip(hipHostMalloc(&host, sizeof(uint64_t),
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipHostGetDevicePointer(&device, host, 0));
  *(uint64_t*)host = 0;
  gate_params_t gate = {device};
  void* arguments[] = {&gate};
  dim3 unit = {1, 1, 1};
  assert_hip(hipLaunchKernel(gate_handle(), unit, unit, arguments, 0,
                             t.replayed.stream));
  sg_hip_host_reset_counters();
  allocation_count = 0;
  uint64_t busy = 0;
  for (int i = 0; i < STEPS; ++i) busy += queue_step(&t, i);
  sg_hip_host_counters_t counters;
  sg_hip_host_get_counters(&counters);
  uint64_t launches = sg_hip_host_call_count("hipGraphLaunch");
  sg_store_release(host, 1);
  assert_int_equal(busy, 0);
  assert_int_equal(launches, STEPS);
  assert_int_equal(counters.waits, 0);
  assert_int_equal(counters.queries, 0);
  assert_int_equal(counters.allocations, 0);
  assert_int_equal(allocation_count, 0);
  assert_hip(hipStreamSynchronize(t.replayed.stream));
  compare_with_eager(&t);
  tear_down(&t);
  assert_hip(hipHostFree(host));
}

static void test_small_ring_is_busy_and_loses_nothing(void** state) {
  (void)state;
  queue_test_t t = {0};
  set_up(&t, 4);
  uint64_t busy = 0;
  for (int i = 0; i < STEPS; ++i) busy += queue_step(&t, i);
  assert_true(busy > 0);
  assert_hip(hipStreamSynchronize(t.replayed.stream));
  sg_statistics_t statistics;
  sg_executor_statistics(t.replayed.executor, &statistics);
  assert_int_equal(statistics.busy_calls, busy);
  assert_int_equal(statistics.steps, STEPS);
  compare_with_eager(&t);
  tear_down(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_thousand_steps_queued_without_waiting),
      cmocka_unit_test(test_small_ring_is_busy_and_loses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
