// SPDX-License-Identifier: Apache-2.0

#include "kernels/chunk_metadata/chunk_metadata.h"
#include "runtime/base/checked.h"

int32_t sg_chunk_tables_build(const int32_t* query_lens,
                              const int32_t* computed_lens,
                              int32_t sequence_count, int32_t chunk_size,
                              int32_t* out_chunk_indices,
                              int64_t* out_chunk_offsets) {
  int32_t first_prefill = 0;
  while (first_prefill < sequence_count && query_lens[first_prefill] == 1 &&
         computed_lens[first_prefill] > 0) {
    out_chunk_offsets[first_prefill] = 0;
    ++first_prefill;
  }
  int32_t chunk_count = 0;
  for (int32_t n = first_prefill; n < sequence_count; ++n) {
    out_chunk_offsets[n] = chunk_count;
    int32_t chunks = (int32_t)sg_ceil_div(query_lens[n], chunk_size);
    for (int32_t i = 0; i < chunks; ++i, ++chunk_count) {
      out_chunk_indices[2 * chunk_count] = n;
      out_chunk_indices[2 * chunk_count + 1] = i;
    }
  }
  out_chunk_offsets[sequence_count] = chunk_count;
  return chunk_count;
}
