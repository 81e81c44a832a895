// SPDX-License-Identifier: Apache-2.0
//
// The reader; safetensors_writer.c has the writer.

#include "schemas/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/json_reader.h"
#include "schemas/tensor_layout.h"
#include "schemas/text_file.h"

// The data part of the file.
typedef struct data_t {
  const unsigned char* start;
  size_t bytes;
} data_t;

static sg_status_t read_dtype(const sg_json_node_t* object,
                              sg_tensor_dtype_t* out_dtype) {
  sg_json_node_t node;
  const char* name;
  SG_RETURN_IF_ERROR(sg_json_get(object, "dtype", SG_JSON_REQUIRED, &node));
  SG_RETURN_IF_ERROR(sg_json_read_string(&node, &name));
  for (int32_t i = 0; i < SG_TENSOR_DTYPE_COUNT; ++i) {
    *out_dtype = (sg_tensor_dtype_t)i;
    if (strcmp(name, sg_tensor_dtype_name(*out_dtype)) == 0) {
      return sg_status_ok();
    }
  }
  return sg_json_expected(&node, "a dtype such as \"F32\" or \"BF16\"");
}

static sg_status_t read_shape(const sg_json_node_t* object,
                              sg_tensor_t* tensor) {
  sg_json_node_t node;
  size_t rank;
  SG_RETURN_IF_ERROR(sg_json_get(object, "shape", SG_JSON_REQUIRED, &node));
  SG_RETURN_IF_ERROR(sg_json_read_count(&node, SG_TENSOR_MAX_RANK, &rank));
  for (size_t i = 0; i < rank; ++i) {
    const sg_json_node_t dimension = sg_json_element(&node, i);
    SG_RETURN_IF_ERROR(
        sg_json_read_int64(&dimension, 0, INT64_MAX, &tensor->shape[i]));
  }
  tensor->rank = (int32_t)rank;
  return sg_status_ok();
}

// Reads where the data is and checks that it is as long as dtype and shape say.
static sg_status_t read_offsets(const sg_json_node_t* object, data_t data,
                                sg_tensor_t* tensor) {
  sg_json_node_t node;
  size_t count;
  SG_RETURN_IF_ERROR(
      sg_json_get(object, "data_offsets", SG_JSON_REQUIRED, &node));
  SG_RETURN_IF_ERROR(sg_json_read_count(&node, 2, &count));
  if (count != 2) {
    return sg_json_error(&node, "expected 2 elements, found %zu", count);
  }
  const sg_json_node_t first = sg_json_element(&node, 0);
  const sg_json_node_t second = sg_json_element(&node, 1);
  int64_t begin;
  int64_t end;
  SG_RETURN_IF_ERROR(
      sg_json_read_int64(&first, 0, (int64_t)data.bytes, &begin));
  SG_RETURN_IF_ERROR(
      sg_json_read_int64(&second, begin, (int64_t)data.bytes, &end));
  tensor->data = data.start + begin;
  tensor->bytes = (size_t)(end - begin);
  size_t expected;
  char text[SG_TENSOR_TEXT_BYTES];
  sg__tensor_text(tensor, text);
  if (!sg__tensor_bytes(tensor, &expected)) {
    return sg_json_error(object, "the size of %s overflows", text);
  }
  if (tensor->bytes != expected) {
    return sg_json_error(&node, "expected %zu bytes for %s, found %zu",
                         expected, text, tensor->bytes);
  }
  return sg_status_ok();
}

static sg_status_t read_tensor(sg_allocator_t allocator,
                               const sg_json_node_t* node, data_t data,
                               sg_tensor_t* tensor) {
  static const char* const keys[] = {"dtype", "shape", "data_offsets"};
  SG_RETURN_IF_ERROR(
      sg_json_check_object(node, keys, sizeof(keys) / sizeof(keys[0])));
  SG_RETURN_IF_ERROR(read_dtype(node, &tensor->dtype));
  SG_RETURN_IF_ERROR(read_shape(node, tensor));
  SG_RETURN_IF_ERROR(read_offsets(node, data, tensor));
  char* name;
  SG_RETURN_IF_ERROR(sg_allocate_string(allocator, node->key, &name));
  tensor->name = name;
  return sg_status_ok();
}

