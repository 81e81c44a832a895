// SPDX-License-Identifier: Apache-2.0

#include <stdbool.h>
#include <string.h>

#include "kernels/verify/verify.h"
#include "runtime/base/shared_word.h"
#include "runtime/hip/host_kernel.h"

// A pool slot and the shadow slot that stands in for it.
typedef struct slot_pair_t {
  unsigned char* pool;
  unsigned char* shadow;
  int32_t slot;
} slot_pair_t;

static int32_t read_table(const unsigned char* entry, uint32_t offset,
                          uint32_t index) {
  return ((const int32_t*)(const void*)(entry + offset))[index];
}

// False where sequence |n| of |step| has no slot to look at.
static bool find_pair(const sg_verify_slots_params_t* p, uint64_t step,
                      uint32_t n, slot_pair_t* out_pair) {
  const unsigned char* entry =
      p->ring + (step % (uint64_t)p->ring_depth) * p->layout.entry_bytes;
  const sg_batch_entry_header_t* header = (const void*)entry;
  if (sg_load_acquire(&header->step) != step ||
      (int64_t)n >= header->sequence_count) {
    return false;
  }
  int32_t slot = read_table(entry, p->layout.source_slots_offset, n);
  int32_t shadow_slot = read_table(entry, p->layout.slots_offset, n);
  if (slot < 0 || slot >= p->slot_count || slot == p->null_slot ||
      shadow_slot < 0 || shadow_slot >= p->shadow_slot_count) {
    return false;
  }
  *out_pair = (slot_pair_t){
      .pool = p->pool + slot * p->pool_stride_bytes,
      .shadow = p->shadow + shadow_slot * p->shadow_stride_bytes,
      .slot = slot,
  };
  return true;
}

// Blocks of one launch may get here at the same time.
static void report(sg_mismatch_record_t* record, uint64_t step, int32_t buffer,
                   int32_t row) {
  uint64_t before =
      __atomic_fetch_add(&record->mismatched_rows, 1, __ATOMIC_RELAXED);
  if (before != 0) return;
  record->buffer = buffer;
  record->row = row;
  sg_store_release(&record->step, step);
}

static void run_snapshot(const void* params, const sg_host_block_t* block) {
  const sg_verify_slots_params_t* p = params;
  slot_pair_t pair;
  if (!find_pair(p, p->cursor->next_step + 1, block->index, &pair)) return;
  memcpy(pair.shadow, pair.pool, (size_t)p->slot_bytes);
}

static void run_compare_slots(const void* params,
                              const sg_host_block_t* block) {
  const sg_verify_slots_params_t* p = params;
  uint64_t step = p->cursor->current_step;
  slot_pair_t pair;
  if (!find_pair(p, step, block->index, &pair)) return;
  if (memcmp(pair.shadow, pair.pool, (size_t)p->slot_bytes) == 0) return;
  report(p->mismatches, step, p->buffer, pair.slot);
}

static void run_compare_rows(const void* params, const sg_host_block_t* block) {
  const sg_verify_rows_params_t* p = params;
  if ((int64_t)block->index >= p->counts->token_count) return;
  int64_t offset = block->index * p->stride_bytes;
  if (memcmp(p->live + offset, p->shadow + offset, (size_t)p->row_bytes) == 0) {
    return;
  }
  report(p->mismatches, p->cursor->current_step, p->buffer,
         (int32_t)block->index);
}

const void* slot_snapshot_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "slot_snapshot",
      .params_bytes = sizeof(sg_verify_slots_params_t),
      .run_block = run_snapshot,
  };
  return &kernel;
}

const void* compare_slots_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "compare_slots",
      .params_bytes = sizeof(sg_verify_slots_params_t),
      .run_block = run_compare_slots,
  };
  return &kernel;
}

const void* compare_rows_handle(void) {
  static const sg_host_kernel_t kernel = {
      .name = "compare_rows",
      .params_bytes = sizeof(sg_verify_rows_params_t),
      .run_block = run_compare_rows,
  };
  return &kernel;
}
