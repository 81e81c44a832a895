// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>

#include "cli/scheduler.h"
#include "tests/check.h"

enum { MAX_REQUESTS = 400, MAX_SLOTS = 64 };

// Follows the batches from outside: which request each slot holds, and how far
// it is.
typedef struct follower_t {
  const sg_requests_t* requests;
  sg_shape_limits_t limits;
  int32_t slot_count;
  int32_t request_of_slot[MAX_SLOTS];
  int64_t computed_of_slot[MAX_SLOTS];
  // Requests are admitted in order of arrival.
  size_t next_request;
  int64_t finished;
  int64_t tokens;
  int64_t steps;
  uint64_t digest;
} follower_t;

static void digest(follower_t* f, int64_t value) {
  f->digest = (f->digest ^ (uint64_t)value) * 1099511628211u;
}

static bool is_decode(const sg_batch_t* batch, int32_t i) {
  return batch->query_lens[i] == 1 && batch->computed_lens[i] > 0;
}

// One sequence of a batch. Returns whether its prompt goes on afterwards.
static bool follow_sequence(follower_t* f, const sg_batch_t* batch, int32_t i,
                            int64_t now_ns) {
  const int32_t slot = batch->slots[i];
  const int32_t query = batch->query_lens[i];
  const int32_t computed = batch->computed_lens[i];
  assert_in_range(slot, 0, f->slot_count - 1);
  if (computed == 0) {
    assert_int_equal(f->request_of_slot[slot], -1);
    assert_true(f->next_request < f->requests->request_count);
    f->request_of_slot[slot] = (int32_t)f->next_request++;
    f->computed_of_slot[slot] = 0;
  }
  assert_int_not_equal(f->request_of_slot[slot], -1);
  const sg_request_t* request =
      &f->requests->requests[f->request_of_slot[slot]];
  assert_true(request->arrival_ns <= now_ns);
  assert_int_equal(f->computed_of_slot[slot], computed);
  if (computed >= request->input_tokens) {
    assert_int_equal(query, 1);
  } else {
    assert_in_range(query, 1, request->input_tokens - computed);
  }
  f->computed_of_slot[slot] += query;
  f->tokens += query;
  const int64_t work = request->input_tokens + request->output_tokens - 1;
  assert_true(f->computed_of_slot[slot] <= work);
  const bool goes_on = f->computed_of_slot[slot] < request->input_tokens;
  if (f->computed_of_slot[slot] == work) {
    f->request_of_slot[slot] = -1;
    ++f->finished;
  }
  digest(f, slot);
  digest(f, query);
  digest(f, computed);
  return goes_on;
}

static void follow_batch(follower_t* f, const sg_batch_t* batch,
                         int64_t now_ns) {
  assert_in_range(batch->sequence_count, 1, f->limits.max_sequences);
  bool seen[MAX_SLOTS] = {false};
  bool prefill_seen = false;
  bool prompt_cut = false;
  int64_t tokens = 0;
  for (int32_t i = 0; i < batch->sequence_count; ++i) {
    if (is_decode(batch, i)) {
      assert_false(prefill_seen);
    } else {
      prefill_seen = true;
    }
    assert_false(seen[batch->slots[i]]);
    seen[batch->slots[i]] = true;
    if (follow_sequence(f, batch, i, now_ns)) prompt_cut = true;
    tokens += batch->query_lens[i];
  }
  assert_in_range(tokens, 1, f->limits.max_tokens);
  // A prompt is cut only where the budget ends.
  if (prompt_cut) assert_int_equal(tokens, f->limits.max_tokens);
  ++f->steps;
}

// Runs the trace on the virtual clock and returns what was seen.
static follower_t run(const sg_requests_t* requests, sg_shape_limits_t limits,
                      int32_t slot_count) {
  follower_t f = {
      .requests = requests, .limits = limits, .slot_count = slot_count};
  for (int32_t i = 0; i < MAX_SLOTS; ++i) f.request_of_slot[i] = -1;
  sg_scheduler_t* scheduler;
  assert_ok(sg_scheduler_create(sg_allocator_system(), requests, limits,
                                slot_count, &scheduler));
  int64_t now_ns = 0;
  for (;;) {
    sg_batch_t batch;
    if (!sg_scheduler_next(scheduler, now_ns, &batch)) {
      const int64_t arrival_ns = sg_scheduler_next_arrival_ns(scheduler);
      if (arrival_ns == INT64_MAX) break;
      assert_true(arrival_ns > now_ns);
      now_ns = arrival_ns;
      continue;
    }
    const int64_t before = f.tokens;
    follow_batch(&f, &batch, now_ns);
    sg_scheduler_complete(scheduler);
    assert_int_equal(sg_scheduler_finished(scheduler), f.finished);
    now_ns += sg_virtual_step_ns(f.tokens - before);
  }
  sg_scheduler_destroy(scheduler);
  return f;
}

