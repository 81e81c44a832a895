// SPDX-License-Identifier: Apache-2.0
//
// The writer of schemas/safetensors.h.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/checked.h"
#include "schemas/json_writer.h"
#include "schemas/safetensors.h"
#include "schemas/tensor_layout.h"

// What is written, the tensors in an order of the writer's.
typedef struct contents_t {
  const sg_tensor_t** tensors;
  size_t tensor_count;
  const sg_tensor_metadata_t* metadata;
  size_t metadata_count;
} contents_t;

static int compare_names(const void* a, const void* b) {
  const sg_tensor_t* const* first = a;
  const sg_tensor_t* const* second = b;
  return strcmp((*first)->name, (*second)->name);
}

static int compare_layout(const void* a, const void* b) {
  const sg_tensor_t* const* first = a;
  const sg_tensor_t* const* second = b;
  const size_t first_bytes = sg_tensor_dtype_bytes((*first)->dtype);
  const size_t second_bytes = sg_tensor_dtype_bytes((*second)->dtype);
  if (first_bytes != second_bytes) return first_bytes > second_bytes ? -1 : 1;
  return compare_names(a, b);
}

static sg_status_t check_tensor(const char* path, const sg_tensor_t* tensor) {
  if (strcmp(tensor->name, SG_SAFETENSORS_METADATA_KEY) == 0) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: no tensor may be called \"%s\"", path,
                          tensor->name);
  }
  if (tensor->rank < 0 || tensor->rank > SG_TENSOR_MAX_RANK) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: %s: expected 0 to %d dimensions, found %d", path,
                          tensor->name, SG_TENSOR_MAX_RANK, tensor->rank);
  }
  size_t bytes;
  char text[SG_TENSOR_TEXT_BYTES];
  sg__tensor_text(tensor, text);
  if (!sg__tensor_bytes(tensor, &bytes)) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: %s: the size of %s is negative or overflows",
                          path, tensor->name, text);
  }
  if (bytes != tensor->bytes) {
    return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                          "%s: %s: expected %zu bytes for %s, found %zu", path,
                          tensor->name, bytes, text, tensor->bytes);
  }
  return sg_status_ok();
}

static sg_status_t repeated(const char* path, const char* name) {
  return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                        "%s: expected different names, found \"%s\" twice",
                        path, name);
}

// Leaves the tensors ordered by name.
static sg_status_t check_contents(const char* path,
                                  const contents_t* contents) {
  for (size_t i = 0; i < contents->tensor_count; ++i) {
    SG_RETURN_IF_ERROR(check_tensor(path, contents->tensors[i]));
  }
  qsort(contents->tensors, contents->tensor_count, sizeof(sg_tensor_t*),
        compare_names);
  for (size_t i = 1; i < contents->tensor_count; ++i) {
    if (compare_names(&contents->tensors[i - 1], &contents->tensors[i]) == 0) {
      return repeated(path, contents->tensors[i]->name);
    }
  }
  for (size_t i = 0; i < contents->metadata_count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (strcmp(contents->metadata[i].key, contents->metadata[j].key) == 0) {
        return repeated(path, contents->metadata[i].key);
      }
    }
  }
  return sg_status_ok();
}

static void put_tensor(sg_json_writer_t* writer, const sg_tensor_t* tensor,
                       size_t begin) {
  sg_json_writer_key(writer, tensor->name);
  sg_json_writer_begin_object(writer);
  sg_json_writer_key(writer, "dtype");
  sg_json_writer_string(writer, sg_tensor_dtype_name(tensor->dtype));
  sg_json_writer_key(writer, "shape");
  sg_json_writer_begin_array(writer);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    sg_json_writer_int64(writer, tensor->shape[i]);
  }
  sg_json_writer_end_array(writer);
  sg_json_writer_key(writer, "data_offsets");
  sg_json_writer_begin_array(writer);
  sg_json_writer_uint64(writer, begin);
  sg_json_writer_uint64(writer, begin + tensor->bytes);
  sg_json_writer_end_array(writer);
  sg_json_writer_end_object(writer);
}

static sg_status_t put_header(const char* path, const contents_t* contents,
                              sg_json_writer_t* writer) {
  sg_json_writer_begin_object(writer);
  if (contents->metadata_count > 0) {
    sg_json_writer_key(writer, SG_SAFETENSORS_METADATA_KEY);
    sg_json_writer_begin_object(writer);
    for (size_t i = 0; i < contents->metadata_count; ++i) {
      sg_json_writer_key(writer, contents->metadata[i].key);
      sg_json_writer_string(writer, contents->metadata[i].value);
    }
    sg_json_writer_end_object(writer);
  }
  size_t begin = 0;
  for (size_t i = 0; i < contents->tensor_count; ++i) {
    const sg_tensor_t* tensor = contents->tensors[i];
    put_tensor(writer, tensor, begin);
    if (!sg_checked_add(begin, tensor->bytes, &begin)) {
      return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                            "%s: the size of all tensors overflows", path);
    }
  }
  sg_json_writer_end_object(writer);
  return sg_json_writer_finish(writer);
}

static bool put_bytes(FILE* file, const void* bytes, size_t count) {
  return count == 0 || fwrite(bytes, 1, count, file) == count;
}

