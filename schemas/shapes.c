// SPDX-License-Identifier: Apache-2.0

#include "schemas/shapes.h"

#include <string.h>

#include "schemas/bundled.h"
#include "schemas/json_reader.h"
#include "schemas/text_file.h"

enum {
  MAX_FILE_BYTES = 1 << 20,
  MAX_SHAPES = 1024,
  MAX_TOKENS = 1 << 20,
  MAX_SEQUENCES = 1 << 16,
};
// One pebibyte.
static const int64_t max_budget_bytes = INT64_C(1) << 50;
static const double max_max_padding_ratio = 1 << 20;

// In the order of the enumerators.
static const char* const phases[] = {"decode", "prefill", "mixed"};
static const char* const capture_times[] = {"startup", "lazy", "background"};
static const char* const no_matches[] = {"eager", "error"};

const char* sg_phase_name(sg_phase_t phase) { return phases[phase]; }

const char* sg_capture_time_name(sg_capture_time_t capture) {
  return capture_times[capture];
}

const char* sg_no_match_name(sg_no_match_t on_no_match) {
  return no_matches[on_no_match];
}

static sg_status_t read_limits(const sg_json_node_t* root,
                               sg_shape_limits_t* limits) {
  static const char* const keys[] = {"max_tokens", "max_sequences"};
  sg_json_node_t node;
  SG_RETURN_IF_ERROR(sg_json_get(root, "limits", SG_JSON_REQUIRED, &node));
  SG_RETURN_IF_ERROR(sg_json_check_object(&node, keys, 2));
  SG_RETURN_IF_ERROR(sg_json_get_int32(&node, "max_tokens", SG_JSON_REQUIRED, 1,
                                       MAX_TOKENS, &limits->max_tokens));
  return sg_json_get_int32(&node, "max_sequences", SG_JSON_REQUIRED, 1,
                           MAX_SEQUENCES, &limits->max_sequences);
}

// Checks the |index|th shape by itself and against those before it.
static sg_status_t check_shape(const sg_json_node_t* node,
                               const sg_shapes_t* shapes, size_t index) {
  const sg_shape_t* shape = &shapes->shapes[index];
  const sg_shape_limits_t limits = shapes->limits;
  if (shape->max_tokens > limits.max_tokens ||
      shape->max_sequences > limits.max_sequences) {
    return sg_json_error(node,
                         "expected a shape within the limits of %d tokens and "
                         "%d sequences, found %d and %d",
                         (int)limits.max_tokens, (int)limits.max_sequences,
                         (int)shape->max_tokens, (int)shape->max_sequences);
  }
  if (shape->phase == SG_PHASE_DECODE &&
      shape->max_tokens > shape->max_sequences) {
    return sg_json_error(node,
                         "expected a decode shape to have at most as many "
                         "tokens as sequences, found %d and %d",
                         (int)shape->max_tokens, (int)shape->max_sequences);
  }
  for (size_t i = 0; i < index; ++i) {
    const sg_shape_t* other = &shapes->shapes[i];
    if (strcmp(shape->name, other->name) == 0) {
      return sg_json_error(node, "the name \"%s\" is also that of shape %zu",
                           shape->name, i);
    }
    if (shape->phase == other->phase &&
        shape->max_tokens == other->max_tokens &&
        shape->max_sequences == other->max_sequences) {
      return sg_json_error(node, "the same shape as \"%s\" (shape %zu)",
                           other->name, i);
    }
  }
  return sg_status_ok();
}

static sg_status_t read_shape(const sg_json_node_t* node,
                              sg_allocator_t allocator, sg_shape_t* shape) {
  static const char* const keys[] = {"name", "phase", "max_tokens",
                                     "max_sequences"};
  SG_RETURN_IF_ERROR(sg_json_check_object(node, keys, 4));
  SG_RETURN_IF_ERROR(sg_json_get_name(node, "name", allocator, &shape->name));
  int32_t phase = 0;
  SG_RETURN_IF_ERROR(sg_json_get_choice(node, "phase", SG_JSON_REQUIRED, phases,
                                        SG_PHASE_COUNT, &phase));
  shape->phase = (sg_phase_t)phase;
  SG_RETURN_IF_ERROR(sg_json_get_int32(node, "max_tokens", SG_JSON_REQUIRED, 1,
                                       MAX_TOKENS, &shape->max_tokens));
  return sg_json_get_int32(node, "max_sequences", SG_JSON_REQUIRED, 1,
                           MAX_SEQUENCES, &shape->max_sequences);
}

