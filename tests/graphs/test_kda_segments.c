// SPDX-License-Identifier: Apache-2.0
//
// Steps of the caller's own: its launches between the layers, in one graph, cut
// into pieces, eagerly, and with faults.

#include <string.h>

#include "tests/check.h"
#include "tests/graphs/segment_caller.h"

enum { STEPS = 12 };

// A caller beside a step without one, with the same inputs and batches.
typedef struct pair_t {
  segment_caller_t caller;
  kda_fixture_t fixture;
  kda_fixture_t plain;
} pair_t;

static void set_up(pair_t* p, int32_t piece_count, bool always_eager) {
  segment_caller_set_up(&p->caller, &p->fixture, piece_count, always_eager);
  kda_fixture_options_t options = kda_fixture_defaults();
  options.always_eager = always_eager;
  kda_fixture_set_up(&p->plain, &options);
}

static void tear_down(pair_t* p) {
  segment_caller_tear_down(&p->caller);
  kda_fixture_tear_down(&p->plain);
}

static uint64_t toy_runs(const pair_t* p) {
  uint64_t runs = 0;
  assert_hip(
      hipMemcpy(&runs, p->caller.runs, sizeof(runs), hipMemcpyDeviceToHost));
  return runs;
}

static sg_statistics_t statistics_of(const pair_t* p) {
  sg_statistics_t statistics;
  sg_executor_statistics(p->fixture.executor, &statistics);
  return statistics;
}

static void run_replayed(int32_t piece_count, bool by_piece) {
  pair_t p;
  set_up(&p, piece_count, /*always_eager=*/false);
  assert_ok(sg_executor_capture(p.fixture.executor, NULL, NULL));
  int calls = p.caller.seen_count;
  uint64_t warm_ups = toy_runs(&p);
  assert_int_equal(warm_ups, p.fixture.shapes.shape_count);
  for (int i = 0; i < STEPS; ++i) {
    segment_caller_step(&p.caller, &p.plain, by_piece, NULL);
  }
  // Replays ask nobody, and run what was recorded once a step.
  assert_int_equal(p.caller.seen_count, calls);
  assert_int_equal(toy_runs(&p) - warm_ups, STEPS);
  assert_int_equal(statistics_of(&p).graph_steps, STEPS);
  assert_int_equal(statistics_of(&p).error_steps, 0);
  static const char* const refusals[] = {"layer -1, the model has 2",
                                         "layer 2, the model has 2"};
  for (int i = 0; i < 2; ++i) {
    assert_code(p.caller.bad_layers[i], SG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(p.caller.bad_layers[i].message, refusals[i]));
  }
  tear_down(&p);
}

static void test_one_graph_has_the_bits_of_the_plain_step(void** state) {
  (void)state;
  run_replayed(1, /*by_piece=*/false);
}

static void test_pieces_have_the_bits_of_the_plain_step(void** state) {
  (void)state;
  run_replayed(CALLER_PIECES, /*by_piece=*/true);
}

static void test_run_takes_all_pieces(void** state) {
  (void)state;
  run_replayed(CALLER_PIECES, /*by_piece=*/false);
}

static void run_eager(int32_t piece_count, bool by_piece) {
  pair_t p;
  set_up(&p, piece_count, /*always_eager=*/true);
  for (int i = 0; i < STEPS; ++i) {
    sg_step_report_t report;
    segment_caller_step(&p.caller, &p.plain, by_piece, &report);
    assert_int_equal(report.reason, SG_EAGER_REQUESTED);
    assert_int_equal(p.caller.seen_count, (i + 1) * piece_count);
    for (int32_t piece = 0; piece < piece_count; ++piece) {
      // Told the batch's own size.
      const caller_seen_t* seen = &p.caller.seen[i * piece_count + piece];
      assert_int_equal(seen->mode, SG_RECORD_EAGER);
      assert_int_equal(seen->piece, piece);
      assert_int_equal(seen->capacity.phase, report.batch.phase);
      assert_int_equal(seen->capacity.max_tokens, report.batch.token_count);
      assert_int_equal(seen->capacity.max_sequences,
                       report.batch.sequence_count);
    }
  }
  assert_int_equal(toy_runs(&p), STEPS);
  tear_down(&p);
}

static void test_eager_steps_have_the_same_bits(void** state) {
  (void)state;
  run_eager(1, /*by_piece=*/false);
}

static void test_eager_pieces_have_the_same_bits(void** state) {
  (void)state;
  run_eager(CALLER_PIECES, /*by_piece=*/true);
}

