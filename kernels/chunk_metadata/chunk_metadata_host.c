// SPDX-License-Identifier: Apache-2.0

#include <stdbool.h>

#include "kernels/chunk_metadata/chunk_metadata.h"
#include "runtime/base/checked.h"
#include "runtime/hip/host_kernel.h"

typedef struct fault_t {
  sg_step_error_t code;
  int32_t sequence;
  int64_t value;
} fault_t;

static int64_t offset_at(const sg_chunk_metadata_params_t* p, int32_t n) {
  if (p->offset_bytes == 8) return ((const int64_t*)p->query_start_loc)[n];
  return ((const int32_t*)p->query_start_loc)[n];
}

// Offsets are not trusted: the difference of two may wrap.
static int64_t length_at(const sg_chunk_metadata_params_t* p, int32_t n) {
  return (int64_t)((uint64_t)offset_at(p, n + 1) - (uint64_t)offset_at(p, n));
}

static bool is_decode(const sg_chunk_metadata_params_t* p, int32_t n) {
  return length_at(p, n) == 1 && p->computed_lens[n] > 0;
}

static fault_t check_slot(const sg_chunk_metadata_params_t* p, int32_t n) {
  int32_t slot = p->slots[n];
  if (slot < 0 || slot == p->null_slot) return (fault_t){0};
  if (slot >= p->slot_count) {
    return (fault_t){SG_STEP_ERROR_SLOT_RANGE, n, slot};
  }
  // Stamps hold the generation of their last use, so they need no clearing.
  uint64_t generation = p->slot_stamps[0];
  if (p->slot_stamps[1 + slot] == generation) {
    return (fault_t){SG_STEP_ERROR_SLOT_DUPLICATE, n, slot};
  }
  p->slot_stamps[1 + slot] = generation;
  return (fault_t){0};
}

static fault_t check_sequence(const sg_chunk_metadata_params_t* p, int32_t n,
                              int32_t decode_count) {
  int64_t length = length_at(p, n);
  if (length < 0) return (fault_t){SG_STEP_ERROR_DECREASING_OFFSET, n, length};
  if (offset_at(p, n + 1) > p->token_capacity) {
    return (fault_t){SG_STEP_ERROR_TOKEN_COUNT, n, offset_at(p, n + 1)};
  }
  if (length == 0) return (fault_t){0};
  fault_t slot_fault = check_slot(p, n);
  if (slot_fault.code != SG_STEP_ERROR_NONE) return slot_fault;
  bool decode = n < decode_count;
  if ((p->content == SG_STEP_CONTENT_DECODES && !decode) ||
      (p->content == SG_STEP_CONTENT_PREFILLS && decode)) {
    return (fault_t){SG_STEP_ERROR_PHASE, n, length};
  }
  if (p->computed_lens[n] < 0) {
    return (fault_t){SG_STEP_ERROR_COMPUTED_LENGTH, n, p->computed_lens[n]};
  }
  return (fault_t){0};
}

static fault_t check_batch(const sg_chunk_metadata_params_t* p,
                           int32_t decode_count) {
  if (offset_at(p, 0) != 0) {
    return (fault_t){SG_STEP_ERROR_FIRST_OFFSET, 0, offset_at(p, 0)};
  }
  ++p->slot_stamps[0];
  for (int32_t n = 0; n < p->counts->sequence_count; ++n) {
    fault_t fault = check_sequence(p, n, decode_count);
    if (fault.code != SG_STEP_ERROR_NONE) return fault;
  }
  return (fault_t){0};
}

// Builds or checks the tables of one sequence and returns the chunks up to its
// end, or -1 when given tables are wrong in row |*out_row|.
static int64_t put_chunks(const sg_chunk_metadata_params_t* p, int32_t n,
                          int64_t first, bool has_chunks, int64_t* out_row) {
  int64_t chunks = has_chunks ? sg_ceil_div(length_at(p, n), p->chunk_size) : 0;
  *out_row = first;
  if (!p->tables_given) {
    p->chunk_offsets[n] = first;
    for (int64_t i = 0; i < chunks; ++i) {
      p->chunk_indices[2 * (first + i)] = n;
      p->chunk_indices[2 * (first + i) + 1] = (int32_t)i;
    }
    return first + chunks;
  }
  if (p->chunk_offsets[n] != first) return -1;
  for (int64_t i = 0; i < chunks; ++i) {
    *out_row = first + i;
    if (p->chunk_indices[2 * *out_row] != n ||
        p->chunk_indices[2 * *out_row + 1] != i) {
      return -1;
    }
  }
  return first + chunks;
}

static fault_t put_tables(const sg_chunk_metadata_params_t* p,
                          int32_t decode_count, int64_t* out_chunk_count) {
  int32_t sequence_count = p->counts->sequence_count;
  int64_t chunk_count = 0;
  *out_chunk_count = 0;
  for (int32_t n = 0; n < sequence_count; ++n) {
    int64_t row;
    chunk_count = put_chunks(p, n, chunk_count, n >= decode_count, &row);
    if (chunk_count < 0) return (fault_t){SG_STEP_ERROR_TABLES, n, row};
  }
  if (!p->tables_given) {
    p->chunk_offsets[sequence_count] = chunk_count;
  } else if (p->chunk_offsets[sequence_count] != chunk_count) {
    return (fault_t){SG_STEP_ERROR_TABLES, -1, chunk_count};
  }
  *out_chunk_count = chunk_count;
  return (fault_t){0};
}

static void copy_offsets(const sg_chunk_metadata_params_t* p) {
  if (p->query_start_loc_copy == NULL) return;
  for (int32_t n = 0; n <= p->counts->sequence_count; ++n) {
    p->query_start_loc_copy[n] = (int32_t)offset_at(p, n);
  }
}

static void set_fault(sg_batch_counts_t* counts, fault_t fault) {
  counts->decode_count = 0;
  counts->chunk_count = 0;
  counts->token_count = 0;
  counts->error_code = fault.code;
  counts->error_sequence = fault.sequence;
  counts->error_value = fault.value;
}

static void run_block(const void* params, const sg_host_block_t* block) {
  (void)block;
  const sg_chunk_metadata_params_t* p = params;
  sg_batch_counts_t* counts = p->counts;
  if (p->stands_alone) {
    *counts = (sg_batch_counts_t){.sequence_count = p->sequence_count == NULL
                                                        ? p->sequence_capacity
                                                        : *p->sequence_count};
  }
  if (counts->error_code != SG_STEP_ERROR_NONE) return;
  if (counts->sequence_count < 0 ||
      counts->sequence_count > p->sequence_capacity) {
    set_fault(counts, (fault_t){SG_STEP_ERROR_SEQUENCE_COUNT, -1,
                                counts->sequence_count});
    return;
  }
  int32_t decode_count = 0;
  while (decode_count < counts->sequence_count && is_decode(p, decode_count)) {
    ++decode_count;
  }
  fault_t fault = check_batch(p, decode_count);
  int64_t chunk_count = 0;
  if (fault.code == SG_STEP_ERROR_NONE) {
    fault = put_tables(p, decode_count, &chunk_count);
  }
  if (fault.code != SG_STEP_ERROR_NONE) {
    set_fault(counts, fault);
    return;
  }
  copy_offsets(p);
  counts->decode_count = decode_count;
  counts->chunk_count = (int32_t)chunk_count;
  counts->token_count = (int32_t)offset_at(p, counts->sequence_count);
  counts->error_sequence = -1;
}

const void* chunk_metadata_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "chunk_metadata",
      .params_bytes = sizeof(sg_chunk_metadata_params_t),
      .run_block = run_block,
  };
  return &kernel;
}
