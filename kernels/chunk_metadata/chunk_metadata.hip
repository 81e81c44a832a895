// SPDX-License-Identifier: Apache-2.0
//
// chunk_metadata on a GPU: one block, threads side by side over sequences and
// over table rows. Every step finds what a walk from the first sequence to the
// last would: faults are compared by sequence, sums are of integers.

#include "kernels/chunk_metadata/params.h"
#include "kernels/common/device.h"

enum { THREADS = SG_BLOCK_THREADS_MAX };

typedef struct fault_t {
  int32_t code;
  int64_t value;
} fault_t;

static constexpr uint64_t NOTHING = ~(uint64_t)0;

// Words for the reductions of one step. Two, used in turn, because a word is
// free again only after the next barrier.
typedef struct scratch_t {
  uint64_t word[2][SG_BLOCK_WAVES_MAX];
} scratch_t;

SG_DEVICE int64_t offset_at(const sg_chunk_metadata_params_t* p, int32_t n) {
  if (p->offset_bytes == 8) return ((const int64_t*)p->query_start_loc)[n];
  return ((const int32_t*)p->query_start_loc)[n];
}

// Offsets are not trusted: the difference of two may wrap.
SG_DEVICE int64_t length_at(const sg_chunk_metadata_params_t* p, int32_t n) {
  return (int64_t)((uint64_t)offset_at(p, n + 1) - (uint64_t)offset_at(p, n));
}

SG_DEVICE bool is_decode(const sg_chunk_metadata_params_t* p, int32_t n) {
  return length_at(p, n) == 1 && p->computed_lens[n] > 0;
}

SG_DEVICE int64_t chunks_of(const sg_chunk_metadata_params_t* p, int32_t n,
                            int32_t decode_count) {
  if (n < decode_count) return 0;
  return (length_at(p, n) + p->chunk_size - 1) / p->chunk_size;
}

// Length of the longest prefix of decodes.
SG_DEVICE int32_t count_decodes(const sg_chunk_metadata_params_t* p,
                                int32_t sequence_count, scratch_t* scratch) {
  uint64_t first = (uint64_t)sequence_count;
  for (int32_t n = sg_thread(); n < sequence_count; n += THREADS) {
    if (is_decode(p, n)) continue;
    first = (uint64_t)n;
    break;
  }
  return (int32_t)sg_block_min(first, scratch->word[0]);
}

// The stamp that a sequence has to look at, or NULL for none.
SG_DEVICE uint64_t* stamp_of(const sg_chunk_metadata_params_t* p, int32_t n) {
  const int32_t slot = p->slots[n];
  if (length_at(p, n) <= 0 || slot < 0 || slot == p->null_slot ||
      slot >= p->slot_count) {
    return nullptr;
  }
  return &p->slot_stamps[1 + slot];
}

// The stamp of sequence |n|: the lower the sequence, the greater. Stamps are 0
// between steps.
SG_DEVICE uint64_t stamp_value(int32_t n) {
  return (uint64_t)0xffffffffu - (uint32_t)n;
}

SG_DEVICE fault_t check_slot(const sg_chunk_metadata_params_t* p, int32_t n) {
  const int32_t slot = p->slots[n];
  if (slot >= p->slot_count && slot != p->null_slot) {
    return fault_t{SG_STEP_ERROR_SLOT_RANGE, slot};
  }
  uint64_t* stamp = stamp_of(p, n);
  // A maximum with 0 reads what the atomics of other threads have made.
  if (stamp != nullptr && sg_atomic_max(stamp, 0) != stamp_value(n)) {
    return fault_t{SG_STEP_ERROR_SLOT_DUPLICATE, slot};
  }
  return fault_t{SG_STEP_ERROR_NONE, 0};
}

SG_DEVICE fault_t check_sequence(const sg_chunk_metadata_params_t* p, int32_t n,
                                 int32_t decode_count) {
  const int64_t length = length_at(p, n);
  if (length < 0) return fault_t{SG_STEP_ERROR_DECREASING_OFFSET, length};
  if (offset_at(p, n + 1) > p->token_capacity) {
    return fault_t{SG_STEP_ERROR_TOKEN_COUNT, offset_at(p, n + 1)};
  }
  if (length == 0) return fault_t{SG_STEP_ERROR_NONE, 0};
  const fault_t slot_fault = check_slot(p, n);
  if (slot_fault.code != SG_STEP_ERROR_NONE) return slot_fault;
  const bool decode = n < decode_count;
  if ((p->content == SG_STEP_CONTENT_DECODES && !decode) ||
      (p->content == SG_STEP_CONTENT_PREFILLS && decode)) {
    return fault_t{SG_STEP_ERROR_PHASE, length};
  }
  if (p->computed_lens[n] < 0) {
    return fault_t{SG_STEP_ERROR_COMPUTED_LENGTH, p->computed_lens[n]};
  }
  return fault_t{SG_STEP_ERROR_NONE, 0};
}

