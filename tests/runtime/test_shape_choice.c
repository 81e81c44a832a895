// SPDX-License-Identifier: Apache-2.0
//
// Which shape a batch gets, or the reason why none, with its numbers.

#include "runtime/shape_choice.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"
#include "tests/random.h"

enum { MOST_SHAPES = 8 };

static const sg_shape_limits_t limits = {100000, 1000};

static sg_shape_choice_t choose(const sg_shape_t* list, size_t count,
                                double ratio, sg_batch_summary_t summary) {
  sg_shape_t copy[MOST_SHAPES];
  for (size_t i = 0; i < count; ++i) copy[i] = list[i];
  sg_shapes_t shapes = {.limits = limits,
                        .shapes = count > 0 ? copy : NULL,
                        .shape_count = count,
                        .policy = {.max_padding_ratio = ratio}};
  sg_shape_choice_t choice;
  memset(&choice, 0xaa, sizeof(choice));
  sg_shape_choose(&shapes, &summary, &choice);
  return choice;
}

static sg_batch_summary_t decodes(int32_t count) {
  return (sg_batch_summary_t){count, count, count, SG_PHASE_DECODE};
}

static sg_batch_summary_t prefill(int32_t sequences, int32_t tokens) {
  return (sg_batch_summary_t){sequences, tokens, 0, SG_PHASE_PREFILL};
}

static sg_batch_summary_t mixed(int32_t sequences, int32_t tokens) {
  return (sg_batch_summary_t){sequences, tokens, 1, SG_PHASE_MIXED};
}

static void expect(sg_shape_choice_t choice, int32_t index,
                   sg_eager_reason_t reason, double actual, double limit) {
  if (choice.shape_index != index || choice.reason != reason) {
    fail_msg("expected shape %d, %s; found %d, %s", index,
             sg_eager_reason_name(reason), choice.shape_index,
             sg_eager_reason_name(choice.reason));
  }
  if (fabs(choice.actual - actual) > 1e-12 * actual ||
      fabs(choice.limit - limit) > 1e-12 * limit) {
    fail_msg("%s: expected %g of %g, found %g of %g",
             sg_eager_reason_name(reason), actual, limit, choice.actual,
             choice.limit);
  }
}

static void expect_shape(sg_shape_choice_t choice, int32_t index) {
  expect(choice, index, SG_EAGER_NONE, 0, 0);
}

static void test_own_phase_goes_before_mixed(void** state) {
  (void)state;
  static const sg_shape_t list[] = {{"m", SG_PHASE_MIXED, 16, 16},
                                    {"d", SG_PHASE_DECODE, 64, 64},
                                    {"p", SG_PHASE_PREFILL, 512, 64}};
  expect_shape(choose(list, 3, 0, decodes(4)), 1);
  expect_shape(choose(list, 3, 0, prefill(4, 9)), 2);
  expect_shape(choose(list, 3, 0, mixed(4, 9)), 0);
  // Mixed stands in where there is no room in the own phase.
  static const sg_shape_t small[] = {{"d", SG_PHASE_DECODE, 4, 4},
                                     {"p", SG_PHASE_PREFILL, 4, 4},
                                     {"m", SG_PHASE_MIXED, 512, 64}};
  expect_shape(choose(small, 3, 0, decodes(5)), 2);
  expect_shape(choose(small, 3, 0, prefill(1, 5)), 2);
  expect_shape(choose(small, 3, 0, prefill(5, 4)), 2);
}

static void test_then_fewer_tokens_sequences_file_order(void** state) {
  (void)state;
  static const sg_shape_t list[] = {
      {"a", SG_PHASE_PREFILL, 512, 8}, {"b", SG_PHASE_PREFILL, 256, 64},
      {"c", SG_PHASE_PREFILL, 256, 8}, {"d", SG_PHASE_PREFILL, 256, 16},
      {"e", SG_PHASE_PREFILL, 256, 8}, {"f", SG_PHASE_PREFILL, 128, 2},
  };
  expect_shape(choose(list, 6, 0, prefill(2, 128)), 5);
  expect_shape(choose(list, 6, 0, prefill(2, 129)), 2);
  expect_shape(choose(list, 6, 0, prefill(3, 128)), 2);
  expect_shape(choose(list, 6, 0, prefill(9, 128)), 3);
  expect_shape(choose(list, 6, 0, prefill(17, 256)), 1);
  expect_shape(choose(list, 6, 0, prefill(8, 512)), 0);
}

