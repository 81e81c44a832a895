// SPDX-License-Identifier: Apache-2.0

#include "schemas/batches.h"

#include <inttypes.h>
#include <stdlib.h>

#include "schemas/json_reader.h"
#include "schemas/json_writer.h"
#include "schemas/line_reader.h"

enum { MAX_SEQUENCES = 1 << 20 };

// Slot and sequence of one non-empty sequence; ordered by slot, then sequence.
typedef struct slot_use_t {
  int32_t slot;
  int32_t sequence;
} slot_use_t;

struct sg_batch_reader_t {
  sg_allocator_t allocator;
  sg_line_reader_t lines;
  // One block: |capacity| slot uses, then three times as many numbers.
  slot_use_t* slot_uses;
  size_t capacity;
  int32_t* query_lens;
  int32_t* computed_lens;
  int32_t* slots;
};

static sg_status_t create(sg_allocator_t allocator,
                          sg_batch_reader_t** out_reader) {
  void* memory;
  *out_reader = NULL;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "batch reader", 1,
                                 sizeof(sg_batch_reader_t), &memory));
  *out_reader = memory;
  (*out_reader)->allocator = allocator;
  return sg_status_ok();
}

sg_status_t sg_batch_reader_open(sg_allocator_t allocator, const char* path,
                                 sg_batch_reader_t** out_reader) {
  SG_RETURN_IF_ERROR(create(allocator, out_reader));
  sg_status_t status =
      sg_line_reader_open(allocator, path, &(*out_reader)->lines);
  if (!sg_status_is_ok(status)) {
    sg_batch_reader_destroy(*out_reader);
    *out_reader = NULL;
  }
  return status;
}

sg_status_t sg_batch_reader_open_text(sg_allocator_t allocator,
                                      const char* text, size_t bytes,
                                      const char* source_name,
                                      sg_batch_reader_t** out_reader) {
  SG_RETURN_IF_ERROR(create(allocator, out_reader));
  sg_status_t status = sg_line_reader_open_text(
      allocator, text, bytes, source_name, &(*out_reader)->lines);
  if (!sg_status_is_ok(status)) {
    sg_batch_reader_destroy(*out_reader);
    *out_reader = NULL;
  }
  return status;
}

static sg_status_t reserve(sg_batch_reader_t* reader, size_t count) {
  if (reader->slot_uses != NULL && count <= reader->capacity) {
    return sg_status_ok();
  }
  size_t capacity = 64;
  while (capacity < count) capacity *= 2;
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(reader->allocator, "batch", capacity,
                                 sizeof(slot_use_t) + 3 * sizeof(int32_t),
                                 &memory));
  sg_release(reader->allocator, reader->slot_uses);
  reader->capacity = capacity;
  reader->slot_uses = memory;
  reader->query_lens = (int32_t*)(reader->slot_uses + capacity);
  reader->computed_lens = reader->query_lens + capacity;
  reader->slots = reader->computed_lens + capacity;
  return sg_status_ok();
}

static sg_status_t read_array(const sg_json_node_t* array, size_t count,
                              int32_t min, int32_t* values) {
  for (size_t i = 0; i < count; ++i) {
    const sg_json_node_t element = sg_json_element(array, i);
    int64_t value;
    SG_RETURN_IF_ERROR(sg_json_read_int64(&element, min, INT32_MAX, &value));
    values[i] = (int32_t)value;
  }
  return sg_status_ok();
}

static sg_status_t sum_query_lens(const sg_json_node_t* array,
                                  const sg_batch_reader_t* reader, size_t count,
                                  int32_t* out_sum) {
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += reader->query_lens[i];
  if (sum > INT32_MAX) {
    return sg_json_error(
        array, "expected a sum of at most %" PRId32 ", found %" PRId64,
        INT32_MAX, sum);
  }
  *out_sum = (int32_t)sum;
  return sg_status_ok();
}

static int compare_slot_uses(const void* left, const void* right) {
  const slot_use_t* a = left;
  const slot_use_t* b = right;
  if (a->slot != b->slot) return a->slot < b->slot ? -1 : 1;
  return a->sequence < b->sequence ? -1 : 1;
}

static sg_status_t check_slots(const sg_json_node_t* array,
                               sg_batch_reader_t* reader, size_t count) {
  size_t use_count = 0;
  for (size_t i = 0; i < count; ++i) {
    if (reader->query_lens[i] == 0 || reader->slots[i] < 0) continue;
    reader->slot_uses[use_count++] =
        (slot_use_t){.slot = reader->slots[i], .sequence = (int32_t)i};
  }
  qsort(reader->slot_uses, use_count, sizeof(slot_use_t), compare_slot_uses);
  for (size_t i = 1; i < use_count; ++i) {
    const slot_use_t first = reader->slot_uses[i - 1];
    const slot_use_t second = reader->slot_uses[i];
    if (first.slot != second.slot) continue;
    const sg_json_node_t element =
        sg_json_element(array, (size_t)second.sequence);
    return sg_json_error(&element,
                         "slot %" PRId32 " is also that of sequence %" PRId32,
                         second.slot, first.sequence);
  }
  return sg_status_ok();
}

