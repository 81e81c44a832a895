// SPDX-License-Identifier: Apache-2.0
//
// Ops in a capture that is not ours: one graph of a whole layer, replayed for
// batches that are written to the same device arrays, against the model and
// the same ops enqueued eagerly at the size of each batch.

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/graphs/foreign_ops.h"

// As in test_kda_step.c: a few hundred fp32 operations and the carried state.
static const double tolerance = 1e-5;

typedef struct pair_t {
  foreign_ops_t replayed;
  foreign_ops_t eager;
  hipGraphExec_t exec;
} pair_t;

// Calls of an executor have no place in a capture and say so.
static void check_executor_refuses(foreign_ops_t* ops) {
  kda_fixture_t* f = &ops->fixture;
  const int32_t one[] = {1}, slots[] = {1};
  const sg_batch_t batch = {1, one, one, slots};
  const sg_device_batch_t device_batch = {.query_start_loc = ops->offsets,
                                          .computed_lens = ops->computed_lens,
                                          .slots = ops->slots,
                                          .max_sequences = 1,
                                          .max_tokens = 1};
  sg_status_t status = sg_executor_run(f->executor, &batch, f->stream, NULL);
  assert_code(status, SG_STATUS_FAILED_PRECONDITION);
  assert_non_null(strstr(status.message, "capturing"));
  assert_code(
      sg_executor_run_device(f->executor, &device_batch, f->stream, NULL),
      SG_STATUS_FAILED_PRECONDITION);
  assert_code(sg_executor_zero_slots(f->executor, slots, 1, f->stream),
              SG_STATUS_FAILED_PRECONDITION);
  assert_code(sg_executor_copy_slots(f->executor, slots, one, 1, f->stream),
              SG_STATUS_FAILED_PRECONDITION);
}

static hipGraphExec_t capture(foreign_ops_t* ops, hipStreamCaptureMode mode) {
  hipStream_t stream = ops->fixture.stream;
  hipGraph_t graph;
  hipGraphExec_t exec;
  assert_hip(hipStreamBeginCapture(stream, mode));
  check_executor_refuses(ops);
  foreign_ops_enqueue(ops, KDA_MAX_TOKENS, KDA_MAX_SEQUENCES);
  check_executor_refuses(ops);
  assert_hip(hipStreamEndCapture(stream, &graph));
  // Metadata, convolution, recurrent, chunk, norm: one chain.
  size_t nodes = 0, edges = 0;
  assert_hip(hipGraphGetNodes(graph, NULL, &nodes));
  assert_hip(hipGraphGetEdges(graph, NULL, NULL, &edges));
  assert_int_equal(nodes, 4 + kda_fixture_chunk_nodes());
  assert_int_equal(edges, nodes - 1);
  assert_hip(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
  assert_hip(hipGraphDestroy(graph));
  return exec;
}

static void set_up(pair_t* p, int32_t offset_bytes, bool counted,
                   hipStreamCaptureMode mode) {
  foreign_ops_set_up(&p->replayed, offset_bytes, counted);
  foreign_ops_set_up(&p->eager, offset_bytes, counted);
  // What a first launch loads is loaded before a capture.
  const sg_batch_t empty = {0};
  foreign_ops_write(&p->replayed, &empty, KDA_MAX_SEQUENCES);
  foreign_ops_enqueue(&p->replayed, KDA_MAX_TOKENS, KDA_MAX_SEQUENCES);
  assert_hip(hipStreamSynchronize(p->replayed.fixture.stream));
  p->exec = capture(&p->replayed, mode);
}

static void tear_down(pair_t* p) {
  assert_hip(hipGraphExecDestroy(p->exec));
  foreign_ops_tear_down(&p->replayed);
  foreign_ops_tear_down(&p->eager);
}

static int32_t tokens_of(const sg_batch_t* batch) {
  int32_t tokens = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    tokens += batch->query_lens[n];
  }
  return tokens;
}

static void replay(pair_t* p, const sg_batch_t* batch) {
  foreign_ops_t* ops = &p->replayed;
  foreign_ops_write(ops, batch, KDA_MAX_SEQUENCES);
  assert_hip(hipGraphLaunch(p->exec, ops->fixture.stream));
  assert_hip(hipStreamSynchronize(ops->fixture.stream));
}