// A batch never runs in a shape of another phase, whatever its numbers.
static void test_equal_counts_are_no_match_across_phases(void** state) {
  (void)state;
  static const sg_shape_t decode[] = {{"d", SG_PHASE_DECODE, 8, 8}};
  static const sg_shape_t pre[] = {{"p", SG_PHASE_PREFILL, 8, 8}};
  expect_shape(choose(decode, 1, 0, decodes(8)), 0);
  expect_shape(choose(pre, 1, 0, prefill(8, 8)), 0);
  expect(choose(decode, 1, 0, prefill(8, 8)), -1, SG_EAGER_PHASE, 0, 0);
  expect(choose(decode, 1, 0, prefill(1, 1)), -1, SG_EAGER_PHASE, 0, 0);
  expect(choose(decode, 1, 0, mixed(8, 8)), -1, SG_EAGER_PHASE, 0, 0);
  expect(choose(pre, 1, 0, decodes(8)), -1, SG_EAGER_PHASE, 0, 0);
  expect(choose(pre, 1, 0, mixed(8, 8)), -1, SG_EAGER_PHASE, 0, 0);
  expect(choose(NULL, 0, 0, decodes(1)), -1, SG_EAGER_PHASE, 0, 0);
}

static void test_reasons_have_numbers(void** state) {
  (void)state;
  static const sg_shape_t list[] = {{"p", SG_PHASE_PREFILL, 128, 4},
                                    {"m", SG_PHASE_MIXED, 64, 32},
                                    {"n", SG_PHASE_MIXED, 96, 8},
                                    {"d", SG_PHASE_DECODE, 900, 900}};
  // Only shapes that may hold the phase count.
  expect(choose(list, 4, 0, prefill(1, 129)), -1, SG_EAGER_TOKENS, 129, 128);
  expect(choose(list, 4, 0, mixed(1, 97)), -1, SG_EAGER_TOKENS, 97, 96);
  // Of the sequences, only those of shapes that have the tokens.
  expect(choose(list, 4, 0, mixed(33, 64)), -1, SG_EAGER_SEQUENCES, 33, 32);
  expect(choose(list, 4, 0, mixed(9, 65)), -1, SG_EAGER_SEQUENCES, 9, 8);
  expect(choose(list, 4, 0, prefill(5, 128)), -1, SG_EAGER_SEQUENCES, 5, 4);
  expect(choose(list, 4, 1.5, mixed(2, 40)), -1, SG_EAGER_PADDING, 64.0 / 40,
         1.5);
  // The smallest ratio is of a shape that fits in sequences too.
  expect(choose(list, 4, 1.2, prefill(5, 60)), 1, SG_EAGER_NONE, 0, 0);
  expect(choose(list, 4, 1.5, prefill(2, 70)), 2, SG_EAGER_NONE, 0, 0);
  expect(choose(list, 4, 1.2, prefill(2, 70)), -1, SG_EAGER_PADDING, 96.0 / 70,
         1.2);
}

static void test_padding_ratio_is_inclusive_and_not_for_decodes(void** state) {
  (void)state;
  static const sg_shape_t list[] = {{"d", SG_PHASE_DECODE, 64, 64},
                                    {"p", SG_PHASE_PREFILL, 64, 64},
                                    {"m", SG_PHASE_MIXED, 64, 64}};
  expect_shape(choose(list, 3, 2.0, prefill(1, 32)), 1);
  expect(choose(list, 3, 2.0, prefill(1, 31)), -1, SG_EAGER_PADDING, 64.0 / 31,
         2.0);
  expect_shape(choose(list, 3, 1.0, prefill(1, 64)), 1);
  expect_shape(choose(list, 3, 1.0, decodes(1)), 0);
  // The exemption is the shape's: decodes in a mixed shape have none.
  expect(choose(list + 1, 2, 2.0, decodes(16)), -1, SG_EAGER_PADDING, 4.0, 2.0);
  expect_shape(choose(list + 1, 2, 4.0, decodes(16)), 1);
  // 0 is no maximum.
  expect_shape(choose(list, 3, 0, prefill(1, 1)), 1);
}

// Own phase first holds among those within the ratio only.
static void test_padding_may_send_a_batch_to_mixed(void** state) {
  (void)state;
  static const sg_shape_t list[] = {{"p", SG_PHASE_PREFILL, 512, 64},
                                    {"m", SG_PHASE_MIXED, 64, 64}};
  expect_shape(choose(list, 2, 0, prefill(1, 40)), 0);
  expect_shape(choose(list, 2, 2.0, prefill(1, 40)), 1);
}

static void test_batches_without_tokens(void** state) {
  (void)state;
  static const sg_shape_t list[] = {{"m", SG_PHASE_MIXED, 64, 64},
                                    {"d", SG_PHASE_DECODE, 64, 64}};
  expect_shape(choose(list, 2, 2.0, decodes(0)), 1);
  expect_shape(choose(list, 1, 0, decodes(0)), 0);
  // Its padding counts as that of one token.
  expect(choose(list, 1, 63.0, decodes(0)), -1, SG_EAGER_PADDING, 64.0, 63.0);
  expect_shape(choose(list, 1, 64.0, decodes(0)), 0);
}

// The rules once more, as plainly as they can be put.
static bool may_hold(sg_phase_t shape, sg_phase_t batch) {
  return shape == SG_PHASE_MIXED || shape == batch;
}

