// SPDX-License-Identifier: Apache-2.0
//
// What a good batch makes, by the definitions in the ops' params.h.

#include <stdlib.h>

#include "tests/check.h"
#include "tests/kernels/metadata_fixture.h"

void metadata_check_error(const metadata_fixture_t* f, int32_t code,
                          int32_t sequence, int64_t value) {
  const sg_batch_counts_t* c = &f->counts;
  bool same = c->error_code == code;
  if (code != SG_STEP_ERROR_NONE) {
    same = same && c->error_sequence == sequence && c->error_value == value;
  }
  if (!same) {
    fail_msg("expected error %d, sequence %d, value %lld; found %d, %d, %lld",
             code, sequence, (long long)value, c->error_code, c->error_sequence,
             (long long)c->error_value);
  }
}

static void expect(int64_t found, int64_t expected, const char* what,
                   int32_t index) {
  if (found != expected) {
    fail_msg("%s[%d]: expected %lld, found %lld", what, index,
             (long long)expected, (long long)found);
  }
}

static int32_t length_of(const metadata_batch_t* b, int32_t n) {
  return b->query_start_loc[n + 1] - b->query_start_loc[n];
}

// The longest prefix of one token after a computed length above 0.
static int32_t count_decodes(const metadata_batch_t* b) {
  int32_t count = 0;
  while (count < b->sequence_count && length_of(b, count) == 1 &&
         b->computed_lens[count] > 0) {
    ++count;
  }
  return count;
}

static void check_batch_place(const metadata_fixture_t* f) {
  const metadata_batch_t* b = &f->batch;
  int32_t count = b->sequence_count;
  for (int32_t n = 0; n < f->options.sequences; ++n) {
    bool real = n < count;
    if (real) {
      expect(f->computed_lens[n], b->computed_lens[n], "computed_lens", n);
    }
    expect(f->slots[n], real ? b->slots[n] : -1, "slots", n);
  }
  for (int32_t n = 0; n <= f->options.sequences; ++n) {
    expect(f->query_start_loc[n], b->query_start_loc[n < count ? n : count],
           "query_start_loc", n);
  }
}

// Chunks are counted one by one, a sequence at a time.
static void check_tables(const metadata_fixture_t* f) {
  const metadata_batch_t* b = &f->batch;
  int32_t decodes = count_decodes(b);
  int32_t row = 0;
  for (int32_t n = 0; n <= b->sequence_count; ++n) {
    expect(f->chunk_offsets[n], row, "chunk_offsets", n);
    if (n < decodes || n == b->sequence_count) continue;
    int32_t chunk = 0;
    for (int32_t left = length_of(b, n); left > 0;
         left -= f->options.chunk_size) {
      expect(f->chunk_indices[2 * row], n, "chunk_indices sequence", row);
      expect(f->chunk_indices[2 * row + 1], chunk, "chunk_indices chunk", row);
      ++chunk;
      ++row;
    }
  }
  expect(f->counts.sequence_count, b->sequence_count, "sequence_count", 0);
  expect(f->counts.token_count, b->query_start_loc[b->sequence_count],
         "token_count", 0);
  expect(f->counts.decode_count, decodes, "decode_count", 0);
  expect(f->counts.chunk_count, row, "chunk_count", 0);
}

static void check_host_builder(const metadata_fixture_t* f) {
  const metadata_batch_t* b = &f->batch;
  size_t n = (size_t)b->sequence_count;
  int32_t* lens = malloc(4 * n + 4);
  int32_t* indices = malloc(8 * (size_t)f->chunks + 8);
  int64_t* offsets = malloc(8 * (n + 1));
  assert_true(lens != NULL && indices != NULL && offsets != NULL);
  for (int32_t i = 0; i < b->sequence_count; ++i) lens[i] = length_of(b, i);
  int32_t chunks =
      sg_chunk_tables_build(lens, b->computed_lens, b->sequence_count,
                            f->options.chunk_size, indices, offsets);
  assert_int_equal(chunks, f->counts.chunk_count);
  assert_memory_equal(offsets, f->chunk_offsets, 8 * (n + 1));
  if (chunks > 0) {
    assert_memory_equal(indices, f->chunk_indices, 8 * (size_t)chunks);
  }
  free(lens);
  free(indices);
  free(offsets);
}

void metadata_check_good(const metadata_fixture_t* f) {
  metadata_check_error(f, SG_STEP_ERROR_NONE, -1, 0);
  check_batch_place(f);
  check_tables(f);
  check_host_builder(f);
}
