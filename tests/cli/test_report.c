// SPDX-License-Identifier: Apache-2.0

#include "cli/report.h"

#include <string.h>

#include "tests/check.h"

static void add(sg_report_t* report, sg_phase_t phase, int64_t duration_ns,
                sg_eager_reason_t reason, double actual, double limit) {
  const sg_step_report_t step = {
      .batch = {.phase = phase},
      .shape_index = reason == SG_EAGER_NONE ? 0 : -1,
      .reason = reason,
      .reason_actual = actual,
      .reason_limit = limit};
  assert_ok(sg_report_add_step(report, &step, duration_ns));
}

// Nearest rank: of 1 to 2000 the median is 1000 and the 99th percentile 1980.
static void test_percentiles(void** state) {
  (void)state;
  sg_report_t report = {0};
  for (int64_t i = 0; i < 2000; ++i) {
    // In an order that is not sorted; 7 and 2000 have no common factor.
    add(&report, SG_PHASE_MIXED, 1 + i * 7 % 2000, SG_EAGER_NONE, 0, 0);
  }
  add(&report, SG_PHASE_DECODE, 5, SG_EAGER_NONE, 0, 0);
  sg_time_summary_t summary;
  assert_ok(sg_report_summarize(&report, SG_PHASE_MIXED, &summary));
  assert_int_equal(summary.steps, 2000);
  assert_int_equal(summary.median_ns, 1000);
  assert_int_equal(summary.p99_ns, 1980);
  assert_int_equal(summary.total_ns, 2001000);
  assert_ok(sg_report_summarize(&report, SG_PHASE_DECODE, &summary));
  assert_int_equal(summary.median_ns, 5);
  assert_int_equal(summary.p99_ns, 5);
  assert_ok(sg_report_summarize(&report, SG_PHASE_COUNT, &summary));
  assert_int_equal(summary.steps, 2001);
  // The 1001st and the 1981st of 1, 2, 3, 4, 5, 5, 6 and so on.
  assert_int_equal(summary.median_ns, 1000);
  assert_int_equal(summary.p99_ns, 1980);
  report.statistics.real_tokens = 4002010;
  assert_true(sg_report_tokens_per_second(&report, &summary) ==
              4002010 * 1e9 / 2001005);
  assert_ok(sg_report_summarize(&report, SG_PHASE_PREFILL, &summary));
  assert_int_equal(summary.steps, 0);
  assert_true(sg_report_tokens_per_second(&report, &summary) == 0);
  sg_report_deinitialize(&report);
}

static void test_largest_eager_numbers_are_kept(void** state) {
  (void)state;
  sg_report_t report = {0};
  add(&report, SG_PHASE_MIXED, 1, SG_EAGER_TOKENS, 300, 256);
  add(&report, SG_PHASE_MIXED, 1, SG_EAGER_TOKENS, 900, 512);
  add(&report, SG_PHASE_MIXED, 1, SG_EAGER_TOKENS, 600, 256);
  assert_true(report.eager_examples[SG_EAGER_TOKENS].actual == 900);
  assert_true(report.eager_examples[SG_EAGER_TOKENS].limit == 512);
  assert_true(report.eager_examples[SG_EAGER_PADDING].actual == 0);
  sg_report_deinitialize(&report);
}

static const char* table_of(const sg_report_t* report, char* text,
                            size_t bytes) {
  FILE* file = tmpfile();
  assert_non_null(file);
  assert_ok(sg_report_print(report, /*colours=*/false, file));
  rewind(file);
  text[fread(text, 1, bytes - 1, file)] = '\0';
  fclose(file);
  return text;
}

static void test_table_tells_faults(void** state) {
  (void)state;
  char model_name[] = "small";
  char shape_name[] = "decode-4";
  const sg_model_t model = {.name = model_name, .layers = 2};
  sg_shape_t shape = {.name = shape_name, .max_tokens = 4, .max_sequences = 4};
  const sg_shapes_t shapes = {.shapes = &shape, .shape_count = 1};
  sg_shape_statistics_t shape_statistics = {.captured = true, .node_count = 5};
  sg_report_t report = {
      .model = &model,
      .shapes = &shapes,
      .target = "host",
      .device = "a device",
      .clock = "virtual",
      .verify = true,
      .request_count = 3,
      .requests_finished = 2,
      .shape_statistics = &shape_statistics,
      .statistics = {.steps = 4,
                     .eager_steps = 4,
                     .eager_by_reason = {[SG_EAGER_TOKENS] = 4},
                     .real_tokens = 30,
                     .padded_tokens = 10,
                     .error_steps = 1,
                     .verified_steps = 4,
                     .mismatched_rows = 2},
      .has_error = true,
      .first_error = {.step = 3,
                      .code = SG_STEP_ERROR_SLOT_RANGE,
                      .sequence = 1,
                      .value = 9},
      .has_mismatch = true,
      .first_mismatch = {.step = 2, .row = 7},
      .mismatch_buffer = "layers.0.o",
  };
  report.eager_examples[SG_EAGER_TOKENS] = (sg_eager_example_t){900, 512};
  char text[4096];
  table_of(&report, text, sizeof(text));
  static const char* const expected[] = {
      "2 of 3 finished",
      "4 tokens, up to 900 where the limit is 512",
      "30 real, 10 padded (25.0% of the rows)",
      "1, first: step 3 slot_range, sequence 1, value 9",
      "4 steps, 2 mismatches, one at step 2 in layers.0.o, row 7",
      "never hit",
  };
  for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); ++i) {
    if (strstr(text, expected[i]) == NULL) {
      fail_msg("no '%s' in:\n%s", expected[i], text);
    }
  }
  assert_null(strchr(text, '\033'));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_percentiles),
      cmocka_unit_test(test_largest_eager_numbers_are_kept),
      cmocka_unit_test(test_table_tells_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