// Writes length, header, the blanks that fill it up, and data.
static bool put_file(FILE* file, const char* header, size_t header_bytes,
                     const contents_t* contents) {
  static const char blanks[SG_SAFETENSORS_LENGTH_BYTES] = "        ";
  const size_t blank_count =
      (sizeof(blanks) - header_bytes % sizeof(blanks)) % sizeof(blanks);
  unsigned char length[SG_SAFETENSORS_LENGTH_BYTES];
  for (size_t i = 0; i < sizeof(length); ++i) {
    length[i] =
        (unsigned char)((uint64_t)(header_bytes + blank_count) >> 8 * i);
  }
  if (!put_bytes(file, length, sizeof(length)) ||
      !put_bytes(file, header, header_bytes) ||
      !put_bytes(file, blanks, blank_count)) {
    return false;
  }
  for (size_t i = 0; i < contents->tensor_count; ++i) {
    const sg_tensor_t* tensor = contents->tensors[i];
    if (!put_bytes(file, tensor->data, tensor->bytes)) return false;
  }
  return fflush(file) == 0;
}

static sg_status_t save(const char* path, const char* partial_path,
                        const char* header, size_t header_bytes,
                        const contents_t* contents) {
  FILE* file = fopen(partial_path, "wb");
  if (file == NULL) {
    return sg_status_make(SG_STATUS_IO, "%s: opening failed: %s", partial_path,
                          strerror(errno));
  }
  const bool is_written = put_file(file, header, header_bytes, contents);
  const int error = errno;
  const bool is_closed = fclose(file) == 0;
  if (!is_written || !is_closed) {
    remove(partial_path);
    return sg_status_make(SG_STATUS_IO, "%s: writing failed: %s", partial_path,
                          strerror(is_written ? errno : error));
  }
  if (rename(partial_path, path) != 0) {
    sg_status_t status = sg_status_make(SG_STATUS_IO, "%s: renaming failed: %s",
                                        path, strerror(errno));
    remove(partial_path);
    return status;
  }
  return sg_status_ok();
}

static sg_status_t save_beside(sg_allocator_t allocator, const char* path,
                               const char* header, size_t header_bytes,
                               const contents_t* contents) {
  static const char suffix[] = ".partial";
  const size_t bytes = strlen(path) + sizeof(suffix);
  void* partial_path;
  SG_RETURN_IF_ERROR(
      sg_allocate(allocator, "file name", bytes, 1, &partial_path));
  snprintf(partial_path, bytes, "%s%s", path, suffix);
  sg_status_t status = save(path, partial_path, header, header_bytes, contents);
  sg_release(allocator, partial_path);
  return status;
}

static sg_status_t check_header_bytes(const char* path, size_t header_bytes) {
  const size_t limit =
      SG_SAFETENSORS_MAX_HEADER_BYTES - SG_SAFETENSORS_LENGTH_BYTES;
  if (header_bytes <= limit) return sg_status_ok();
  return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                        "%s: header of %zu bytes, at most %d", path,
                        header_bytes, SG_SAFETENSORS_MAX_HEADER_BYTES);
}

// Writes to |file|, or where it is NULL to the file at |path|.
static sg_status_t write_contents(sg_allocator_t allocator, FILE* file,
                                  const char* path,
                                  const contents_t* contents) {
  SG_RETURN_IF_ERROR(check_contents(path, contents));
  qsort(contents->tensors, contents->tensor_count, sizeof(sg_tensor_t*),
        compare_layout);
  sg_json_writer_t writer;
  sg_json_writer_initialize_buffer(&writer, allocator, /*indent_spaces=*/0);
  sg_status_t status = put_header(path, contents, &writer);
  size_t header_bytes;
  const char* header = sg_json_writer_text(&writer, &header_bytes);
  if (sg_status_is_ok(status)) {
    // The text ends in a newline; the format fills headers up with blanks.
    --header_bytes;
    status = check_header_bytes(path, header_bytes);
  }
  if (sg_status_is_ok(status) && file == NULL) {
    status = save_beside(allocator, path, header, header_bytes, contents);
  } else if (sg_status_is_ok(status) &&
             !put_file(file, header, header_bytes, contents)) {
    status = sg_status_make(SG_STATUS_IO, "%s: writing failed: %s", path,
                            strerror(errno));
  }
  sg_json_writer_deinitialize(&writer);
  return status;
}

sg_status_t sg_safetensors_write_file(sg_allocator_t allocator, FILE* file,
                                      const char* name,
                                      const sg_tensor_t* tensors,
                                      size_t tensor_count,
                                      const sg_tensor_metadata_t* metadata,
                                      size_t metadata_count) {
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "tensor order", tensor_count,
                                 sizeof(sg_tensor_t*), &memory));
  contents_t contents = {.tensors = memory,
                         .tensor_count = tensor_count,
                         .metadata = metadata,
                         .metadata_count = metadata_count};
  for (size_t i = 0; i < tensor_count; ++i) contents.tensors[i] = &tensors[i];
  sg_status_t status = write_contents(allocator, file, name, &contents);
  sg_release(allocator, memory);
  return status;
}

sg_status_t sg_safetensors_write(sg_allocator_t allocator, const char* path,
                                 const sg_tensor_t* tensors,
                                 size_t tensor_count,
                                 const sg_tensor_metadata_t* metadata,
                                 size_t metadata_count) {
  return sg_safetensors_write_file(allocator, /*file=*/NULL, path, tensors,
                                   tensor_count, metadata, metadata_count);
}