SG_DEVICE void set_fault(sg_batch_counts_t* counts, fault_t fault,
                         int32_t sequence) {
  counts->decode_count = 0;
  counts->chunk_count = 0;
  counts->token_count = 0;
  counts->error_code = fault.code;
  counts->error_sequence = sequence;
  counts->error_value = fault.value;
}

// Checks all sequences and sets the fault of the first bad one, if there is
// any. A sequence before it is good, so what a bad one did to the stamps does
// not matter.
SG_DEVICE bool check_batch(const sg_chunk_metadata_params_t* p,
                           int32_t sequence_count, int32_t decode_count,
                           scratch_t* scratch) {
  if (offset_at(p, 0) != 0) {
    if (sg_thread() == 0) {
      set_fault(p->counts, fault_t{SG_STEP_ERROR_FIRST_OFFSET, offset_at(p, 0)},
                0);
    }
    return false;
  }
  for (int32_t n = sg_thread(); n < sequence_count; n += THREADS) {
    uint64_t* stamp = stamp_of(p, n);
    if (stamp != nullptr) sg_atomic_max(stamp, stamp_value(n));
  }
  sg_block_barrier();
  uint64_t own = NOTHING;
  for (int32_t n = sg_thread(); n < sequence_count; n += THREADS) {
    if (check_sequence(p, n, decode_count).code == SG_STEP_ERROR_NONE) continue;
    own = (uint64_t)n;
    break;
  }
  const uint64_t first = sg_block_min(own, scratch->word[1]);
  if (first != NOTHING && own == first) {
    set_fault(p->counts, check_sequence(p, (int32_t)first, decode_count),
              (int32_t)first);
  }
  sg_block_barrier();
  for (int32_t n = sg_thread(); n < sequence_count; n += THREADS) {
    uint64_t* stamp = stamp_of(p, n);
    if (stamp != nullptr) *stamp = 0;
  }
  return first == NOTHING;
}

// Running sums of the chunks. Writes them to chunk_offsets, or compares with
// what is there; |out_key| is then that of the first difference, sequence and
// table row, or NOTHING.
SG_DEVICE int64_t put_offsets(const sg_chunk_metadata_params_t* p,
                              int32_t sequence_count, int32_t decode_count,
                              scratch_t* scratch, uint64_t* out_key) {
  int64_t before = 0;
  uint64_t key = NOTHING;
  for (int32_t base = 0, turn = 0; base < sequence_count;
       base += THREADS, turn ^= 1) {
    const int32_t n = base + sg_thread();
    const bool real = n < sequence_count;
    uint64_t total;
    const int64_t chunks = real ? chunks_of(p, n, decode_count) : 0;
    const int64_t first =
        before +
        (int64_t)sg_block_scan((uint64_t)chunks, scratch->word[turn], &total);
    before += (int64_t)total;
    if (!real) continue;
    if (!p->tables_given) {
      p->chunk_offsets[n] = first;
    } else if (p->chunk_offsets[n] != first && key == NOTHING) {
      key = (uint64_t)n << 32 | (uint64_t)first;
    }
  }
  if (!p->tables_given && sg_thread() == 0) {
    p->chunk_offsets[sequence_count] = before;
  }
  sg_block_barrier();
  *out_key = sg_block_min(key, scratch->word[0]);
  return before;
}