static sg_status_t read_list(const sg_json_node_t* root, sg_shapes_t* shapes) {
  sg_json_node_t list;
  size_t count;
  SG_RETURN_IF_ERROR(sg_json_get(root, "shapes", SG_JSON_REQUIRED, &list));
  SG_RETURN_IF_ERROR(sg_json_read_count(&list, MAX_SHAPES, &count));
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(shapes->allocator, "shapes", count,
                                 sizeof(sg_shape_t), &memory));
  shapes->shapes = memory;
  shapes->shape_count = count;
  for (size_t i = 0; i < count; ++i) {
    const sg_json_node_t node = sg_json_element(&list, i);
    SG_RETURN_IF_ERROR(
        read_shape(&node, shapes->allocator, &shapes->shapes[i]));
    SG_RETURN_IF_ERROR(check_shape(&node, shapes, i));
  }
  return sg_status_ok();
}

static sg_status_t read_policy(const sg_json_node_t* root,
                               sg_shape_policy_t* policy) {
  static const char* const keys[] = {"max_padding_ratio", "capture",
                                     "memory_budget_bytes", "on_no_match"};
  const sg_json_range_t ratio_range = {.min = 1, .max = max_max_padding_ratio};
  sg_json_node_t node;
  SG_RETURN_IF_ERROR(sg_json_get(root, "policy", SG_JSON_OPTIONAL, &node));
  if (node.value == NULL) return sg_status_ok();
  SG_RETURN_IF_ERROR(sg_json_check_object(&node, keys, 4));
  sg_json_node_t ratio;
  SG_RETURN_IF_ERROR(
      sg_json_get(&node, "max_padding_ratio", SG_JSON_OPTIONAL, &ratio));
  if (ratio.value != NULL && !sg_json_is_null(&ratio)) {
    SG_RETURN_IF_ERROR(
        sg_json_read_double(&ratio, ratio_range, &policy->max_padding_ratio));
  }
  sg_json_node_t budget;
  SG_RETURN_IF_ERROR(
      sg_json_get(&node, "memory_budget_bytes", SG_JSON_OPTIONAL, &budget));
  if (budget.value != NULL && !sg_json_is_null(&budget)) {
    int64_t bytes;
    SG_RETURN_IF_ERROR(
        sg_json_read_int64(&budget, 1, max_budget_bytes, &bytes));
    policy->memory_budget_bytes = (uint64_t)bytes;
  }
  int32_t capture = SG_CAPTURE_STARTUP;
  SG_RETURN_IF_ERROR(sg_json_get_choice(&node, "capture", SG_JSON_OPTIONAL,
                                        capture_times, 3, &capture));
  policy->capture = (sg_capture_time_t)capture;
  int32_t on_no_match = SG_NO_MATCH_EAGER;
  SG_RETURN_IF_ERROR(sg_json_get_choice(&node, "on_no_match", SG_JSON_OPTIONAL,
                                        no_matches, 2, &on_no_match));
  policy->on_no_match = (sg_no_match_t)on_no_match;
  return sg_status_ok();
}

static sg_status_t read_shapes(const sg_json_node_t* root,
                               sg_shapes_t* shapes) {
  static const char* const keys[] = {"version", "limits", "shapes", "policy"};
  SG_RETURN_IF_ERROR(sg_json_check_object(root, keys, 4));
  int32_t version;
  SG_RETURN_IF_ERROR(
      sg_json_get_int32(root, "version", SG_JSON_REQUIRED, 1, 1, &version));
  SG_RETURN_IF_ERROR(read_limits(root, &shapes->limits));
  SG_RETURN_IF_ERROR(read_list(root, shapes));
  return read_policy(root, &shapes->policy);
}