static uint32_t next_random(uint32_t* seed, uint32_t bound) {
  *seed = *seed * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)*seed * bound) >> 32);
}

static void make_trace(uint32_t seed, size_t count, sg_request_t* requests) {
  int64_t arrival_ns = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) arrival_ns += next_random(&seed, 6) * 1000000;
    requests[i] =
        (sg_request_t){.arrival_ns = arrival_ns,
                       .input_tokens = 1 + (int32_t)next_random(&seed, 300),
                       .output_tokens = 1 + (int32_t)next_random(&seed, 40)};
  }
}

static void test_every_request_finishes(void** state) {
  (void)state;
  const sg_shape_limits_t limits[] = {{1, 1}, {7, 3}, {64, 64}, {256, 8}};
  const int32_t slot_counts[] = {1, 2, 5, 64};
  static sg_request_t list[MAX_REQUESTS];
  for (uint32_t seed = 0; seed < 16; ++seed) {
    const size_t count = 1 + seed * 10;
    make_trace(seed, count, list);
    const sg_requests_t requests = {.requests = list, .request_count = count};
    int64_t work = 0;
    for (size_t i = 0; i < count; ++i) {
      work += list[i].input_tokens + list[i].output_tokens - 1;
    }
    assert_int_equal(sg_requests_work_tokens(&requests), work);
    follower_t f = run(&requests, limits[seed % 4], slot_counts[seed / 4]);
    assert_int_equal(f.finished, count);
    assert_int_equal(f.tokens, work);
    follower_t again = run(&requests, limits[seed % 4], slot_counts[seed / 4]);
    assert_true(again.digest == f.digest && again.steps == f.steps);
  }
}

static void assert_batch(sg_scheduler_t* scheduler, int32_t count,
                         const int32_t (*sequences)[3]) {
  sg_batch_t batch;
  assert_true(sg_scheduler_next(scheduler, 0, &batch));
  assert_int_equal(batch.sequence_count, count);
  for (int32_t i = 0; i < count; ++i) {
    assert_int_equal(batch.query_lens[i], sequences[i][0]);
    assert_int_equal(batch.computed_lens[i], sequences[i][1]);
    assert_int_equal(batch.slots[i], sequences[i][2]);
  }
  sg_scheduler_complete(scheduler);
}

static sg_scheduler_t* start(const sg_requests_t* requests, int32_t max_tokens,
                             int32_t slot_count) {
  sg_scheduler_t* scheduler;
  assert_ok(sg_scheduler_create(sg_allocator_system(), requests,
                                (sg_shape_limits_t){max_tokens, 8}, slot_count,
                                &scheduler));
  return scheduler;
}

// Worked out by hand: a prompt of 10 is cut at the budget of 8.
static void test_prompts_share_the_budget(void** state) {
  (void)state;
  sg_request_t list[] = {{0, 5, 3}, {0, 10, 1}};
  const sg_requests_t requests = {.requests = list, .request_count = 2};
  sg_scheduler_t* scheduler = start(&requests, 8, 4);
  assert_batch(scheduler, 2, (const int32_t[][3]){{5, 0, 0}, {3, 0, 1}});
  assert_batch(scheduler, 2, (const int32_t[][3]){{1, 5, 0}, {7, 3, 1}});
  assert_int_equal(sg_scheduler_finished(scheduler), 1);
  assert_batch(scheduler, 1, (const int32_t[][3]){{1, 6, 0}});
  sg_batch_t batch;
  assert_false(sg_scheduler_next(scheduler, 0, &batch));
  assert_int_equal(batch.sequence_count, 0);
  assert_int_equal(sg_scheduler_finished(scheduler), 2);
  sg_scheduler_destroy(scheduler);
}

