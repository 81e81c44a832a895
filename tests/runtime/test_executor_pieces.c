// SPDX-License-Identifier: Apache-2.0
//
// Steps in pieces, and launches of the caller's own inside a step.

#include <string.h>

#include "tests/check.h"
#include "tests/runtime/executor_fixture.h"

enum { PIECES = 3 };

static fixture_options_t cut_options(bool foreign) {
  fixture_options_t options = fixture_defaults();
  options.piece_count = PIECES;
  options.foreign = foreign;
  return options;
}

static void check_outputs(fixture_t* f, const sg_batch_t* batch) {
  size_t bytes = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    bytes += (size_t)batch->query_lens[n] * sizeof(uint64_t);
  }
  if (bytes == 0) return;
  assert_hip(hipMemcpy(f->o, f->device[TOY_O], bytes, hipMemcpyDeviceToHost));
  assert_memory_equal(f->o, f->model_o, bytes);
}

// Each piece is run by a call of its own, with the caller's work between.
static void run_in_pieces(const fixture_options_t* options) {
  fixture_t cut, whole;
  fixture_set_up(&cut, options);
  fixture_options_t uncut = fixture_defaults();
  uncut.layers = PIECES;
  uncut.always_eager = options->always_eager;
  fixture_set_up(&whole, &uncut);
  for (int i = 0; i < 100; ++i) {
    test_batch_t b;
    sg_step_report_t report;
    fixture_random_batch(&cut, &b);
    assert_ok(
        sg_executor_begin(cut.executor, &b.batch, NULL, cut.stream, &report));
    for (int32_t piece = 1; piece < PIECES; ++piece) {
      // What the caller does between two pieces.
      assert_hip(
          hipMemsetAsync(cut.foreign_counter, 0, sizeof(uint64_t), cut.stream));
      assert_ok(sg_executor_run_piece(cut.executor, piece));
    }
    fixture_apply(&cut, &b.batch);
    fixture_check_state(&cut);
    check_outputs(&cut, &b.batch);
    // The uncut step gives the same bits.
    fixture_step(&whole, &b.batch, NULL);
    assert_memory_equal(cut.model_state, whole.model_state,
                        sizeof(cut.model_state));
  }
  fixture_tear_down(&cut);
  fixture_tear_down(&whole);
}

static void test_replayed_pieces_equal_the_uncut_step(void** state) {
  (void)state;
  fixture_options_t options = cut_options(/*foreign=*/false);
  run_in_pieces(&options);
}

static void test_eager_pieces_equal_the_uncut_step(void** state) {
  (void)state;
  fixture_options_t options = cut_options(/*foreign=*/true);
  options.always_eager = true;
  run_in_pieces(&options);
}

static void test_run_takes_all_pieces(void** state) {
  (void)state;
  fixture_options_t options = cut_options(/*foreign=*/true);
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_shape_statistics_t statistics;
  sg_executor_shape_statistics(f.executor, 0, &statistics);
  // Two tables, three layers and the end are ours; a fill and a kernel a piece
  // are the caller's.
  assert_int_equal(statistics.node_count, 6 + 2 * PIECES);
  for (int i = 0; i < 50; ++i) {
    test_batch_t b;
    fixture_random_batch(&f, &b);
    fixture_step(&f, &b.batch, NULL);
    uint64_t counted = 0;
    assert_hip(hipMemcpy(&counted, f.foreign_counter, sizeof(counted),
                         hipMemcpyDeviceToHost));
    assert_int_equal(counted, 1);
  }
  fixture_tear_down(&f);
}

static void test_foreign_nodes_are_in_the_table(void** state) {
  (void)state;
  fixture_options_t options = cut_options(/*foreign=*/true);
  fixture_t f;
  fixture_set_up(&f, &options);
  const sg_node_table_t* nodes = sg_executor_nodes(f.executor, 0, 0);
  assert_non_null(nodes);
  static const char* const expected[] = {"batch_ingest", "chunk_metadata",
                                         "memset", "kernel", "toy_layer"};
  assert_int_equal(nodes->node_count, 5);
  for (size_t i = 0; i < 5; ++i) {
    assert_string_equal(nodes->nodes[i].kernel->name, expected[i]);
  }
  assert_int_equal(nodes->edge_count, 4);
  for (size_t i = 0; i < 4; ++i) {
    assert_int_equal(nodes->edges[i].from, i);
    assert_int_equal(nodes->edges[i].to, i + 1);
  }
  fixture_tear_down(&f);
}

static const int32_t one[] = {1, 1};
static const int32_t seven[] = {7, 7};
static const int32_t slots[] = {3, 4};

static void test_pieces_run_in_order_only(void** state) {
  (void)state;
  fixture_options_t options = cut_options(/*foreign=*/false);
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_batch_t batch = {2, one, seven, slots};
  assert_code(sg_executor_run_piece(f.executor, 1),
              SG_STATUS_FAILED_PRECONDITION);
  assert_ok(sg_executor_begin(f.executor, &batch, NULL, f.stream, NULL));
  assert_code(sg_executor_run_piece(f.executor, 2),
              SG_STATUS_FAILED_PRECONDITION);
  assert_code(sg_executor_run(f.executor, &batch, f.stream, NULL),
              SG_STATUS_FAILED_PRECONDITION);
  assert_code(sg_executor_zero_slots(f.executor, slots, 1, f.stream),
              SG_STATUS_FAILED_PRECONDITION);
  assert_code(sg_executor_capture(f.executor, NULL, NULL),
              SG_STATUS_FAILED_PRECONDITION);
  assert_ok(sg_executor_run_piece(f.executor, 1));
  assert_ok(sg_executor_run_piece(f.executor, 2));
  assert_code(sg_executor_run_piece(f.executor, 2),
              SG_STATUS_FAILED_PRECONDITION);
  fixture_apply(&f, &batch);
  fixture_check_state(&f);
  fixture_step(&f, &batch, NULL);
  fixture_tear_down(&f);
}

static void test_cut_steps_cannot_be_verified(void** state) {
  (void)state;
  fixture_options_t options = cut_options(/*foreign=*/false);
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_executor_options_t verifying;
  sg_executor_options_initialize(&verifying);
  verifying.verify_every = 1;
  sg_executor_t* second = NULL;
  assert_code(sg_executor_create(f.context, &verifying, &f.toy.program,
                                 &f.shapes, &second),
              SG_STATUS_INVALID_ARGUMENT);
  assert_null(second);
  fixture_tear_down(&f);
}

static void test_callbacks_are_told_the_mode(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.captured = false;
  fixture_t f;
  fixture_set_up(&f, &options);
  sg_batch_t batch = {2, one, seven, slots};
  fixture_step(&f, &batch, NULL);
  assert_int_equal(f.toy.last_mode, SG_RECORD_EAGER);
  int32_t before = f.toy.record_count;
  assert_ok(sg_executor_capture(f.executor, NULL, NULL));
  assert_int_equal(f.toy.last_mode, SG_RECORD_CAPTURE);
  // Each of the five shapes is warmed up and captured.
  assert_int_equal(f.toy.record_count - before, 10);
  fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replayed_pieces_equal_the_uncut_step),
      cmocka_unit_test(test_eager_pieces_equal_the_uncut_step),
      cmocka_unit_test(test_run_takes_all_pieces),
      cmocka_unit_test(test_foreign_nodes_are_in_the_table),
      cmocka_unit_test(test_pieces_run_in_order_only),
      cmocka_unit_test(test_cut_steps_cannot_be_verified),
      cmocka_unit_test(test_callbacks_are_told_the_mode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
