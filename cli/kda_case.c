// SPDX-License-Identifier: Apache-2.0

#include "cli/kda_case.h"

#include <string.h>

// Element |index| of a tensor of I32 or I64, which is aligned to nothing.
static int64_t integer_at(const sg_tensor_t* tensor, int32_t index) {
  const unsigned char* data = tensor->data;
  if (tensor->dtype == SG_TENSOR_I64) {
    int64_t value;
    memcpy(&value, data + (size_t)index * sizeof(value), sizeof(value));
    return value;
  }
  int32_t value;
  memcpy(&value, data + (size_t)index * sizeof(value), sizeof(value));
  return value;
}

static sg_status_t allocate_array(int32_t count, int32_t** out_array) {
  void* memory;
  SG_RETURN_IF_ERROR(sg_allocate(sg_allocator_system(), "sequences",
                                 (size_t)count, sizeof(int32_t), &memory));
  *out_array = memory;
  return sg_status_ok();
}

static sg_status_t read_starts(sg_kda_case_t* c) {
  const sg_tensor_t* offsets = c->tensors[SG_KDA_CASE_QUERY_START_LOC];
  SG_RETURN_IF_ERROR(allocate_array(c->sequence_count + 1, &c->starts));
  int64_t previous = 0;
  for (int32_t n = 0; n <= c->sequence_count; ++n) {
    const int64_t start = integer_at(offsets, n);
    if (n == 0 && start != 0) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "%.160s: query_start_loc: expected 0 first, found "
                            "%lld",
                            c->path, (long long)start);
    }
    if (start < previous) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "%.160s: query_start_loc: expected at least %lld "
                            "at %d, found %lld",
                            c->path, (long long)previous, n, (long long)start);
    }
    const bool is_last = n == c->sequence_count;
    if (start > c->token_count || (is_last && start != c->token_count)) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "%.160s: query_start_loc: expected %s%d tokens, as "
                            "q has, at %d, found %lld",
                            c->path, is_last ? "" : "at most ", c->token_count,
                            n, (long long)start);
    }
    c->starts[n] = (int32_t)start;
    previous = start;
  }
  return sg_status_ok();
}

// Which past a sequence needs and does not have, or NULL.
static const char* missing_past(const sg_kda_case_t* c) {
  if (c->tensors[SG_KDA_CASE_INITIAL_STATE] == NULL) return "initial_state";
  if (c->has_conv && c->tensors[SG_KDA_CASE_CONV_CACHE] == NULL) {
    return "conv_cache";
  }
  return NULL;
}

static sg_status_t read_computed_lens(sg_kda_case_t* c) {
  const sg_tensor_t* lens = c->tensors[SG_KDA_CASE_COMPUTED_LENS];
  const bool has_past = c->tensors[SG_KDA_CASE_INITIAL_STATE] != NULL ||
                        c->tensors[SG_KDA_CASE_CONV_CACHE] != NULL;
  SG_RETURN_IF_ERROR(allocate_array(c->sequence_count, &c->computed_lens));
  for (int32_t n = 0; n < c->sequence_count; ++n) {
    const int64_t length = lens != NULL ? integer_at(lens, n) : has_past;
    if (length < 0 || length > INT32_MAX) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "%.160s: computed_lens: expected 0 to %d at %d, "
                            "found %lld",
                            c->path, INT32_MAX, n, (long long)length);
    }
    if (length > 0 && missing_past(c) != NULL) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "%.160s: %s: expected this tensor, since sequence "
                            "%d goes on, found none",
                            c->path, missing_past(c), n);
    }
    c->computed_lens[n] = (int32_t)length;
  }
  return sg_status_ok();
}

static sg_status_t check_slot(const sg_kda_case_t* c, int32_t limit, int32_t n,
                              int64_t slot) {
  if (slot >= limit || slot < INT32_MIN) {
    return sg_status_make(SG_STATUS_INVALID_DATA,
                          "%.160s: slots: expected a slot below %d at %d, "
                          "found %lld",
                          c->path, limit, n, (long long)slot);
  }
  return sg_status_ok();
}

// Each sequence has a past of its own in the file, so it has a slot of its own,
// even if it is empty. |owners| has as many entries as there may be slots.
static sg_status_t read_slots(sg_kda_case_t* c, int32_t limit,
                              int32_t* owners) {
  const sg_tensor_t* slots = c->tensors[SG_KDA_CASE_SLOTS];
  SG_RETURN_IF_ERROR(allocate_array(c->sequence_count, &c->slots));
  for (int32_t n = 0; n < c->sequence_count; ++n) {
    const int64_t slot = slots != NULL ? integer_at(slots, n) : n;
    SG_RETURN_IF_ERROR(check_slot(c, limit, n, slot));
    c->slots[n] = (int32_t)slot;
    if (slot < 0) continue;
    if (owners[slot] != 0) {
      return sg_status_make(SG_STATUS_INVALID_DATA,
                            "%.160s: slots: expected different slots, found "
                            "%lld at %d and %d",
                            c->path, (long long)slot, owners[slot] - 1, n);
    }
    owners[slot] = n + 1;
    if (slot >= c->slot_count) c->slot_count = (int32_t)slot + 1;
  }
  return sg_status_ok();
}

static sg_status_t read_case(const sg_kda_geometry_t* geometry,
                             int32_t slot_count, sg_kda_case_t* c) {
  SG_RETURN_IF_ERROR(
      sg_safetensors_load(sg_allocator_system(), c->path, &c->file));
  SG_RETURN_IF_ERROR(sg__kda_case_find_tensors(geometry, c));
  SG_RETURN_IF_ERROR(read_starts(c));
  SG_RETURN_IF_ERROR(read_computed_lens(c));
  const int32_t limit = slot_count > 0 ? slot_count : SG_KDA_CASE_MAX_SLOTS;
  c->slot_count = slot_count > 0 ? slot_count : 1;
  int32_t* owners;
  SG_RETURN_IF_ERROR(allocate_array(limit, &owners));
  sg_status_t status = read_slots(c, limit, owners);
  sg_release(sg_allocator_system(), owners);
  return status;
}

sg_status_t sg_kda_case_load(const char* path,
                             const sg_kda_geometry_t* geometry,
                             int32_t slot_count, sg_kda_case_t* out_case) {
  *out_case = (sg_kda_case_t){.path = path};
  sg_status_t status = read_case(geometry, slot_count, out_case);
  if (!sg_status_is_ok(status)) sg_kda_case_deinitialize(out_case);
  return status;
}

void sg_kda_case_deinitialize(sg_kda_case_t* kda_case) {
  if (kda_case == NULL) return;
  const sg_allocator_t allocator = sg_allocator_system();
  sg_release(allocator, kda_case->starts);
  sg_release(allocator, kda_case->computed_lens);
  sg_release(allocator, kda_case->slots);
  sg_safetensors_deinitialize(&kda_case->file);
  *kda_case = (sg_kda_case_t){0};
}