static void check_counts(const foreign_ops_t* ops, const sg_batch_t* batch) {
  sg_batch_counts_t counts;
  assert_hip(
      hipMemcpy(&counts, ops->counts, sizeof(counts), hipMemcpyDeviceToHost));
  assert_int_equal(counts.error_code, SG_STEP_ERROR_NONE);
  assert_int_equal(counts.error_sequence, -1);
  assert_int_equal(counts.token_count, tokens_of(batch));
  assert_int_equal(counts.sequence_count,
                   ops->counted ? batch->sequence_count : KDA_MAX_SEQUENCES);
  int32_t decodes = 0, chunks = 0;
  while (decodes < batch->sequence_count && batch->query_lens[decodes] == 1 &&
         batch->computed_lens[decodes] > 0) {
    ++decodes;
  }
  for (int32_t n = decodes; n < batch->sequence_count; ++n) {
    chunks += (batch->query_lens[n] + 63) / 64;
  }
  assert_int_equal(counts.decode_count, decodes);
  assert_int_equal(counts.chunk_count, chunks);
}

// |bytes| of a buffer of both.
static void check_equal(const pair_t* p, sg_kda_buffer_t buffer, size_t bytes) {
  char* found = malloc(bytes + 1);
  char* expected = malloc(bytes + 1);
  assert_true(found != NULL && expected != NULL);
  kda_fixture_read(&p->replayed.fixture, 0, buffer, found, bytes);
  kda_fixture_read(&p->eager.fixture, 0, buffer, expected, bytes);
  if (memcmp(found, expected, bytes) != 0) {
    fail_msg("%s: other bits than eagerly",
             kda_fixture_spec(&p->eager.fixture, 0, buffer)->name);
  }
  free(found);
  free(expected);
}

static void check_states_equal(const pair_t* p) {
  static const sg_kda_buffer_t pools[] = {SG_KDA_BUFFER_STATE,
                                          SG_KDA_BUFFER_CONV_CACHE};
  for (int i = 0; i < 2; ++i) {
    check_equal(p, pools[i],
                kda_fixture_spec(&p->eager.fixture, 0, pools[i])->bytes);
  }
}

// |batch| is a good one that follows from those before.
static void step(pair_t* p, const sg_batch_t* batch) {
  kda_fixture_new_inputs(&p->replayed.fixture);
  kda_fixture_new_inputs(&p->eager.fixture);
  replay(p, batch);
  check_counts(&p->replayed, batch);
  kda_fixture_check(&p->replayed.fixture, batch, tolerance, tolerance);
  foreign_ops_write(&p->eager, batch, batch->sequence_count);
  foreign_ops_enqueue(&p->eager, tokens_of(batch), batch->sequence_count);
  assert_hip(hipStreamSynchronize(p->eager.fixture.stream));
  size_t row =
      kda_fixture_spec(&p->eager.fixture, 0, SG_KDA_BUFFER_O)->stride_bytes;
  check_equal(p, SG_KDA_BUFFER_O, row * (size_t)tokens_of(batch));
  check_states_equal(p);
}

static void random_step(pair_t* p) {
  kda_batch_t b, same;
  kda_fixture_random_batch(&p->replayed.fixture, &b);
  kda_fixture_random_batch(&p->eager.fixture, &same);
  step(p, &b.batch);
}

// Sequence n of |lens| is in slot 4 + n and goes on from where that is.
static void chosen_step(pair_t* p, int32_t count, const int32_t* lens) {
  kda_batch_t b;
  for (int32_t n = 0; n < count; ++n) {
    b.query_lens[n] = lens[n];
    b.slots[n] = 4 + n;
    b.computed_lens[n] = p->replayed.fixture.computed[4 + n];
    p->replayed.fixture.computed[4 + n] += lens[n];
    p->eager.fixture.computed[4 + n] += lens[n];
  }
  b.batch = (sg_batch_t){count, b.query_lens, b.computed_lens, b.slots};
  step(p, &b.batch);
}

static void run_batches(int32_t offset_bytes, bool counted,
                        hipStreamCaptureMode mode) {
  pair_t p;
  set_up(&p, offset_bytes, counted, mode);
  const int32_t prompts[] = {65, 3, 0, 16, 1, 0, 20, 64, 5, 31, 0, 7};
  const int32_t mixed[] = {1, 1, 0, 1, 90, 0, 0};
  const int32_t decodes[] = {1, 1};
  const int32_t empties[] = {0, 0, 0, 0, 0};
  // Every batch has fewer sequences than the one before.
  chosen_step(&p, 12, prompts);
  chosen_step(&p, 7, mixed);
  chosen_step(&p, 5, empties);
  chosen_step(&p, 2, decodes);
  chosen_step(&p, 1, (int32_t[]){KDA_MAX_TOKENS});
  chosen_step(&p, 0, NULL);
  for (int i = 0; i < 12; ++i) random_step(&p);
  tear_down(&p);
}

