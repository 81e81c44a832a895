// SPDX-License-Identifier: Apache-2.0

#include "tests/graphs/random_serving.h"

#include "tests/check.h"
#include "tests/device_memory.h"

// fp32 throughout; states are carried over thousands of steps, but decay.
static const double tolerance = 1e-5;

enum { STEPS_PER_INPUTS = 50 };

static int32_t* allocate_ints(size_t count) {
  return device_allocate(count * sizeof(int32_t), 0x5a);
}

void random_serving_set_up(random_serving_t* s, sg_capture_time_t capture,
                           sg_allocator_t allocator, uint64_t seed) {
  kda_fixture_options_t options = kda_fixture_defaults();
  options.layers = 1;
  options.with_conv = true;
  options.with_norm = true;
  options.capture = capture;
  options.allocator = allocator;
  kda_fixture_set_up(&s->fixture, &options);
  s->fixture.random = seed;
  s->query_start_loc = allocate_ints(KDA_MAX_SEQUENCES + 1);
  s->computed_lens = allocate_ints(KDA_MAX_SEQUENCES);
  s->slots = allocate_ints(KDA_MAX_SEQUENCES);
  s->sequence_count = allocate_ints(1);
}

void random_serving_tear_down(random_serving_t* s) {
  assert_hip(hipFree(s->query_start_loc));
  assert_hip(hipFree(s->computed_lens));
  assert_hip(hipFree(s->slots));
  assert_hip(hipFree(s->sequence_count));
  kda_fixture_tear_down(&s->fixture);
}

static void copy_ints(int32_t* to, const int32_t* from, int32_t count) {
  device_upload(to, from, (size_t)count * sizeof(int32_t));
}

static void run_on_device(random_serving_t* s, const sg_batch_t* batch) {
  int32_t offsets[KDA_MAX_SEQUENCES + 1] = {0};
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    offsets[n + 1] = offsets[n] + batch->query_lens[n];
  }
  copy_ints(s->query_start_loc, offsets, batch->sequence_count + 1);
  copy_ints(s->computed_lens, batch->computed_lens, batch->sequence_count);
  copy_ints(s->slots, batch->slots, batch->sequence_count);
  copy_ints(s->sequence_count, &batch->sequence_count, 1);
  sg_batch_summary_t summary;
  assert_ok(sg_batch_summarize(batch, s->fixture.shapes.limits, &summary));
  sg_device_batch_t device_batch = {
      .query_start_loc = s->query_start_loc,
      .computed_lens = s->computed_lens,
      .slots = s->slots,
      .sequence_count = s->sequence_count,
      .max_sequences = batch->sequence_count,
      .max_tokens = summary.token_count,
      .has_prefill = summary.phase != SG_PHASE_DECODE};
  assert_ok(sg_executor_run_device(s->fixture.executor, &device_batch,
                                   s->fixture.stream, NULL));
  assert_hip(hipStreamSynchronize(s->fixture.stream));
}

void random_serving_run(random_serving_t* s, int count) {
  kda_fixture_t* f = &s->fixture;
  for (int i = 0; i < count; ++i) {
    kda_batch_t b;
    if (i % STEPS_PER_INPUTS == 0) kda_fixture_new_inputs(f);
    kda_fixture_random_batch(f, &b);
    if (kda_fixture_random(f) % 2 == 0) {
      kda_fixture_run(f, &b.batch, NULL);
    } else {
      run_on_device(s, &b.batch);
    }
    kda_fixture_check(f, &b.batch, tolerance, tolerance);
  }
  sg_statistics_t statistics;
  sg_executor_statistics(f->executor, &statistics);
  assert_int_equal(statistics.error_steps, 0);
}
