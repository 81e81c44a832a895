// SPDX-License-Identifier: Apache-2.0
//
// Summing up batches: phases, the decode prefix, limits.

#include "runtime/batch.h"

#include <string.h>

#include "tests/check.h"
#include "tests/random.h"

static const sg_shape_limits_t wide = {1000, 16};
static const int32_t no_slots[16] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1, -1, -1};

static void check(int32_t count, const int32_t* lens, const int32_t* computed,
                  int32_t tokens, int32_t decodes, sg_phase_t phase) {
  sg_batch_t batch = {count, lens, computed, no_slots};
  sg_batch_summary_t summary;
  memset(&summary, 0xaa, sizeof(summary));
  assert_ok(sg_batch_summarize(&batch, wide, &summary));
  assert_int_equal(summary.sequence_count, count);
  assert_int_equal(summary.token_count, tokens);
  assert_int_equal(summary.decode_count, decodes);
  assert_int_equal(summary.phase, phase);
}

static void test_phases(void** state) {
  (void)state;
  check(3, (int32_t[]){1, 1, 1}, (int32_t[]){5, 1, 9}, 3, 3, SG_PHASE_DECODE);
  check(2, (int32_t[]){7, 30}, (int32_t[]){0, 0}, 37, 0, SG_PHASE_PREFILL);
  check(2, (int32_t[]){7, 30}, (int32_t[]){64, 1}, 37, 0, SG_PHASE_PREFILL);
  check(2, (int32_t[]){1, 30}, (int32_t[]){64, 0}, 31, 1, SG_PHASE_MIXED);
}

// A fresh prompt of one token is a prefill and ends the decodes.
static void test_fresh_prompts_of_one_token_are_prefill(void** state) {
  (void)state;
  check(1, (int32_t[]){1}, (int32_t[]){0}, 1, 0, SG_PHASE_PREFILL);
  check(2, (int32_t[]){1, 1}, (int32_t[]){4, 0}, 2, 1, SG_PHASE_MIXED);
  check(2, (int32_t[]){1, 1}, (int32_t[]){0, 4}, 2, 0, SG_PHASE_PREFILL);
}

static void test_later_single_tokens_are_prefill(void** state) {
  (void)state;
  check(3, (int32_t[]){1, 2, 1}, (int32_t[]){4, 4, 4}, 4, 1, SG_PHASE_MIXED);
  check(2, (int32_t[]){2, 1}, (int32_t[]){4, 4}, 3, 0, SG_PHASE_PREFILL);
}

static void test_empty_sequences_first_between_and_last(void** state) {
  (void)state;
  check(3, (int32_t[]){0, 1, 1}, (int32_t[]){4, 4, 4}, 2, 0, SG_PHASE_PREFILL);
  check(3, (int32_t[]){1, 0, 1}, (int32_t[]){4, 4, 4}, 2, 1, SG_PHASE_MIXED);
  check(3, (int32_t[]){1, 1, 0}, (int32_t[]){4, 4, 4}, 2, 2, SG_PHASE_DECODE);
  check(3, (int32_t[]){1, 0, 0}, (int32_t[]){4, 0, 9}, 1, 1, SG_PHASE_DECODE);
  check(3, (int32_t[]){0, 9, 0}, (int32_t[]){0, 0, 0}, 9, 0, SG_PHASE_PREFILL);
  check(4, (int32_t[]){1, 0, 9, 0}, (int32_t[]){1, 1, 0, 0}, 10, 1,
        SG_PHASE_MIXED);
}

// Nothing but decodes has tokens where nothing has.
static void test_nothing_to_do_is_decode(void** state) {
  (void)state;
  check(0, NULL, NULL, 0, 0, SG_PHASE_DECODE);
  check(2, (int32_t[]){0, 0}, (int32_t[]){0, 5}, 0, 0, SG_PHASE_DECODE);
}

static void check_refused(int32_t count, const int32_t* lens,
                          const int32_t* computed, sg_shape_limits_t limits,
                          sg_status_code_t code, const char* number) {
  sg_batch_t batch = {count, lens, computed, no_slots};
  sg_batch_summary_t summary, zero;
  memset(&summary, 0xaa, sizeof(summary));
  memset(&zero, 0, sizeof(zero));
  sg_status_t status = sg_batch_summarize(&batch, limits, &summary);
  assert_code(status, code);
  if (strstr(status.message, number) == NULL) {
    fail_msg("no %s in: %s", number, status.message);
  }
  assert_memory_equal(&summary, &zero, sizeof(zero));
}

