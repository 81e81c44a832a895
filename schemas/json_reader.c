// SPDX-License-Identifier: Apache-2.0

#include "schemas/json_reader.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "schemas/json_scan.h"
#include "schemas/number_text.h"

enum {
  NAME_MAX_BYTES = 64,
  // Longest parts of a message, so that its end is not cut off.
  SOURCE_TEXT_BYTES = 96,
  POINTER_TEXT_BYTES = 96,
  FOUND_TEXT_BYTES = 48,
};

// --- Messages ---

// Appends |addition| whole or, if it does not fit, not at all.
static void append(char* text, size_t capacity, const char* addition) {
  const size_t used = strlen(text);
  const size_t bytes = strlen(addition);
  if (used + bytes < capacity) memcpy(text + used, addition, bytes + 1);
}

// Writes "name" or "name:line"; of a long name the end, which tells more.
static void write_source(const sg_json_source_t* source,
                         char out_text[SOURCE_TEXT_BYTES]) {
  enum { LINE_TEXT_BYTES = 24 };
  const size_t max_bytes = SOURCE_TEXT_BYTES - LINE_TEXT_BYTES - sizeof("...");
  const size_t bytes = strlen(source->name);
  const bool is_long = bytes > max_bytes;
  snprintf(out_text, SOURCE_TEXT_BYTES, "%s%s", is_long ? "..." : "",
           source->name + (is_long ? bytes - max_bytes : 0));
  if (source->line > 0) {
    char line[LINE_TEXT_BYTES];
    snprintf(line, sizeof(line), ":%" PRId64, source->line);
    append(out_text, SOURCE_TEXT_BYTES, line);
  }
}

// Appends "/key" or "/index" of every node from the root to |node| (RFC 6901).
static void append_pointer(const sg_json_node_t* node, char* text,
                           size_t capacity) {
  if (node->parent == NULL) return;
  append_pointer(node->parent, text, capacity);
  append(text, capacity, "/");
  if (node->key == NULL) {
    char index[24];
    snprintf(index, sizeof(index), "%zu", node->index);
    append(text, capacity, index);
    return;
  }
  for (const char* byte = node->key; *byte != '\0'; ++byte) {
    const char literal[2] = {*byte, '\0'};
    append(text, capacity, *byte == '~' ? "~0" : *byte == '/' ? "~1" : literal);
  }
}

static void write_string(const char* string, char out_text[FOUND_TEXT_BYTES]) {
  size_t bytes = strlen(string);
  const size_t max_bytes = FOUND_TEXT_BYTES - sizeof("\"...\"");
  const bool is_long = bytes > max_bytes;
  if (is_long) {
    bytes = max_bytes;
    while (((unsigned char)string[bytes] & 0xC0) == 0x80) --bytes;
  }
  snprintf(out_text, FOUND_TEXT_BYTES, "\"%.*s%s\"", (int)bytes, string,
           is_long ? "..." : "");
}

static void write_found(const json_t* value, char out_text[FOUND_TEXT_BYTES]) {
  const char* what = "nothing";
  char number[SG_NUMBER_TEXT_BYTES];
  switch (value == NULL ? JSON_NULL : json_typeof(value)) {
    case JSON_OBJECT:
      what = "an object";
      break;
    case JSON_ARRAY:
      what = "an array";
      break;
    case JSON_STRING:
      write_string(json_string_value(value), out_text);
      return;
    case JSON_INTEGER:
      snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
               json_integer_value(value));
      what = number;
      break;
    case JSON_REAL:
      sg_number_text_from_double(json_real_value(value), number);
      if (strpbrk(number, ".e") == NULL) append(number, sizeof(number), ".0");
      what = number;
      break;
    case JSON_TRUE:
      what = "true";
      break;
    case JSON_FALSE:
      what = "false";
      break;
    case JSON_NULL:
      if (value != NULL) what = "null";
      break;
  }
  snprintf(out_text, FOUND_TEXT_BYTES, "%s", what);
}

static sg_status_t make_error(const sg_json_node_t* node, const char* what) {
  char source[SOURCE_TEXT_BYTES];
  char pointer[POINTER_TEXT_BYTES] = "";
  write_source(node->source, source);
  append_pointer(node, pointer, sizeof(pointer));
  return sg_status_make(SG_STATUS_INVALID_DATA, "%s: %s%s%s", source, pointer,
                        pointer[0] == '\0' ? "" : ": ", what);
}

sg_status_t sg_json_error(const sg_json_node_t* node, const char* format, ...) {
  char what[SG_STATUS_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof(what), format, arguments);
  va_end(arguments);
  return make_error(node, what);
}