static size_t count_members(const sg_json_node_t* object) {
  size_t count = 0;
  sg_json_node_t member = {0};
  while (sg_json_next_member(object, &member)) ++count;
  return count;
}

static sg_status_t read_metadata(const sg_json_node_t* node,
                                 sg_safetensors_t* file) {
  SG_RETURN_IF_ERROR(
      sg_json_check_object(node, /*keys=*/NULL, /*key_count=*/0));
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(file->allocator, "tensor metadata",
                                 count_members(node),
                                 sizeof(sg_tensor_metadata_t), &memory));
  file->metadata = memory;
  sg_json_node_t member = {0};
  while (sg_json_next_member(node, &member)) {
    const char* string;
    SG_RETURN_IF_ERROR(sg_json_read_string(&member, &string));
    sg_tensor_metadata_t* entry = &file->metadata[file->metadata_count++];
    char* copy;
    SG_RETURN_IF_ERROR(sg_allocate_string(file->allocator, member.key, &copy));
    entry->key = copy;
    SG_RETURN_IF_ERROR(sg_allocate_string(file->allocator, string, &copy));
    entry->value = copy;
  }
  return sg_status_ok();
}

static int compare_places(const void* a, const void* b) {
  const sg_tensor_t* first = a;
  const sg_tensor_t* second = b;
  const uintptr_t first_begin = (uintptr_t)first->data;
  const uintptr_t second_begin = (uintptr_t)second->data;
  if (first_begin != second_begin) return first_begin < second_begin ? -1 : 1;
  // Of tensors that begin at one place, those without data come first.
  if (first->bytes != second->bytes) {
    return first->bytes < second->bytes ? -1 : 1;
  }
  return strcmp(first->name, second->name);
}

// Checks that tensors, ordered by place, cover the data without gap or overlap.
static sg_status_t check_coverage(const sg_json_node_t* root, data_t data,
                                  const sg_safetensors_t* file) {
  size_t covered = 0;
  for (size_t i = 0; i < file->tensor_count; ++i) {
    const sg_tensor_t* tensor = &file->tensors[i];
    const size_t begin =
        (size_t)((const unsigned char*)tensor->data - data.start);
    if (begin != covered) {
      sg_json_node_t node;
      SG_RETURN_IF_ERROR(
          sg_json_get(root, tensor->name, SG_JSON_REQUIRED, &node));
      return sg_json_error(
          &node, "expected data from %zu on, where that before ends, found %zu",
          covered, begin);
    }
    covered += tensor->bytes;
  }
  if (covered != data.bytes) {
    return sg_json_error(root, "expected %zu bytes of data, found %zu", covered,
                         data.bytes);
  }
  return sg_status_ok();
}

static sg_status_t read_header(const sg_json_node_t* root, data_t data,
                               sg_safetensors_t* file) {
  SG_RETURN_IF_ERROR(
      sg_json_check_object(root, /*keys=*/NULL, /*key_count=*/0));
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(file->allocator, "tensors",
                                 count_members(root), sizeof(sg_tensor_t),
                                 &memory));
  file->tensors = memory;
  sg_json_node_t member = {0};
  while (sg_json_next_member(root, &member)) {
    if (strcmp(member.key, SG_SAFETENSORS_METADATA_KEY) == 0) {
      SG_RETURN_IF_ERROR(read_metadata(&member, file));
    } else {
      SG_RETURN_IF_ERROR(read_tensor(file->allocator, &member, data,
                                     &file->tensors[file->tensor_count]));
      ++file->tensor_count;
    }
  }
  qsort(file->tensors, file->tensor_count, sizeof(sg_tensor_t), compare_places);
  return check_coverage(root, data, file);
}