static void test_limits_are_exact(void** state) {
  (void)state;
  sg_shape_limits_t limits = {10, 3};
  static const int32_t lens[] = {1, 4, 5, 0};
  static const int32_t more[] = {1, 4, 6};
  static const int32_t computed[] = {3, 0, 0, 0};
  sg_batch_t batch = {3, lens, computed, no_slots};
  sg_batch_summary_t summary;
  assert_ok(sg_batch_summarize(&batch, limits, &summary));
  assert_int_equal(summary.token_count, 10);
  check_refused(3, more, computed, limits, SG_STATUS_OUT_OF_RANGE, "11");
  check_refused(3, more, computed, limits, SG_STATUS_OUT_OF_RANGE, "10");
  check_refused(4, lens, computed, limits, SG_STATUS_OUT_OF_RANGE, "4");
  check_refused(4, lens, computed, limits, SG_STATUS_OUT_OF_RANGE, "3");
  check_refused(-1, lens, computed, limits, SG_STATUS_OUT_OF_RANGE, "-1");
  check_refused(INT32_MIN, lens, computed, limits, SG_STATUS_OUT_OF_RANGE, "-");
}

static void test_negative_lengths_are_bad_data(void** state) {
  (void)state;
  static const int32_t good[] = {1, 2, 3};
  for (int i = 0; i < 3; ++i) {
    int32_t bad[] = {1, 2, 3};
    bad[i] = -17;
    check_refused(3, bad, good, wide, SG_STATUS_INVALID_DATA, "-17");
    check_refused(3, good, bad, wide, SG_STATUS_INVALID_DATA, "-17");
    bad[i] = INT32_MIN;
    check_refused(3, bad, good, wide, SG_STATUS_INVALID_DATA, "-2147483648");
    check_refused(3, good, bad, wide, SG_STATUS_INVALID_DATA, "-2147483648");
  }
}

static void test_sums_beyond_32_bits_are_out_of_range(void** state) {
  (void)state;
  sg_shape_limits_t most = {INT32_MAX, 16};
  static const int32_t computed[] = {0, 0, 0, 0};
  static const int32_t just[] = {INT32_MAX, 0, 0};
  static const int32_t one_more[] = {INT32_MAX, 1, 0};
  // The 32-bit sums of these are 0 and 1.
  static const int32_t to_zero[] = {INT32_MAX, INT32_MAX, 2};
  static const int32_t to_one[] = {INT32_MAX, INT32_MAX, 3};
  sg_batch_t batch = {3, just, computed, no_slots};
  sg_batch_summary_t summary;
  assert_ok(sg_batch_summarize(&batch, most, &summary));
  assert_int_equal(summary.token_count, INT32_MAX);
  check_refused(3, one_more, computed, most, SG_STATUS_OUT_OF_RANGE, "");
  check_refused(3, to_zero, computed, most, SG_STATUS_OUT_OF_RANGE, "");
  check_refused(3, to_one, computed, most, SG_STATUS_OUT_OF_RANGE, "");
}

// Slots are the device's business.
static void test_slots_are_not_looked_at(void** state) {
  (void)state;
  static const int32_t ones[] = {1, 1, 1};
  static const int32_t slots[] = {INT32_MAX, INT32_MIN, INT32_MAX};
  sg_batch_t batch = {3, ones, ones, slots};
  sg_batch_summary_t summary;
  assert_ok(sg_batch_summarize(&batch, wide, &summary));
  assert_int_equal(summary.decode_count, 3);
}

static void test_random_batches(void** state) {
  (void)state;
  uint64_t seed = 1;
  for (int i = 0; i < 3000; ++i) {
    int32_t lens[16], computed[16];
    int32_t count = random_below(&seed, 17);
    int32_t tokens = 0, decodes = 0, others = 0;
    bool prefix = true;
    for (int32_t n = 0; n < count; ++n) {
      lens[n] = random_below(&seed, 3) > 0 ? 1 : random_below(&seed, 4);
      computed[n] = random_below(&seed, 6);
      prefix = prefix && lens[n] == 1 && computed[n] > 0;
      if (prefix) ++decodes;
      if (!prefix) others += lens[n];
      tokens += lens[n];
    }
    sg_phase_t phase = others == 0    ? SG_PHASE_DECODE
                       : decodes == 0 ? SG_PHASE_PREFILL
                                      : SG_PHASE_MIXED;
    check(count, lens, computed, tokens, decodes, phase);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_phases),
      cmocka_unit_test(test_fresh_prompts_of_one_token_are_prefill),
      cmocka_unit_test(test_later_single_tokens_are_prefill),
      cmocka_unit_test(test_empty_sequences_first_between_and_last),
      cmocka_unit_test(test_nothing_to_do_is_decode),
      cmocka_unit_test(test_limits_are_exact),
      cmocka_unit_test(test_negative_lengths_are_bad_data),
      cmocka_unit_test(test_sums_beyond_32_bits_are_out_of_range),
      cmocka_unit_test(test_slots_are_not_looked_at),
      cmocka_unit_test(test_random_batches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