static void test_counted_batches(void** state) {
  (void)state;
  run_batches(4, /*counted=*/true, hipStreamCaptureModeGlobal);
}

static void test_batches_filled_up_with_empty_sequences(void** state) {
  (void)state;
  run_batches(4, /*counted=*/false, hipStreamCaptureModeThreadLocal);
}

static void test_wide_offsets(void** state) {
  (void)state;
  run_batches(8, /*counted=*/true, hipStreamCaptureModeRelaxed);
  run_batches(8, /*counted=*/false, hipStreamCaptureModeGlobal);
}

static void check_fault(pair_t* p, const sg_batch_t* batch, int32_t code,
                        int32_t sequence) {
  const sg_kda_buffer_t o = SG_KDA_BUFFER_O;
  size_t bytes = kda_fixture_spec(&p->replayed.fixture, 0, o)->bytes;
  float* found = malloc(bytes);
  assert_non_null(found);
  device_fill(
      p->replayed.fixture.device[kda_fixture_index(&p->replayed.fixture, 0, o)],
      0xff, bytes);
  replay(p, batch);
  sg_batch_counts_t counts;
  assert_hip(hipMemcpy(&counts, p->replayed.counts, sizeof(counts),
                       hipMemcpyDeviceToHost));
  assert_int_equal(counts.error_code, code);
  assert_int_equal(counts.error_sequence, sequence);
  kda_fixture_read(&p->replayed.fixture, 0, o, found, bytes);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) {
    if (found[i] != 0) fail_msg("o[%zu] is %g", i, (double)found[i]);
  }
  free(found);
  // The eager ones did not see this batch.
  check_states_equal(p);
}

// A fault leaves no trace but zeros, and the next replay starts anew.
static void test_faults_end_with_their_replay(void** state) {
  (void)state;
  pair_t p;
  set_up(&p, 8, /*counted=*/true, hipStreamCaptureModeGlobal);
  const int32_t prompts[] = {20, 70, 3};
  const int32_t lens[] = {1, 1, 8}, computed[] = {20, 70, 3};
  const int32_t twice[] = {4, 5, 4}, beyond[] = {4, KDA_SLOTS, 6};
  chosen_step(&p, 3, prompts);
  check_fault(&p, &(sg_batch_t){3, lens, computed, twice},
              SG_STEP_ERROR_SLOT_DUPLICATE, 2);
  chosen_step(&p, 3, lens);
  check_fault(&p, &(sg_batch_t){3, lens, computed, beyond},
              SG_STEP_ERROR_SLOT_RANGE, 1);
  // A count beyond the capacity, with arrays that end at it.
  const int32_t count = KDA_MAX_SEQUENCES + 1;
  foreign_ops_write(&p.replayed, &(sg_batch_t){0}, KDA_MAX_SEQUENCES);
  device_upload(p.replayed.sequence_count, &count, sizeof(count));
  assert_hip(hipGraphLaunch(p.exec, p.replayed.fixture.stream));
  assert_hip(hipStreamSynchronize(p.replayed.fixture.stream));
  sg_batch_counts_t counts;
  assert_hip(hipMemcpy(&counts, p.replayed.counts, sizeof(counts),
                       hipMemcpyDeviceToHost));
  assert_int_equal(counts.error_code, SG_STEP_ERROR_SEQUENCE_COUNT);
  assert_int_equal(counts.error_value, count);
  check_states_equal(&p);
  chosen_step(&p, 3, lens);
  tear_down(&p);
}

// After a capture that it was refused in, the executor runs as ever.
static void test_the_executor_is_none_the_worse(void** state) {
  (void)state;
  pair_t p;
  set_up(&p, 4, /*counted=*/true, hipStreamCaptureModeGlobal);
  kda_fixture_t* f = &p.replayed.fixture;
  kda_batch_t b;
  for (int i = 0; i < 4; ++i) {
    kda_fixture_random_batch(f, &b);
    kda_fixture_step(f, &b.batch, tolerance, tolerance, NULL);
  }
  sg_statistics_t statistics;
  sg_executor_statistics(f->executor, &statistics);
  assert_int_equal(statistics.steps, 4);
  assert_int_equal(statistics.error_steps, 0);
  tear_down(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counted_batches),
      cmocka_unit_test(test_batches_filled_up_with_empty_sequences),
      cmocka_unit_test(test_wide_offsets),
      cmocka_unit_test(test_faults_end_with_their_replay),
      cmocka_unit_test(test_the_executor_is_none_the_worse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