static sg_status_t read_batch(const sg_json_node_t* root,
                              sg_batch_reader_t* reader,
                              sg_batch_line_t* batch) {
  static const char* const keys[] = {"query_lens", "computed_lens", "slots"};
  SG_RETURN_IF_ERROR(sg_json_check_object(root, keys, 3));
  sg_json_node_t arrays[3];
  size_t counts[3];
  for (int32_t i = 0; i < 3; ++i) {
    SG_RETURN_IF_ERROR(
        sg_json_get(root, keys[i], SG_JSON_REQUIRED, &arrays[i]));
    SG_RETURN_IF_ERROR(
        sg_json_read_count(&arrays[i], MAX_SEQUENCES, &counts[i]));
    if (counts[i] != counts[0]) {
      return sg_json_error(&arrays[i],
                           "expected as many elements as query_lens has, %zu, "
                           "found %zu",
                           counts[0], counts[i]);
    }
  }
  const size_t count = counts[0];
  SG_RETURN_IF_ERROR(reserve(reader, count));
  SG_RETURN_IF_ERROR(read_array(&arrays[0], count, 0, reader->query_lens));
  SG_RETURN_IF_ERROR(read_array(&arrays[1], count, 0, reader->computed_lens));
  SG_RETURN_IF_ERROR(read_array(&arrays[2], count, -1, reader->slots));
  SG_RETURN_IF_ERROR(
      sum_query_lens(&arrays[0], reader, count, &batch->token_count));
  SG_RETURN_IF_ERROR(check_slots(&arrays[2], reader, count));
  batch->sequence_count = (int32_t)count;
  batch->query_lens = reader->query_lens;
  batch->computed_lens = reader->computed_lens;
  batch->slots = reader->slots;
  return sg_status_ok();
}

sg_status_t sg_batch_reader_next(sg_batch_reader_t* reader,
                                 sg_batch_line_t* out_batch, bool* out_end) {
  *out_batch = (sg_batch_line_t){0};
  const char* line;
  size_t bytes;
  SG_RETURN_IF_ERROR(
      sg_line_reader_next(&reader->lines, &line, &bytes, out_end));
  if (*out_end) return sg_status_ok();
  const sg_json_source_t source = {.name = reader->lines.name,
                                   .line = reader->lines.line_number};
  sg_json_node_t root;
  SG_RETURN_IF_ERROR(sg_json_parse(&source, line, bytes, &root));
  sg_batch_line_t batch = {0};
  sg_status_t status = read_batch(&root, reader, &batch);
  sg_json_release(&root);
  if (sg_status_is_ok(status)) *out_batch = batch;
  return status;
}

int64_t sg_batch_reader_line(const sg_batch_reader_t* reader) {
  return reader->lines.line_number;
}

void sg_batch_reader_destroy(sg_batch_reader_t* reader) {
  if (reader == NULL) return;
  sg_line_reader_deinitialize(&reader->lines);
  sg_release(reader->allocator, reader->slot_uses);
  sg_release(reader->allocator, reader);
}

static void write_array(sg_json_writer_t* writer, const char* key,
                        const int32_t* values, int32_t count) {
  sg_json_writer_key(writer, key);
  sg_json_writer_begin_array(writer);
  for (int32_t i = 0; i < count; ++i) sg_json_writer_int64(writer, values[i]);
  sg_json_writer_end_array(writer);
}

sg_status_t sg_batch_write_line(const sg_batch_line_t* batch, FILE* file) {
  const int32_t count = batch->sequence_count;
  if (count < 0 || count > MAX_SEQUENCES) {
    return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                          "batch line: expected 0 to %d sequences, found %d",
                          MAX_SEQUENCES, (int)count);
  }
  sg_json_writer_t writer;
  sg_json_writer_initialize_file(&writer, file, /*indent_spaces=*/0);
  sg_json_writer_begin_object(&writer);
  write_array(&writer, "query_lens", batch->query_lens, count);
  write_array(&writer, "computed_lens", batch->computed_lens, count);
  write_array(&writer, "slots", batch->slots, count);
  sg_json_writer_end_object(&writer);
  sg_status_t status = sg_json_writer_finish(&writer);
  sg_json_writer_deinitialize(&writer);
  return status;
}