sg_status_t sg_shapes_parse(sg_allocator_t allocator, const char* text,
                            size_t bytes, const char* source_name,
                            sg_shapes_t* out_shapes) {
  *out_shapes = (sg_shapes_t){.allocator = allocator};
  const sg_json_source_t source = {.name = source_name};
  sg_json_node_t root;
  SG_RETURN_IF_ERROR(sg_json_parse(&source, text, bytes, &root));
  sg_status_t status = read_shapes(&root, out_shapes);
  sg_json_release(&root);
  if (!sg_status_is_ok(status)) sg_shapes_deinitialize(out_shapes);
  return status;
}

sg_status_t sg_shapes_load(sg_allocator_t allocator, const char* path,
                           sg_shapes_t* out_shapes) {
  *out_shapes = (sg_shapes_t){0};
  char* text;
  size_t bytes;
  SG_RETURN_IF_ERROR(
      sg_text_file_read(allocator, path, MAX_FILE_BYTES, &text, &bytes));
  sg_status_t status =
      sg_shapes_parse(allocator, text, bytes, path, out_shapes);
  sg_release(allocator, text);
  return status;
}

sg_status_t sg_shapes_open(sg_allocator_t allocator, const char* name_or_path,
                           sg_shapes_t* out_shapes) {
  const sg_bundled_file_t* bundled =
      sg_bundled_find(SG_BUNDLED_SHAPES, name_or_path);
  if (bundled != NULL) {
    return sg_shapes_parse(allocator, bundled->text, bundled->bytes,
                           bundled->name, out_shapes);
  }
  return sg_bundled_explain(sg_shapes_load(allocator, name_or_path, out_shapes),
                            SG_BUNDLED_SHAPES, name_or_path);
}

static void write_int_member(sg_json_writer_t* writer, const char* key,
                             int64_t value) {
  sg_json_writer_key(writer, key);
  sg_json_writer_int64(writer, value);
}

static void write_string_member(sg_json_writer_t* writer, const char* key,
                                const char* value) {
  sg_json_writer_key(writer, key);
  sg_json_writer_string(writer, value);
}

static void write_policy(const sg_shape_policy_t* policy,
                         sg_json_writer_t* writer) {
  sg_json_writer_begin_object(writer);
  sg_json_writer_key(writer, "max_padding_ratio");
  if (policy->max_padding_ratio == 0) {
    sg_json_writer_null(writer);
  } else {
    sg_json_writer_double(writer, policy->max_padding_ratio);
  }
  write_string_member(writer, "capture", sg_capture_time_name(policy->capture));
  sg_json_writer_key(writer, "memory_budget_bytes");
  if (policy->memory_budget_bytes == 0) {
    sg_json_writer_null(writer);
  } else {
    sg_json_writer_uint64(writer, policy->memory_budget_bytes);
  }
  write_string_member(writer, "on_no_match",
                      sg_no_match_name(policy->on_no_match));
  sg_json_writer_end_object(writer);
}

void sg_shapes_write(const sg_shapes_t* shapes, sg_json_writer_t* writer) {
  sg_json_writer_begin_object(writer);
  write_int_member(writer, "version", 1);
  sg_json_writer_key(writer, "limits");
  sg_json_writer_begin_inline_object(writer);
  write_int_member(writer, "max_tokens", shapes->limits.max_tokens);
  write_int_member(writer, "max_sequences", shapes->limits.max_sequences);
  sg_json_writer_end_object(writer);
  sg_json_writer_key(writer, "shapes");
  sg_json_writer_begin_array(writer);
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    const sg_shape_t* shape = &shapes->shapes[i];
    sg_json_writer_begin_inline_object(writer);
    write_string_member(writer, "name", shape->name);
    write_string_member(writer, "phase", sg_phase_name(shape->phase));
    write_int_member(writer, "max_tokens", shape->max_tokens);
    write_int_member(writer, "max_sequences", shape->max_sequences);
    sg_json_writer_end_object(writer);
  }
  sg_json_writer_end_array(writer);
  sg_json_writer_key(writer, "policy");
  write_policy(&shapes->policy, writer);
  sg_json_writer_end_object(writer);
}

void sg_shapes_deinitialize(sg_shapes_t* shapes) {
  if (shapes == NULL) return;
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    sg_release(shapes->allocator, shapes->shapes[i].name);
  }
  sg_release(shapes->allocator, shapes->shapes);
  *shapes = (sg_shapes_t){0};
}
