// SPDX-License-Identifier: Apache-2.0

#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

typedef struct values_t {
  bool flag;
  const char* text;
  int64_t number;
  int choice;
} values_t;

enum { MAX_ARGUMENTS = 8 };

// Parses |line|, words with a blank between them.
static sg_status_t parse(const char* line, bool required,
                         const char* positional, values_t* out_values,
                         int* out_positional_count, bool* out_help) {
  static char words[256];
  char* argv[MAX_ARGUMENTS];
  int argc = 0;
  strncpy(words, line, sizeof(words) - 1);
  for (char* word = strtok(words, " "); word != NULL;
       word = strtok(NULL, " ")) {
    argv[argc++] = word;
  }
  *out_values = (values_t){.number = 64};
  const sg_option_t options[] = {
      {.name = "flag",
       .kind = SG_OPTION_FLAG,
       .value_offset = offsetof(values_t, flag)},
      {.name = "text",
       .letter = 't',
       .kind = SG_OPTION_TEXT,
       .value_offset = offsetof(values_t, text),
       .placeholder = "FILE",
       .required = required},
      {.name = "number",
       .kind = SG_OPTION_INTEGER,
       .value_offset = offsetof(values_t, number),
       .placeholder = "N",
       .minimum = 2,
       .maximum = 100},
      {.name = "choice",
       .kind = SG_OPTION_CHOICE,
       .value_offset = offsetof(values_t, choice),
       .placeholder = "A|B",
       .choices = {"red", "green"}},
  };
  const sg_option_table_t table = {.command = "test",
                                   .summary = "A test.",
                                   .options = options,
                                   .option_count = 4,
                                   .positional = positional};
  return sg_options_parse(&table, argc, argv, out_values, out_positional_count,
                          out_help);
}

static values_t parse_ok(const char* line, const char* positional,
                         int positional_count) {
  values_t values;
  int count;
  bool help;
  assert_ok(parse(line, false, positional, &values, &count, &help));
  assert_int_equal(count, positional_count);
  assert_false(help);
  return values;
}

static void test_values_of_every_kind(void** state) {
  (void)state;
  values_t values = parse_ok("", NULL, 0);
  assert_false(values.flag);
  assert_null(values.text);
  assert_int_equal(values.number, 64);
  values = parse_ok("--flag --number 2 --choice green --text a=b", NULL, 0);
  assert_true(values.flag);
  assert_int_equal(values.number, 2);
  assert_int_equal(values.choice, 1);
  assert_string_equal(values.text, "a=b");
  values = parse_ok("--number=100 --text=--flag", NULL, 0);
  assert_int_equal(values.number, 100);
  assert_string_equal(values.text, "--flag");
  assert_false(values.flag);
  assert_string_equal(parse_ok("-t x", NULL, 0).text, "x");
}

static void test_positional_arguments(void** state) {
  (void)state;
  parse_ok("a --flag b", "FILE", 2);
  assert_false(parse_ok("a -- --flag", "FILE", 2).flag);
  // "-" is a name, not an option.
  parse_ok("-", "FILE", 1);
}

static void refuse(const char* line, bool required, const char* positional,
                   const char* expected) {
  values_t values;
  int count;
  bool help;
  sg_status_t status =
      parse(line, required, positional, &values, &count, &help);
  assert_int_equal(status.code, SG_STATUS_INVALID_ARGUMENT);
  if (strstr(status.message, expected) == NULL) {
    fail_msg("'%s' gave '%s', expected '%s'", line, status.message, expected);
  }
}

static void test_faults_are_named(void** state) {
  (void)state;
  refuse("--nothing", false, NULL, "unknown option '--nothing'");
  refuse("--fla", false, NULL, "unknown option '--fla'");
  refuse("-x", false, NULL, "unknown option '-x'");
  refuse("-tx", false, NULL, "unknown option '-tx'");
  refuse("--flag=1", false, NULL, "a flag takes no value");
  refuse("--flag --flag", false, NULL, "given more than once");
  refuse("-t x --text y", false, NULL, "given more than once");
  refuse("--text", false, NULL, "--text has no value, expected FILE");
  refuse("--text=", false, NULL, "--text is empty, expected FILE");
  refuse("--flag", true, NULL, "--text FILE is required");
  refuse("stray", false, NULL, "unexpected argument 'stray'");
  refuse("--flag", false, "FILE", "expected at least one FILE");
  refuse("--choice blue", false, NULL, "expected red or green");
}

static void test_integers_are_strict(void** state) {
  (void)state;
  static const char* const texts[] = {
      "1",   "101", "-5",  "+5", "5x",
      "0x5", "5.0", "1e1", "",   "99999999999999999999",
      "five"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    char line[64];
    snprintf(line, sizeof(line), "--number=%s", texts[i]);
    refuse(line, false, NULL, "expected a whole number from 2 to 100");
  }
}

static void test_help_goes_before_faults(void** state) {
  (void)state;
  values_t values;
  int count;
  bool help;
  assert_ok(parse("--nothing --help", true, NULL, &values, &count, &help));
  assert_true(help);
  assert_code(parse("-- --help", true, "FILE", &values, &count, &help),
              SG_STATUS_INVALID_ARGUMENT);
  assert_false(help);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values_of_every_kind),
      cmocka_unit_test(test_positional_arguments),
      cmocka_unit_test(test_faults_are_named),
      cmocka_unit_test(test_integers_are_strict),
      cmocka_unit_test(test_help_goes_before_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
