// SPDX-License-Identifier: Apache-2.0

#include "cli/scheduler.h"

#include <assert.h>
#include <string.h>

// A request that has a slot.
typedef struct running_t {
  int32_t input_tokens;
  int32_t slot;
  int64_t work_tokens;
  int64_t computed_tokens;
  // Its tokens in the batch formed last.
  int32_t query_tokens;
} running_t;

struct sg_scheduler_t {
  sg_allocator_t allocator;
  const sg_requests_t* requests;
  sg_shape_limits_t limits;
  // The first request that was not admitted.
  size_t next_request;
  int64_t finished;
  // In order of admission.
  running_t* running;
  int32_t running_count;
  int32_t running_capacity;
  // A queue of free slots.
  int32_t* free_slots;
  int32_t slot_count;
  int32_t free_first;
  int32_t free_count;
  // The batch, running_capacity elements each.
  int32_t* query_lens;
  int32_t* computed_lens;
  int32_t* slots;
};

static int64_t work_tokens(const sg_request_t* request) {
  return (int64_t)request->input_tokens + request->output_tokens - 1;
}

int64_t sg_requests_work_tokens(const sg_requests_t* requests) {
  int64_t sum = 0;
  for (size_t i = 0; i < requests->request_count; ++i) {
    sum += work_tokens(&requests->requests[i]);
  }
  return sum;
}

static sg_status_t allocate_arrays(sg_scheduler_t* s) {
  size_t capacity = (size_t)s->running_capacity;
  SG_RETURN_IF_ERROR(sg_allocate(s->allocator, "scheduler", capacity,
                                 sizeof(running_t), (void**)&s->running));
  SG_RETURN_IF_ERROR(sg_allocate(s->allocator, "scheduler",
                                 (size_t)s->slot_count, sizeof(int32_t),
                                 (void**)&s->free_slots));
  int32_t** arrays[] = {&s->query_lens, &s->computed_lens, &s->slots};
  for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i) {
    SG_RETURN_IF_ERROR(sg_allocate(s->allocator, "scheduler", capacity,
                                   sizeof(int32_t), (void**)arrays[i]));
  }
  return sg_status_ok();
}

sg_status_t sg_scheduler_create(sg_allocator_t allocator,
                                const sg_requests_t* requests,
                                sg_shape_limits_t limits, int32_t slot_count,
                                sg_scheduler_t** out_scheduler) {
  *out_scheduler = NULL;
  if (limits.max_tokens < 1 || limits.max_sequences < 1 || slot_count < 1) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "scheduler: %d tokens, %d sequences and %d slots, "
                          "expected at least 1 of each",
                          limits.max_tokens, limits.max_sequences, slot_count);
  }
  sg_scheduler_t* scheduler;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "scheduler", 1, sizeof(*scheduler),
                                 (void**)&scheduler));
  scheduler->allocator = allocator;
  scheduler->requests = requests;
  scheduler->limits = limits;
  scheduler->slot_count = slot_count;
  scheduler->running_capacity =
      slot_count < limits.max_sequences ? slot_count : limits.max_sequences;
  sg_status_t status = allocate_arrays(scheduler);
  if (!sg_status_is_ok(status)) {
    sg_scheduler_destroy(scheduler);
    return status;
  }
  for (int32_t i = 0; i < slot_count; ++i) scheduler->free_slots[i] = i;
  scheduler->free_count = slot_count;
  *out_scheduler = scheduler;
  return sg_status_ok();
}

void sg_scheduler_destroy(sg_scheduler_t* scheduler) {
  if (scheduler == NULL) return;
  sg_allocator_t allocator = scheduler->allocator;
  sg_release(allocator, scheduler->running);
  sg_release(allocator, scheduler->free_slots);
  sg_release(allocator, scheduler->query_lens);
  sg_release(allocator, scheduler->computed_lens);
  sg_release(allocator, scheduler->slots);
  sg_release(allocator, scheduler);
}

int64_t sg_scheduler_next_arrival_ns(const sg_scheduler_t* scheduler) {
  if (scheduler->next_request == scheduler->requests->request_count) {
    return INT64_MAX;
  }
  return scheduler->requests->requests[scheduler->next_request].arrival_ns;
}