static bool is_better(const sg_shape_t* a, const sg_shape_t* b) {
  bool a_mixed = a->phase == SG_PHASE_MIXED;
  bool b_mixed = b->phase == SG_PHASE_MIXED;
  if (a_mixed != b_mixed) return b_mixed;
  if (a->max_tokens != b->max_tokens) return a->max_tokens < b->max_tokens;
  return a->max_sequences < b->max_sequences;
}

typedef struct survey_t {
  int32_t best;
  bool phase, tokens, sequences;
  double most_tokens, most_sequences, least_ratio;
} survey_t;

static survey_t survey(const sg_shape_t* list, int32_t count, double ratio,
                       const sg_batch_summary_t* b) {
  survey_t s = {.best = -1, .least_ratio = INFINITY};
  for (int32_t i = 0; i < count; ++i) {
    const sg_shape_t* shape = &list[i];
    if (!may_hold(shape->phase, b->phase)) continue;
    s.phase = true;
    s.most_tokens = fmax(s.most_tokens, shape->max_tokens);
    if (shape->max_tokens < b->token_count) continue;
    s.tokens = true;
    s.most_sequences = fmax(s.most_sequences, shape->max_sequences);
    if (shape->max_sequences < b->sequence_count) continue;
    s.sequences = true;
    double padding = (double)shape->max_tokens / b->token_count;
    s.least_ratio = fmin(s.least_ratio, padding);
    if (ratio != 0 && shape->phase != SG_PHASE_DECODE && padding > ratio) {
      continue;
    }
    if (s.best < 0 || is_better(shape, &list[s.best])) s.best = i;
  }
  return s;
}

static void expect_as_surveyed(sg_shape_choice_t choice, survey_t s,
                               double ratio, const sg_batch_summary_t* b) {
  if (s.best >= 0) {
    expect_shape(choice, s.best);
  } else if (!s.phase) {
    expect(choice, -1, SG_EAGER_PHASE, 0, 0);
  } else if (!s.tokens) {
    expect(choice, -1, SG_EAGER_TOKENS, b->token_count, s.most_tokens);
  } else if (!s.sequences) {
    expect(choice, -1, SG_EAGER_SEQUENCES, b->sequence_count, s.most_sequences);
  } else {
    expect(choice, -1, SG_EAGER_PADDING, s.least_ratio, ratio);
  }
}

static void test_random_choices(void** state) {
  (void)state;
  uint64_t seed = 5;
  int met[SG_EAGER_REASON_COUNT] = {0};
  for (int i = 0; i < 40000; ++i) {
    sg_shape_t list[MOST_SHAPES];
    int32_t count = random_below(&seed, MOST_SHAPES + 1);
    for (int32_t j = 0; j < count; ++j) {
      list[j] =
          (sg_shape_t){"s", (sg_phase_t)random_below(&seed, 3),
                       1 + random_below(&seed, 6), 1 + random_below(&seed, 4)};
    }
    sg_batch_summary_t b = {
        .sequence_count = 1 + random_below(&seed, 4),
        .token_count = 1 + random_below(&seed, 6),
        .phase = (sg_phase_t)random_below(&seed, SG_PHASE_COUNT)};
    static const double ratios[] = {0, 1, 1.5, 2, 3};
    double ratio = ratios[random_below(&seed, 5)];
    sg_shape_choice_t choice = choose(list, (size_t)count, ratio, b);
    expect_as_surveyed(choice, survey(list, count, ratio, &b), ratio, &b);
    ++met[choice.reason];
  }
  assert_true(met[SG_EAGER_NONE] > 1000 && met[SG_EAGER_PHASE] > 1000);
  assert_true(met[SG_EAGER_TOKENS] > 1000 && met[SG_EAGER_SEQUENCES] > 1000);
  assert_true(met[SG_EAGER_PADDING] > 1000);
}

static void test_reason_names_are_single_words(void** state) {
  (void)state;
  assert_string_equal(sg_eager_reason_name(SG_EAGER_NOT_CAPTURED),
                      "not_captured");
  for (int i = 0; i < SG_EAGER_REASON_COUNT; ++i) {
    const char* name = sg_eager_reason_name((sg_eager_reason_t)i);
    assert_true(strlen(name) > 1);
    assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
    for (int j = 0; j < i; ++j) {
      assert_string_not_equal(name, sg_eager_reason_name((sg_eager_reason_t)j));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_own_phase_goes_before_mixed),
      cmocka_unit_test(test_then_fewer_tokens_sequences_file_order),
      cmocka_unit_test(test_equal_counts_are_no_match_across_phases),
      cmocka_unit_test(test_reasons_have_numbers),
      cmocka_unit_test(test_padding_ratio_is_inclusive_and_not_for_decodes),
      cmocka_unit_test(test_padding_may_send_a_batch_to_mixed),
      cmocka_unit_test(test_batches_without_tokens),
      cmocka_unit_test(test_random_choices),
      cmocka_unit_test(test_reason_names_are_single_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