// The last token of a prompt of 9 looks like a decode and stands with them,
// before a prompt of 3 that began earlier in the order of admission.
static void test_one_token_rest_joins_the_decodes(void** state) {
  (void)state;
  sg_request_t list[] = {{0, 2, 2}, {0, 7, 1}, {0, 4, 1}};
  const sg_requests_t requests = {.requests = list, .request_count = 3};
  sg_scheduler_t* scheduler = start(&requests, 8, 4);
  assert_batch(scheduler, 2, (const int32_t[][3]){{2, 0, 0}, {6, 0, 1}});
  assert_batch(scheduler, 3,
               (const int32_t[][3]){{1, 2, 0}, {1, 6, 1}, {4, 0, 2}});
  assert_int_equal(sg_scheduler_finished(scheduler), 3);
  sg_scheduler_destroy(scheduler);
}

// A fresh prompt of one token is no decode.
static void test_fresh_single_tokens_come_last(void** state) {
  (void)state;
  sg_request_t list[] = {{0, 1, 3}, {0, 1, 1}};
  const sg_requests_t requests = {.requests = list, .request_count = 2};
  sg_scheduler_t* scheduler = start(&requests, 1, 4);
  assert_batch(scheduler, 1, (const int32_t[][3]){{1, 0, 0}});
  // Decodes come first, and take the whole budget.
  assert_batch(scheduler, 1, (const int32_t[][3]){{1, 1, 0}});
  assert_batch(scheduler, 1, (const int32_t[][3]){{1, 2, 0}});
  assert_batch(scheduler, 1, (const int32_t[][3]){{1, 0, 1}});
  sg_scheduler_destroy(scheduler);
}

static void test_slots_are_waited_for_and_take_turns(void** state) {
  (void)state;
  sg_request_t list[] = {{0, 2, 1}, {0, 3, 1}, {0, 4, 1}, {0, 5, 1}};
  const sg_requests_t requests = {.requests = list, .request_count = 4};
  sg_scheduler_t* scheduler = start(&requests, 100, 1);
  for (int32_t i = 0; i < 4; ++i) {
    assert_batch(scheduler, 1, (const int32_t[][3]){{2 + i, 0, 0}});
  }
  sg_scheduler_destroy(scheduler);
  scheduler = start(&requests, 2, 3);
  assert_batch(scheduler, 1, (const int32_t[][3]){{2, 0, 0}});
  assert_batch(scheduler, 1, (const int32_t[][3]){{2, 0, 1}});
  sg_scheduler_destroy(scheduler);
}

static void test_arrivals_wait_for_the_clock(void** state) {
  (void)state;
  sg_request_t list[] = {{500, 2, 1}};
  const sg_requests_t requests = {.requests = list, .request_count = 1};
  sg_scheduler_t* scheduler = start(&requests, 8, 1);
  sg_batch_t batch;
  assert_false(sg_scheduler_next(scheduler, 499, &batch));
  assert_int_equal(sg_scheduler_next_arrival_ns(scheduler), 500);
  assert_true(sg_scheduler_next(scheduler, 500, &batch));
  assert_true(sg_scheduler_next_arrival_ns(scheduler) == INT64_MAX);
  sg_scheduler_destroy(scheduler);
}

static void test_bad_limits_are_refused(void** state) {
  (void)state;
  const sg_requests_t requests = {.request_count = 0};
  sg_scheduler_t* scheduler;
  assert_code(sg_scheduler_create(sg_allocator_system(), &requests,
                                  (sg_shape_limits_t){0, 1}, 1, &scheduler),
              SG_STATUS_INVALID_ARGUMENT);
  assert_null(scheduler);
  assert_code(sg_scheduler_create(sg_allocator_system(), &requests,
                                  (sg_shape_limits_t){1, 1}, 0, &scheduler),
              SG_STATUS_INVALID_ARGUMENT);
  sg_scheduler_destroy(NULL);
}

static void test_virtual_clock(void** state) {
  (void)state;
  assert_int_equal(sg_virtual_step_ns(0), 1000000);
  assert_int_equal(sg_virtual_step_ns(2500), 3500000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_request_finishes),
      cmocka_unit_test(test_prompts_share_the_budget),
      cmocka_unit_test(test_one_token_rest_joins_the_decodes),
      cmocka_unit_test(test_fresh_single_tokens_come_last),
      cmocka_unit_test(test_slots_are_waited_for_and_take_turns),
      cmocka_unit_test(test_arrivals_wait_for_the_clock),
      cmocka_unit_test(test_bad_limits_are_refused),
      cmocka_unit_test(test_virtual_clock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
