// SPDX-License-Identifier: Apache-2.0

#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/allocator.h"

static sg_status_t usage_error(const sg_option_table_t* table,
                               const char* problem, const char* subject) {
  return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                        "%s: %s '%.100s' (see stepgraph %s --help)",
                        table->command, problem, subject, table->command);
}

// The option that |argument| names up to a '=', or NULL.
static const sg_option_t* find_option(const sg_option_table_t* table,
                                      const char* argument) {
  for (size_t i = 0; i < table->option_count; ++i) {
    const sg_option_t* option = &table->options[i];
    if (strncmp(argument, "--", 2) == 0) {
      size_t length = strcspn(argument + 2, "=");
      if (strlen(option->name) == length &&
          memcmp(option->name, argument + 2, length) == 0) {
        return option;
      }
    } else if (option->letter != 0 && argument[1] == option->letter &&
               argument[2] == '\0') {
      return option;
    }
  }
  return NULL;
}

static sg_status_t set_integer(const sg_option_table_t* table,
                               const sg_option_t* option, const char* text,
                               void* value) {
  char* end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  bool digits_only =
      text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
  if (!digits_only || errno != 0 || *end != '\0' || number < option->minimum ||
      number > option->maximum) {
    return sg_status_make(
        SG_STATUS_INVALID_ARGUMENT,
        "%s: --%s is '%.60s', expected a whole number from %lld to %lld",
        table->command, option->name, text, (long long)option->minimum,
        (long long)option->maximum);
  }
  *(int64_t*)value = number;
  return sg_status_ok();
}

static sg_status_t set_choice(const sg_option_table_t* table,
                              const sg_option_t* option, const char* text,
                              void* value) {
  char expected[120] = "";
  for (int i = 0; option->choices[i] != NULL; ++i) {
    if (strcmp(option->choices[i], text) == 0) {
      *(int*)value = i;
      return sg_status_ok();
    }
    size_t used = strlen(expected);
    const char* separator = i == 0 ? "" : ", ";
    if (i > 0 && option->choices[i + 1] == NULL) separator = " or ";
    snprintf(expected + used, sizeof(expected) - used, "%s%s", separator,
             option->choices[i]);
  }
  return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                        "%s: --%s is '%.60s', expected %s", table->command,
                        option->name, text, expected);
}

static sg_status_t set_value(const sg_option_table_t* table,
                             const sg_option_t* option, const char* text,
                             void* value) {
  switch (option->kind) {
    case SG_OPTION_FLAG:
      break;
    case SG_OPTION_TEXT:
      if (text[0] == '\0') {
        return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                              "%s: --%s is empty, expected %s", table->command,
                              option->name, option->placeholder);
      }
      *(const char**)value = text;
      return sg_status_ok();
    case SG_OPTION_INTEGER:
      return set_integer(table, option, text, value);
    case SG_OPTION_CHOICE:
      return set_choice(table, option, text, value);
  }
  return sg_status_make(SG_STATUS_INTERNAL, "option of kind %d",
                        (int)option->kind);
}

// Takes the option at argv[*index], and its value, which may be the argument
// behind it.
static sg_status_t take_option(const sg_option_table_t* table,
                               const sg_option_t* option, int argc, char** argv,
                               void* values, int* index) {
  const char* argument = argv[*index];
  void* value = (unsigned char*)values + option->value_offset;
  const char* text = NULL;
  if (strncmp(argument, "--", 2) == 0) text = strchr(argument, '=');
  if (option->kind == SG_OPTION_FLAG) {
    if (text != NULL) {
      return usage_error(table, "a flag takes no value:", argument);
    }
    *(bool*)value = true;
    return sg_status_ok();
  }
  if (text != NULL) return set_value(table, option, text + 1, value);
  if (*index + 1 == argc) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: --%s has no value, expected %s", table->command,
                          option->name, option->placeholder);
  }
  return set_value(table, option, argv[++*index], value);
}

static bool has_help(int argc, char** argv) {
  for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; ++i) {
    if (strcmp(argv[i], "--help") == 0) return true;
  }
  return false;
}

static sg_status_t check_required(const sg_option_table_t* table,
                                  const bool* seen, int positional_count) {
  for (size_t i = 0; i < table->option_count; ++i) {
    const sg_option_t* option = &table->options[i];
    if (option->required && !seen[i]) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "%s: --%s %s is required (see stepgraph %s --help)",
                            table->command, option->name, option->placeholder,
                            table->command);
    }
  }
  if (table->positional != NULL && positional_count == 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: expected at least one %s", table->command,
                          table->positional);
  }
  return sg_status_ok();
}

static sg_status_t parse(const sg_option_table_t* table, int argc, char** argv,
                         void* values, bool* seen, int* out_positional_count) {
  bool options_ended = false;
  for (int i = 0; i < argc; ++i) {
    char* argument = argv[i];
    bool is_option = !options_ended && argument[0] == '-' && argument[1] != 0;
    if (is_option && strcmp(argument, "--") == 0) {
      options_ended = true;
      continue;
    }
    if (!is_option) {
      if (table->positional == NULL) {
        return usage_error(table, "unexpected argument", argument);
      }
      argv[(*out_positional_count)++] = argument;
      continue;
    }
    const sg_option_t* option = find_option(table, argument);
    if (option == NULL) {
      return usage_error(table, "unknown option", argument);
    }
    bool* option_seen = &seen[option - table->options];
    if (*option_seen) {
      return usage_error(table, "given more than once:", argument);
    }
    *option_seen = true;
    SG_RETURN_IF_ERROR(take_option(table, option, argc, argv, values, &i));
  }
  return check_required(table, seen, *out_positional_count);
}

sg_status_t sg_options_parse(const sg_option_table_t* table, int argc,
                             char** argv, void* values,
                             int* out_positional_count, bool* out_help) {
  *out_positional_count = 0;
  *out_help = has_help(argc, argv);
  if (*out_help) return sg_status_ok();
  bool* seen;
  SG_RETURN_IF_ERROR(sg_allocate(sg_allocator_system(), "options",
                                 table->option_count, sizeof(*seen),
                                 (void**)&seen));
  sg_status_t status =
      parse(table, argc, argv, values, seen, out_positional_count);
  sg_release(sg_allocator_system(), seen);
  return status;
}

void sg_options_print_help(const sg_option_table_t* table, FILE* file) {
  fprintf(file, "usage: stepgraph %s [options]%s%s%s\n\n%s\n\noptions:\n",
          table->command, table->positional != NULL ? " " : "",
          table->positional != NULL ? table->positional : "",
          table->positional != NULL ? "..." : "", table->summary);
  for (size_t i = 0; i < table->option_count; ++i) {
    const sg_option_t* option = &table->options[i];
    char left[64];
    int used = 0;
    if (option->letter != 0) {
      used = snprintf(left, sizeof(left), "-%c, ", option->letter);
    }
    snprintf(left + used, sizeof(left) - (size_t)used, "--%s%s%s", option->name,
             option->placeholder != NULL ? " " : "",
             option->placeholder != NULL ? option->placeholder : "");
    fprintf(file, "  %-26s %s%s\n", left, option->help,
            option->required ? " (required)" : "");
  }
  fprintf(file, "  %-26s %s\n", "--help", "show this text");
  if (table->details != NULL) fprintf(file, "\n%s\n", table->details);
}
