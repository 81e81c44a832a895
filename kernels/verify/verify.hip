// SPDX-License-Identifier: Apache-2.0
//
// The verify kernels on a GPU: one block a slot or row, in words of 16 bytes.

#include "kernels/common/device.h"
#include "kernels/verify/params.h"

enum { THREADS = 256 };

// A pool slot and the shadow slot that stands in for it.
typedef struct slot_pair_t {
  unsigned char* pool;
  unsigned char* shadow;
  int32_t slot;
} slot_pair_t;

// False where sequence |n| of |step| has no slot to look at. Every thread
// finds the same.
SG_DEVICE bool find_pair(const sg_verify_slots_params_t* p, uint64_t step,
                         int64_t n, slot_pair_t* out_pair) {
  const unsigned char* entry =
      p->ring + (step % (uint64_t)p->ring_depth) * p->layout.entry_bytes;
  const sg_batch_entry_header_t* header = (const sg_batch_entry_header_t*)entry;
  if (sg_system_load(&header->step) != step ||
      n >= sg_system_peek(&header->sequence_count)) {
    return false;
  }
  const int32_t slot = sg_system_peek(
      (const int32_t*)(entry + p->layout.source_slots_offset) + n);
  const int32_t shadow_slot =
      sg_system_peek((const int32_t*)(entry + p->layout.slots_offset) + n);
  if (slot < 0 || slot >= p->slot_count || slot == p->null_slot ||
      shadow_slot < 0 || shadow_slot >= p->shadow_slot_count) {
    return false;
  }
  out_pair->pool = p->pool + slot * p->pool_stride_bytes;
  out_pair->shadow = p->shadow + shadow_slot * p->shadow_stride_bytes;
  out_pair->slot = slot;
  return true;
}

// Blocks of one launch may get here at the same time.
SG_DEVICE void report(sg_mismatch_record_t* record, uint64_t step,
                      int32_t buffer, int32_t row) {
  if (sg_system_add(&record->mismatched_rows, 1) != 0) return;
  record->buffer = buffer;
  record->row = row;
  sg_system_store(&record->step, step);
}

typedef struct words_t {
  uint64_t low;
  uint64_t high;
} __attribute__((aligned(16))) words_t;

SG_DEVICE void copy_bytes(unsigned char* target, const unsigned char* source,
                          int64_t bytes) {
  const int64_t words = bytes / 16;
  for (int64_t i = sg_thread(); i < words; i += THREADS) {
    ((words_t*)target)[i] = ((const words_t*)source)[i];
  }
  for (int64_t i = words * 16 + sg_thread(); i < bytes; i += THREADS) {
    target[i] = source[i];
  }
}

// Whether the block finds a difference; known to thread 0.
SG_DEVICE bool differ(const unsigned char* a, const unsigned char* b,
                      int64_t bytes) {
  SG_SHARED uint64_t scratch[SG_BLOCK_WAVES_MAX];
  const int64_t words = bytes / 16;
  uint64_t same = 1;
  for (int64_t i = sg_thread(); i < words; i += THREADS) {
    const words_t x = ((const words_t*)a)[i];
    const words_t y = ((const words_t*)b)[i];
    if (((x.low ^ y.low) | (x.high ^ y.high)) != 0) same = 0;
  }
  for (int64_t i = words * 16 + sg_thread(); i < bytes; i += THREADS) {
    if (a[i] != b[i]) same = 0;
  }
  return sg_block_min(same, scratch) == 0;
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 1)
    slot_snapshot(sg_verify_slots_params_t p) {
  slot_pair_t pair;
  if (!find_pair(&p, p.cursor->next_step + 1, sg_block(), &pair)) return;
  copy_bytes(pair.shadow, pair.pool, p.slot_bytes);
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 1)
    compare_slots(sg_verify_slots_params_t p) {
  const uint64_t step = p.cursor->current_step;
  slot_pair_t pair;
  if (!find_pair(&p, step, sg_block(), &pair)) return;
  if (differ(pair.shadow, pair.pool, p.slot_bytes) && sg_thread() == 0) {
    report(p.mismatches, step, p.buffer, pair.slot);
  }
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 1)
    compare_rows(sg_verify_rows_params_t p) {
  const int64_t row = sg_block();
  if (row >= p.counts->token_count) return;
  const int64_t offset = row * p.stride_bytes;
  if (differ(p.live + offset, p.shadow + offset, p.row_bytes) &&
      sg_thread() == 0) {
    report(p.mismatches, p.cursor->current_step, p.buffer, (int32_t)row);
  }
}

extern "C" const void* slot_snapshot_handle(void) {
  return sg_kernel_handle(slot_snapshot);
}

extern "C" const void* compare_slots_handle(void) {
  return sg_kernel_handle(compare_slots);
}

extern "C" const void* compare_rows_handle(void) {
  return sg_kernel_handle(compare_rows);
}