sg_status_t sg_json_expected(const sg_json_node_t* node, const char* format,
                             ...) {
  char what[SG_STATUS_MESSAGE_BYTES];
  char found[FOUND_TEXT_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof(what), format, arguments);
  va_end(arguments);
  write_found(node->value, found);
  return sg_json_error(node, "expected %s, found %s", what, found);
}

// --- Parsing ---

static sg_status_t syntax_error(const sg_json_source_t* source, int64_t line,
                                int64_t column, const char* what) {
  char name[SOURCE_TEXT_BYTES];
  const sg_json_source_t place = {source->name,
                                  source->line > 0 ? source->line : line};
  write_source(&place, name);
  return sg_status_make(SG_STATUS_INVALID_DATA, "%s:%" PRId64 ": %s", name,
                        column, what);
}

sg_status_t sg_json_parse(const sg_json_source_t* source, const char* text,
                          size_t bytes, sg_json_node_t* out_root) {
  *out_root = (sg_json_node_t){.source = source};
  const sg_json_fault_t fault = sg_json_scan(text, bytes);
  if (fault.what != NULL) {
    return syntax_error(source, fault.line, fault.column, fault.what);
  }
  json_error_t error;
  out_root->value =
      json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
  if (out_root->value != NULL) return sg_status_ok();
  if (json_error_code(&error) == json_error_out_of_memory) {
    return sg_status_make(SG_STATUS_OUT_OF_MEMORY, "%s: parsing: %s",
                          source->name, error.text);
  }
  const bool is_nul = json_error_code(&error) == json_error_null_character ||
                      json_error_code(&error) == json_error_null_byte_in_key;
  return syntax_error(source, error.line, error.column,
                      is_nul ? "expected no \\u0000 in a string" : error.text);
}

void sg_json_release(sg_json_node_t* root) {
  json_decref(root->value);
  *root = (sg_json_node_t){0};
}

// --- Objects and arrays ---

bool sg_json_is_null(const sg_json_node_t* node) {
  return json_is_null(node->value);
}

static bool is_among(const char* key, const char* const* keys,
                     size_t key_count) {
  for (size_t i = 0; i < key_count; ++i) {
    if (strcmp(key, keys[i]) == 0) return true;
  }
  return false;
}

sg_status_t sg_json_check_object(const sg_json_node_t* node,
                                 const char* const* keys, size_t key_count) {
  if (!json_is_object(node->value)) return sg_json_expected(node, "an object");
  if (keys == NULL) return sg_status_ok();
  const char* key;
  json_t* value;
  json_object_foreach(node->value, key, value) {
    if (!is_among(key, keys, key_count)) {
      const sg_json_node_t member = {node->source, node, key, 0, value};
      return sg_json_error(&member, "unknown key");
    }
  }
  return sg_status_ok();
}

sg_status_t sg_json_get(const sg_json_node_t* object, const char* key,
                        sg_json_presence_t presence,
                        sg_json_node_t* out_member) {
  *out_member = (sg_json_node_t){.source = object->source,
                                 .parent = object,
                                 .key = key,
                                 .value = json_object_get(object->value, key)};
  if (out_member->value == NULL && presence == SG_JSON_REQUIRED) {
    return sg_json_error(object, "the key \"%s\" is missing", key);
  }
  return sg_status_ok();
}

bool sg_json_next_member(const sg_json_node_t* object, sg_json_node_t* member) {
  void* iterator =
      member->key == NULL
          ? json_object_iter(object->value)
          : json_object_iter_next(
                object->value, json_object_iter_at(object->value, member->key));
  *member = (sg_json_node_t){.source = object->source, .parent = object};
  if (iterator == NULL) return false;
  member->key = json_object_iter_key(iterator);
  member->value = json_object_iter_value(iterator);
  return true;
}

sg_status_t sg_json_read_count(const sg_json_node_t* node, size_t max_count,
                               size_t* out_count) {
  *out_count = 0;
  if (!json_is_array(node->value)) return sg_json_expected(node, "an array");
  const size_t count = json_array_size(node->value);
  if (count > max_count) {
    return sg_json_error(node, "expected at most %zu elements, found %zu",
                         max_count, count);
  }
  *out_count = count;
  return sg_status_ok();
}

sg_json_node_t sg_json_element(const sg_json_node_t* array, size_t index) {
  return (sg_json_node_t){.source = array->source,
                          .parent = array,
                          .index = index,
                          .value = json_array_get(array->value, index)};
}

// --- Values ---

sg_status_t sg_json_read_int64(const sg_json_node_t* node, int64_t min,
                               int64_t max, int64_t* out_value) {
  *out_value = 0;
  const int64_t value = json_integer_value(node->value);
  if (json_is_integer(node->value) && value >= min && value <= max) {
    *out_value = value;
    return sg_status_ok();
  }
  if (min == max) return sg_json_expected(node, "the integer %" PRId64, min);
  return sg_json_expected(node, "an integer in [%" PRId64 ", %" PRId64 "]", min,
                          max);
}