// Finds header and data in a file.
static sg_status_t find_parts(const unsigned char* contents, size_t bytes,
                              const char* source_name, const char** out_header,
                              size_t* out_header_bytes, data_t* out_data) {
  *out_header = NULL;
  *out_header_bytes = 0;
  *out_data = (data_t){0};
  if (bytes < SG_SAFETENSORS_LENGTH_BYTES) {
    return sg_status_make(SG_STATUS_INVALID_DATA,
                          "%s: expected the header's length in %d bytes, found "
                          "%zu bytes",
                          source_name, SG_SAFETENSORS_LENGTH_BYTES, bytes);
  }
  uint64_t length = 0;
  for (int32_t i = SG_SAFETENSORS_LENGTH_BYTES - 1; i >= 0; --i) {
    length = length << 8 | contents[i];
  }
  const size_t rest = bytes - SG_SAFETENSORS_LENGTH_BYTES;
  const size_t most = rest < SG_SAFETENSORS_MAX_HEADER_BYTES
                          ? rest
                          : SG_SAFETENSORS_MAX_HEADER_BYTES;
  if (length > most) {
    return sg_status_make(SG_STATUS_INVALID_DATA,
                          "%s: expected a header of at most %zu bytes, found "
                          "%" PRIu64,
                          source_name, most, length);
  }
  *out_header = (const char*)contents + SG_SAFETENSORS_LENGTH_BYTES;
  *out_header_bytes = (size_t)length;
  if (length == 0 || **out_header != '{') {
    return sg_status_make(SG_STATUS_INVALID_DATA,
                          "%s: expected a header that starts with '{'",
                          source_name);
  }
  *out_data = (data_t){
      .start = contents + SG_SAFETENSORS_LENGTH_BYTES + *out_header_bytes,
      .bytes = rest - *out_header_bytes};
  return sg_status_ok();
}

sg_status_t sg_safetensors_parse(sg_allocator_t allocator, const void* contents,
                                 size_t bytes, const char* source_name,
                                 sg_safetensors_t* out_file) {
  *out_file = (sg_safetensors_t){.allocator = allocator};
  const char* header;
  size_t header_bytes;
  data_t data;
  SG_RETURN_IF_ERROR(
      find_parts(contents, bytes, source_name, &header, &header_bytes, &data));
  const sg_json_source_t source = {.name = source_name};
  sg_json_node_t root;
  SG_RETURN_IF_ERROR(sg_json_parse(&source, header, header_bytes, &root));
  const sg_status_t status = read_header(&root, data, out_file);
  sg_json_release(&root);
  if (!sg_status_is_ok(status)) sg_safetensors_deinitialize(out_file);
  return status;
}

sg_status_t sg_safetensors_load(sg_allocator_t allocator, const char* path,
                                sg_safetensors_t* out_file) {
  *out_file = (sg_safetensors_t){0};
  char* contents;
  size_t bytes;
  SG_RETURN_IF_ERROR(sg_text_file_read(
      allocator, path, /*max_bytes=*/SIZE_MAX / 4, &contents, &bytes));
  const sg_status_t status =
      sg_safetensors_parse(allocator, contents, bytes, path, out_file);
  if (!sg_status_is_ok(status)) {
    sg_release(allocator, contents);
    return status;
  }
  out_file->contents = contents;
  return sg_status_ok();
}

const sg_tensor_t* sg_safetensors_find(const sg_safetensors_t* file,
                                       const char* name) {
  for (size_t i = 0; i < file->tensor_count; ++i) {
    if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
  }
  return NULL;
}

// Strings of ours, which the structs show as constant.
static void release_string(sg_allocator_t allocator, const char* string) {
  sg_release(allocator, (void*)(uintptr_t)string);
}

void sg_safetensors_deinitialize(sg_safetensors_t* file) {
  if (file == NULL) return;
  for (size_t i = 0; i < file->tensor_count; ++i) {
    release_string(file->allocator, file->tensors[i].name);
  }
  for (size_t i = 0; i < file->metadata_count; ++i) {
    release_string(file->allocator, file->metadata[i].key);
    release_string(file->allocator, file->metadata[i].value);
  }
  sg_release(file->allocator, file->tensors);
  sg_release(file->allocator, file->metadata);
  sg_release(file->allocator, file->contents);
  *file = (sg_safetensors_t){0};
}