// The sequence below |count| that table row |row| belongs to: the last whose
// first chunk is not behind it.
SG_DEVICE int32_t sequence_of_row(const sg_chunk_metadata_params_t* p,
                                  int32_t count, int64_t row) {
  int32_t low = 0;
  int32_t high = count - 1;
  while (low < high) {
    const int32_t middle = low + (high - low + 1) / 2;
    if (p->chunk_offsets[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Rows 0 to |row_count| - 1, all of sequences below |count|, whose offsets are
// right. Writes them or compares them, as put_offsets.
SG_DEVICE uint64_t put_rows(const sg_chunk_metadata_params_t* p, int32_t count,
                            int64_t row_count, scratch_t* scratch) {
  uint64_t key = NOTHING;
  for (int64_t row = sg_thread(); row < row_count; row += THREADS) {
    const int32_t n = sequence_of_row(p, count, row);
    const int32_t chunk = (int32_t)(row - p->chunk_offsets[n]);
    int32_t* pair = &p->chunk_indices[2 * row];
    if (!p->tables_given) {
      pair[0] = n;
      pair[1] = chunk;
    } else if ((pair[0] != n || pair[1] != chunk) && key == NOTHING) {
      key = (uint64_t)n << 32 | (uint64_t)row;
    }
  }
  return sg_block_min(key, scratch->word[1]);
}

// Builds or checks the tables; false with the fault set where they are wrong.
SG_DEVICE bool put_tables(const sg_chunk_metadata_params_t* p,
                          int32_t sequence_count, int32_t decode_count,
                          scratch_t* scratch, int64_t* out_chunk_count) {
  uint64_t offset_key;
  const int64_t chunk_count =
      put_offsets(p, sequence_count, decode_count, scratch, &offset_key);
  *out_chunk_count = chunk_count;
  // Given offsets are right only before the first wrong one.
  const bool offsets_right = offset_key == NOTHING;
  const uint64_t row_key = put_rows(
      p, offsets_right ? sequence_count : (int32_t)(offset_key >> 32),
      offsets_right ? chunk_count : (int64_t)(offset_key & 0xffffffffu),
      scratch);
  const uint64_t key = row_key < offset_key ? row_key : offset_key;
  const bool total_right = p->chunk_offsets[sequence_count] == chunk_count;
  if (key == NOTHING && total_right) return true;
  if (sg_thread() == 0) {
    const fault_t fault = {
        SG_STEP_ERROR_TABLES,
        key == NOTHING ? chunk_count : (int64_t)(key & 0xffffffffu)};
    set_fault(p->counts, fault, key == NOTHING ? -1 : (int32_t)(key >> 32));
  }
  return false;
}

SG_DEVICE void copy_offsets(const sg_chunk_metadata_params_t* p,
                            int32_t sequence_count) {
  if (p->query_start_loc_copy == nullptr) return;
  for (int32_t n = sg_thread(); n <= sequence_count; n += THREADS) {
    p->query_start_loc_copy[n] = (int32_t)offset_at(p, n);
  }
}

extern "C" __global__ void SG_LAUNCH_BOUNDS(THREADS, 1)
    chunk_metadata(sg_chunk_metadata_params_t params) {
  SG_SHARED scratch_t scratch;
  const sg_chunk_metadata_params_t* p = &params;
  sg_batch_counts_t* counts = p->counts;
  if (p->stands_alone) {
    if (sg_thread() == 0) {
      *counts = sg_batch_counts_t{};
      counts->sequence_count = p->sequence_count == nullptr
                                   ? p->sequence_capacity
                                   : *p->sequence_count;
    }
    sg_block_barrier();
  }
  const int32_t sequence_count = counts->sequence_count;
  const bool failed = counts->error_code != SG_STEP_ERROR_NONE;
  // Every thread has read the counts before any writes them.
  sg_block_barrier();
  if (failed) return;
  if (sequence_count < 0 || sequence_count > p->sequence_capacity) {
    if (sg_thread() == 0) {
      set_fault(counts, fault_t{SG_STEP_ERROR_SEQUENCE_COUNT, sequence_count},
                -1);
    }
    return;
  }
  const int32_t decode_count = count_decodes(p, sequence_count, &scratch);
  if (!check_batch(p, sequence_count, decode_count, &scratch)) return;
  int64_t chunk_count;
  if (!put_tables(p, sequence_count, decode_count, &scratch, &chunk_count)) {
    return;
  }
  copy_offsets(p, sequence_count);
  if (sg_thread() == 0) {
    counts->decode_count = decode_count;
    counts->chunk_count = (int32_t)chunk_count;
    counts->token_count = (int32_t)offset_at(p, sequence_count);
    counts->error_sequence = -1;
  }
}

extern "C" const void* chunk_metadata_handle(void) {
  return sg_kernel_handle(chunk_metadata);
}
