// SPDX-License-Identifier: Apache-2.0
//
// Tensors in files of the safetensors format
// (https://github.com/huggingface/safetensors), read strictly and written
// deterministically. A file is
//
//   8 bytes   length of the header, little-endian
//   header    JSON that starts with '{':
//     { "__metadata__": { "seed": "7" },
//       "q": { "dtype": "BF16", "shape": [7, 2, 64],
//              "data_offsets": [0, 1792] } }
//   data      data_offsets count from its start; elements are little-endian,
//             the last dimension contiguous
//
// Besides what schemas/json_reader.h refuses, it is an error when
// - the header is longer than 16 MiB (the format allows 100 MB, which no file
//   of tensors needs) or does not fit the file;
// - a tensor has another key, an unknown dtype, or more than 8 dimensions;
// - its size is not that of its shape and dtype, or overflows;
// - tensors overlap, leave a hole between them, or do not end where the file
//   does;
// - metadata is not an object of strings.
// Shapes may have no dimension (a scalar), or one of 0 (no data).
//
// Errors of reading are SG_STATUS_IO, SG_STATUS_INVALID_DATA and
// SG_STATUS_OUT_OF_MEMORY; messages name the file, and the tensor by the JSON
// pointer of what is wrong with it:
//   case.safetensors: /q/data_offsets: expected 1792 bytes for BF16
//   [7, 2, 64], found 1790

#ifndef STEPGRAPH_SCHEMAS_SAFETENSORS_H_
#define STEPGRAPH_SCHEMAS_SAFETENSORS_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_tensor_dtype_t {
  SG_TENSOR_BOOL = 0,
  SG_TENSOR_U8,
  SG_TENSOR_I8,
  SG_TENSOR_F8_E5M2,
  SG_TENSOR_F8_E4M3,
  SG_TENSOR_U16,
  SG_TENSOR_I16,
  SG_TENSOR_F16,
  SG_TENSOR_BF16,
  SG_TENSOR_U32,
  SG_TENSOR_I32,
  SG_TENSOR_F32,
  SG_TENSOR_U64,
  SG_TENSOR_I64,
  SG_TENSOR_F64,
} sg_tensor_dtype_t;

enum { SG_TENSOR_DTYPE_COUNT = 15, SG_TENSOR_MAX_RANK = 8 };

// "F32", "BF16" and so on, as files spell them.
const char* sg_tensor_dtype_name(sg_tensor_dtype_t dtype);

// Bytes of one element.
size_t sg_tensor_dtype_bytes(sg_tensor_dtype_t dtype);

typedef struct sg_tensor_t {
  // UTF-8, and not "__metadata__".
  const char* name;
  sg_tensor_dtype_t dtype;
  // Dimensions in use; 0 for a scalar.
  int32_t rank;
  int64_t shape[SG_TENSOR_MAX_RANK];
  // |bytes| bytes. In a file of someone else's they may be aligned to nothing:
  // copy them out, or check.
  const void* data;
  size_t bytes;
} sg_tensor_t;

typedef struct sg_tensor_metadata_t {
  // UTF-8.
  const char* key;
  const char* value;
} sg_tensor_metadata_t;

// A plain value that owns its arrays and strings; not changed after it was
// read, so threads may share it.
typedef struct sg_safetensors_t {
  sg_allocator_t allocator;
  // In the order of their data.
  sg_tensor_t* tensors;
  size_t tensor_count;
  // In file order.
  sg_tensor_metadata_t* metadata;
  size_t metadata_count;
  // The file that the data is in; NULL when the caller has it.
  void* contents;
} sg_safetensors_t;

// Reads from |bytes| bytes at |contents|, which are not copied: they must
// outlive |out_file|. |source_name| stands for the file in messages.
SG_MUST_USE sg_status_t sg_safetensors_parse(sg_allocator_t allocator,
                                             const void* contents, size_t bytes,
                                             const char* source_name,
                                             sg_safetensors_t* out_file);

// Reads the file at |path| into memory. It is not mapped, since a file that
// someone shortens would then end the process.
SG_MUST_USE sg_status_t sg_safetensors_load(sg_allocator_t allocator,
                                            const char* path,
                                            sg_safetensors_t* out_file);

// The tensor called |name|, or NULL.
const sg_tensor_t* sg_safetensors_find(const sg_safetensors_t* file,
                                       const char* name);

// Accepts NULL, a zeroed file and one whose reading failed.
void sg_safetensors_deinitialize(sg_safetensors_t* file);

// Writes a file that reads back equal. Its bytes depend on the tensors but not
// on their order: the data is ordered by size of element, largest first, then
// by name, and begins at a multiple of 8, so that every tensor is aligned.
// Metadata is written in the order given. The file appears at |path| whole or
// not at all: it is written beside it, as |path| with ".partial" behind, and
// renamed. One writer a path at a time.
//
// SG_STATUS_INVALID_ARGUMENT for tensors that a reader would refuse: sizes that
// do not match, names that repeat. SG_STATUS_IO, SG_STATUS_OUT_OF_MEMORY, and
// SG_STATUS_OUT_OF_RANGE for a header beyond its limit.
SG_MUST_USE sg_status_t sg_safetensors_write(
    sg_allocator_t allocator, const char* path, const sg_tensor_t* tensors,
    size_t tensor_count, const sg_tensor_metadata_t* metadata,
    size_t metadata_count);

// As sg_safetensors_write, to |file|, which the caller has opened for writing
// and closes. |name| stands for it in messages.
SG_MUST_USE sg_status_t sg_safetensors_write_file(
    sg_allocator_t allocator, FILE* file, const char* name,
    const sg_tensor_t* tensors, size_t tensor_count,
    const sg_tensor_metadata_t* metadata, size_t metadata_count);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_SAFETENSORS_H_