// Each shape is warmed up whole and then captured piece by piece, the largest
// first.
static void test_callbacks_are_told_mode_piece_and_capacity(void** state) {
  (void)state;
  pair_t p;
  set_up(&p, CALLER_PIECES, /*always_eager=*/false);
  assert_ok(sg_executor_capture(p.fixture.executor, NULL, NULL));
  static const int order[] = {4, 2, 3, 1, 0};
  const caller_seen_t* seen = p.caller.seen;
  for (int i = 0; i < 5; ++i) {
    const sg_shape_t* shape = &p.fixture.shapes.shapes[order[i]];
    for (int half = 0; half < 2; ++half) {
      for (int32_t piece = 0; piece < CALLER_PIECES; ++piece, ++seen) {
        assert_int_equal(seen->mode,
                         half == 0 ? SG_RECORD_WARM_UP : SG_RECORD_CAPTURE);
        assert_int_equal(seen->piece, piece);
        assert_int_equal(seen->capacity.phase, shape->phase);
        assert_int_equal(seen->capacity.max_tokens, shape->max_tokens);
        assert_int_equal(seen->capacity.max_sequences, shape->max_sequences);
      }
    }
  }
  assert_int_equal(p.caller.seen_count, seen - p.caller.seen);
  tear_down(&p);
}

static size_t caller_rows(const sg_node_table_t* table) {
  size_t rows = 0;
  for (size_t i = 0; i < table->node_count; ++i) {
    rows += strcmp(table->nodes[i].kernel->op, "caller") == 0;
  }
  return rows;
}

// Nodes that KDA has in a layer of a shape: recurrent and chunk.
static size_t kda_nodes(sg_phase_t phase) {
  size_t recurrent = phase != SG_PHASE_PREFILL;
  return phase == SG_PHASE_DECODE ? recurrent
                                  : recurrent + kda_fixture_chunk_nodes();
}

static void test_the_table_has_the_nodes_and_edges_of_the_graph(void** state) {
  (void)state;
  pair_t p;
  set_up(&p, 1, /*always_eager=*/false);
  assert_ok(sg_executor_capture(p.fixture.executor, NULL, NULL));
  for (size_t i = 0; i < p.fixture.shapes.shape_count; ++i) {
    const sg_shape_t* shape = &p.fixture.shapes.shapes[i];
    const sg_node_table_t* table = sg_executor_nodes(p.fixture.executor, i, 0);
    assert_non_null(table);
    size_t ours = 3 + 2 * kda_nodes(shape->phase);
    size_t callers = 2 * CALLER_LAYER_NODES + CALLER_TOY_NODES;
    assert_int_equal(caller_rows(table), callers);
    assert_int_equal(table->node_count, ours + callers);
    // A chain, but for one more way around the fork in each layer, and the
    // order of the two copies on the second stream.
    assert_int_equal(table->edge_count, table->node_count - 1 + 2 + 1);
    for (size_t e = 0; e < table->edge_count; ++e) {
      assert_true(table->edges[e].from < table->edges[e].to);
      assert_true(table->edges[e].to < table->node_count);
    }
    assert_string_equal(table->nodes[0].kernel->name, "batch_ingest");
    assert_string_equal(table->nodes[2].kernel->name, "memset");
    assert_string_equal(table->nodes[3].kernel->name, "memcpy");
    assert_string_equal(table->nodes[table->node_count - 1].kernel->name,
                        "step_done");
  }
  tear_down(&p);
}

// The last shape that is captured is the first; only step_done comes behind
// what the caller saw then.
static void test_the_runtime_counts_the_same(void** state) {
  (void)state;
  static const int32_t piece_counts[] = {1, CALLER_PIECES};
  for (int i = 0; i < 2; ++i) {
    pair_t p;
    set_up(&p, piece_counts[i], /*always_eager=*/false);
    assert_ok(sg_executor_capture(p.fixture.executor, NULL, NULL));
    for (int32_t piece = 0; piece < piece_counts[i]; ++piece) {
      const sg_node_table_t* table =
          sg_executor_nodes(p.fixture.executor, 0, piece);
      size_t done = piece + 1 == piece_counts[i] ? 1 : 0;
      assert_int_equal(table->node_count, p.caller.node_count[piece] + done);
      assert_int_equal(table->edge_count, p.caller.edge_count[piece] + done);
    }
    tear_down(&p);
  }
}

// --- Faults ---

typedef struct progress_t {
  int calls;
  sg_status_t last;
} progress_t;

static void note_progress(void* self, size_t done_count, size_t shape_count,
                          const sg_shape_t* shape,
                          const sg_shape_statistics_t* statistics,
                          sg_status_t status) {
  progress_t* progress = self;
  (void)done_count;
  (void)shape_count;
  (void)shape;
  assert_false(statistics->captured);
  assert_false(sg_status_is_ok(status));
  ++progress->calls;
  progress->last = status;
}