static bool is_in_range(sg_json_range_t range, double value) {
  if (value < range.min || (range.is_min_open && value == range.min)) {
    return false;
  }
  return value < range.max || (!range.is_max_open && value == range.max);
}

static sg_status_t expected_number(const sg_json_node_t* node,
                                   sg_json_range_t range) {
  char min[SG_NUMBER_TEXT_BYTES];
  char max[SG_NUMBER_TEXT_BYTES];
  sg_number_text_from_double(range.min, min);
  sg_number_text_from_double(range.max, max);
  return sg_json_expected(node, "a number in %c%s, %s%c",
                          range.is_min_open ? '(' : '[', min, max,
                          range.is_max_open ? ')' : ']');
}

sg_status_t sg_json_read_double(const sg_json_node_t* node,
                                sg_json_range_t range, double* out_value) {
  *out_value = 0;
  const double value = json_number_value(node->value);
  if (!json_is_number(node->value) || !is_in_range(range, value)) {
    return expected_number(node, range);
  }
  *out_value = value;
  return sg_status_ok();
}

sg_status_t sg_json_read_string(const sg_json_node_t* node,
                                const char** out_string) {
  *out_string = json_string_value(node->value);
  if (*out_string == NULL) return sg_json_expected(node, "a string");
  return sg_status_ok();
}

sg_status_t sg_json_get_int32(const sg_json_node_t* object, const char* key,
                              sg_json_presence_t presence, int32_t min,
                              int32_t max, int32_t* value) {
  sg_json_node_t member;
  SG_RETURN_IF_ERROR(sg_json_get(object, key, presence, &member));
  if (member.value == NULL) return sg_status_ok();
  int64_t wide;
  SG_RETURN_IF_ERROR(sg_json_read_int64(&member, min, max, &wide));
  *value = (int32_t)wide;
  return sg_status_ok();
}

sg_status_t sg_json_get_float(const sg_json_node_t* object, const char* key,
                              sg_json_presence_t presence,
                              sg_json_range_t range, float* value) {
  sg_json_node_t member;
  SG_RETURN_IF_ERROR(sg_json_get(object, key, presence, &member));
  if (member.value == NULL) return sg_status_ok();
  double wide;
  SG_RETURN_IF_ERROR(sg_json_read_double(&member, range, &wide));
  if (!is_in_range(range, (float)wide)) return expected_number(&member, range);
  *value = (float)wide;
  return sg_status_ok();
}

sg_status_t sg_json_get_bool(const sg_json_node_t* object, const char* key,
                             sg_json_presence_t presence, bool* value) {
  sg_json_node_t member;
  SG_RETURN_IF_ERROR(sg_json_get(object, key, presence, &member));
  if (member.value == NULL) return sg_status_ok();
  if (!json_is_boolean(member.value)) {
    return sg_json_expected(&member, "true or false");
  }
  *value = json_is_true(member.value);
  return sg_status_ok();
}

sg_status_t sg_json_get_choice(const sg_json_node_t* object, const char* key,
                               sg_json_presence_t presence,
                               const char* const* choices, int32_t choice_count,
                               int32_t* index) {
  sg_json_node_t member;
  SG_RETURN_IF_ERROR(sg_json_get(object, key, presence, &member));
  if (member.value == NULL) return sg_status_ok();
  const char* string = json_string_value(member.value);
  char list[96] = "";
  for (int32_t i = 0; i < choice_count; ++i) {
    if (string != NULL && strcmp(string, choices[i]) == 0) {
      *index = i;
      return sg_status_ok();
    }
    append(list, sizeof(list), i == 0 ? "\"" : ", \"");
    append(list, sizeof(list), choices[i]);
    append(list, sizeof(list), "\"");
  }
  return sg_json_expected(&member, "one of %s", list);
}

sg_status_t sg_json_get_name(const sg_json_node_t* object, const char* key,
                             sg_allocator_t allocator, char** out_name) {
  static const char letters_and_digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  static const char all[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  *out_name = NULL;
  sg_json_node_t member;
  SG_RETURN_IF_ERROR(sg_json_get(object, key, SG_JSON_REQUIRED, &member));
  const char* name = json_string_value(member.value);
  if (name == NULL || strspn(name, letters_and_digits) == 0 ||
      strspn(name, all) != strlen(name) || strlen(name) > NAME_MAX_BYTES) {
    return sg_json_expected(&member,
                            "a name of 1 to %d letters, digits, '.', '_' or "
                            "'-' that begins with a letter or digit",
                            NAME_MAX_BYTES);
  }
  return sg_allocate_string(allocator, name, out_name);
}