int64_t sg_scheduler_finished(const sg_scheduler_t* scheduler) {
  return scheduler->finished;
}

static int32_t take_slot(sg_scheduler_t* s) {
  int32_t slot = s->free_slots[s->free_first];
  s->free_first = (s->free_first + 1) % s->slot_count;
  --s->free_count;
  return slot;
}

static void return_slot(sg_scheduler_t* s, int32_t slot) {
  // Both are below slot_count, so that their sum fits.
  int64_t place = ((int64_t)s->free_first + s->free_count) % s->slot_count;
  s->free_slots[place] = slot;
  ++s->free_count;
}

static bool admit(sg_scheduler_t* s, int64_t now_ns) {
  if (s->running_count == s->running_capacity ||
      sg_scheduler_next_arrival_ns(s) > now_ns) {
    return false;
  }
  const sg_request_t* request = &s->requests->requests[s->next_request++];
  s->running[s->running_count++] =
      (running_t){.input_tokens = request->input_tokens,
                  .slot = take_slot(s),
                  .work_tokens = work_tokens(request)};
  return true;
}

static bool in_prefill(const running_t* running) {
  return running->computed_tokens < running->input_tokens;
}

// Gives the running requests that do or do not prefill their tokens and returns
// what is left of |budget|.
static int32_t give_tokens(sg_scheduler_t* s, bool prefill, int32_t budget) {
  for (int32_t i = 0; i < s->running_count && budget > 0; ++i) {
    running_t* running = &s->running[i];
    if (in_prefill(running) != prefill) continue;
    int64_t wanted =
        prefill ? running->input_tokens - running->computed_tokens : 1;
    running->query_tokens = wanted < budget ? (int32_t)wanted : budget;
    budget -= running->query_tokens;
  }
  return budget;
}

// A one-token rest of a prompt is computed as a decode, and counts as one.
static bool is_decode(const running_t* running) {
  return running->query_tokens == 1 && running->computed_tokens > 0;
}

static int32_t put_sequences(sg_scheduler_t* s, bool decodes, int32_t count) {
  for (int32_t i = 0; i < s->running_count; ++i) {
    const running_t* running = &s->running[i];
    if (running->query_tokens == 0 || is_decode(running) != decodes) continue;
    s->query_lens[count] = running->query_tokens;
    // Below work_tokens, of which a request has fewer than 2^25.
    s->computed_lens[count] = (int32_t)running->computed_tokens;
    s->slots[count] = running->slot;
    ++count;
  }
  return count;
}

bool sg_scheduler_next(sg_scheduler_t* scheduler, int64_t now_ns,
                       sg_batch_t* out_batch) {
  memset(out_batch, 0, sizeof(*out_batch));
  for (int32_t i = 0; i < scheduler->running_count; ++i) {
    assert(scheduler->running[i].query_tokens == 0);
  }
  int32_t budget = scheduler->limits.max_tokens;
  budget = give_tokens(scheduler, /*prefill=*/false, budget);
  while (admit(scheduler, now_ns)) {
  }
  give_tokens(scheduler, /*prefill=*/true, budget);
  int32_t count = put_sequences(scheduler, /*decodes=*/true, 0);
  count = put_sequences(scheduler, /*decodes=*/false, count);
  *out_batch = (sg_batch_t){.sequence_count = count,
                            .query_lens = scheduler->query_lens,
                            .computed_lens = scheduler->computed_lens,
                            .slots = scheduler->slots};
  return count > 0;
}

void sg_scheduler_complete(sg_scheduler_t* scheduler) {
  int32_t kept = 0;
  for (int32_t i = 0; i < scheduler->running_count; ++i) {
    running_t running = scheduler->running[i];
    running.computed_tokens += running.query_tokens;
    running.query_tokens = 0;
    if (running.computed_tokens == running.work_tokens) {
      return_slot(scheduler, running.slot);
      ++scheduler->finished;
      continue;
    }
    scheduler->running[kept++] = running;
  }
  scheduler->running_count = kept;
}