// No shape gets a graph; steps run eagerly and right.
static void run_faulty(caller_fault_t fault, sg_record_mode_t mode,
                       sg_status_code_t code, const char* message) {
  pair_t p;
  set_up(&p, 1, /*always_eager=*/false);
  p.caller.fault = fault;
  p.caller.faulty_mode = mode;
  progress_t progress = {0};
  assert_ok(sg_executor_capture(p.fixture.executor, note_progress, &progress));
  assert_int_equal(progress.calls, p.fixture.shapes.shape_count);
  assert_code(progress.last, code);
  if (strstr(progress.last.message, message) == NULL) {
    fail_msg("fault %d: \"%s\" has no \"%s\"", (int)fault,
             progress.last.message, message);
  }
  hipStreamCaptureStatus capture;
  assert_hip(hipStreamIsCapturing(p.caller.side, &capture));
  assert_int_equal(capture, hipStreamCaptureStatusNone);
  for (int i = 0; i < 4; ++i) {
    sg_step_report_t report;
    segment_caller_step(&p.caller, &p.plain, /*by_piece=*/false, &report);
    assert_int_equal(report.reason, SG_EAGER_CAPTURE_FAILED);
  }
  assert_int_equal(statistics_of(&p).error_steps, 0);
  tear_down(&p);
}

static void test_a_caller_that_fails_is_run_eagerly(void** state) {
  (void)state;
  run_faulty(CALLER_FAILS, SG_RECORD_CAPTURE, SG_STATUS_NOT_FOUND,
             "the caller has lost it");
  run_faulty(CALLER_FAILS, SG_RECORD_WARM_UP, SG_STATUS_NOT_FOUND,
             "the caller has lost it");
}

static void test_forks_must_be_joined(void** state) {
  (void)state;
  run_faulty(CALLER_LEAVES_A_FORK, SG_RECORD_CAPTURE, SG_STATUS_DEVICE, "hip");
}

static void test_what_a_capture_forbids_fails_it(void** state) {
  (void)state;
  static const caller_fault_t faults[] = {CALLER_ALLOCATES, CALLER_SYNCHRONISES,
                                          CALLER_QUERIES};
  for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); ++i) {
    run_faulty(faults[i], SG_RECORD_CAPTURE, SG_STATUS_DEVICE, "hip");
  }
}

// The host's runtime refuses the call, the others add a node of a type that no
// step may have.
static void test_host_nodes_are_refused(void** state) {
  (void)state;
  bool host = sg_flavour_of_build() == SG_FLAVOUR_HOST;
  run_faulty(CALLER_ADDS_A_HOST_NODE, SG_RECORD_CAPTURE,
             host ? SG_STATUS_DEVICE : SG_STATUS_UNSUPPORTED,
             host ? "hip" : "host node");
}

// What came before it has run, so that the step can be neither ended nor taken
// back.
static void test_a_caller_that_fails_eagerly_ends_the_executor(void** state) {
  (void)state;
  pair_t p;
  set_up(&p, 1, /*always_eager=*/true);
  segment_caller_step(&p.caller, &p.plain, /*by_piece=*/false, NULL);
  p.caller.fault = CALLER_FAILS;
  p.caller.faulty_mode = SG_RECORD_EAGER;
  const int32_t one[] = {1}, slots[] = {1};
  const sg_batch_t batch = {1, one, one, slots};
  sg_status_t status =
      sg_executor_run(p.fixture.executor, &batch, p.fixture.stream, NULL);
  assert_code(status, SG_STATUS_DEVICE);
  assert_non_null(strstr(status.message, "the caller has lost it"));
  p.caller.fault = CALLER_NO_FAULT;
  assert_code(
      sg_executor_run(p.fixture.executor, &batch, p.fixture.stream, NULL),
      SG_STATUS_DEVICE);
  // The streams are the caller's and live on.
  assert_hip(hipStreamSynchronize(p.fixture.stream));
  assert_hip(hipStreamSynchronize(p.caller.side));
  tear_down(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_graph_has_the_bits_of_the_plain_step),
      cmocka_unit_test(test_pieces_have_the_bits_of_the_plain_step),
      cmocka_unit_test(test_run_takes_all_pieces),
      cmocka_unit_test(test_eager_steps_have_the_same_bits),
      cmocka_unit_test(test_eager_pieces_have_the_same_bits),
      cmocka_unit_test(test_callbacks_are_told_mode_piece_and_capacity),
      cmocka_unit_test(test_the_table_has_the_nodes_and_edges_of_the_graph),
      cmocka_unit_test(test_the_runtime_counts_the_same),
      cmocka_unit_test(test_a_caller_that_fails_is_run_eagerly),
      cmocka_unit_test(test_forks_must_be_joined),
      cmocka_unit_test(test_what_a_capture_forbids_fails_it),
      cmocka_unit_test(test_host_nodes_are_refused),
      cmocka_unit_test(test_a_caller_that_fails_eagerly_ends_the_executor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
