// SPDX-License-Identifier: Apache-2.0
//
// How the host's scan shares out a batch: every column of every sequence and
// head is somebody's, and nobody else's, whatever the workers and the grid.

#include "kernels/kda_chunk/share_host.h"

#include <stdlib.h>

#include "tests/check.h"
#include "tests/random.h"

typedef struct batch_t {
  sg_batch_counts_t counts;
  sg_kda_params_t params;
  uint32_t grid;
  uint32_t workers;
} batch_t;

// Blocks at the capacity of |sequences|, as the launch has them at least.
static uint32_t least_grid(const batch_t* batch, int32_t sequences) {
  const int64_t splits =
      sg_ceil_div(batch->params.value_dim, SG_KDA_CHUNK_SPLIT_COLUMNS);
  return (uint32_t)(sequences * batch->params.value_heads * splits);
}

static void check_batch(const batch_t* batch) {
  const int32_t sequences = batch->counts.sequence_count;
  const int32_t heads = batch->params.value_heads;
  const int32_t columns = batch->params.value_dim;
  int32_t* owners = calloc(
      (size_t)sequences * (size_t)heads * (size_t)columns + 1, sizeof(int32_t));
  for (uint32_t i = 0; i < batch->grid; ++i) {
    const sg_host_block_t block = {
        .index = i, .grid = batch->grid, .workers = batch->workers};
    sg_kda_share_t share;
    if (!sg_kda_find_share(&batch->params, &block, &share)) continue;
    assert_true(share.column_count > 0);
    assert_true(share.column_count <= SG_KDA_CHUNK_SPLIT_COLUMNS);
    assert_true(share.first_column + share.column_count <= columns);
    assert_true(share.sequence >= batch->counts.decode_count);
    assert_true(share.sequence < sequences);
    assert_true(share.value_head < heads);
    int32_t* row =
        owners + (share.sequence * heads + share.value_head) * columns;
    for (int32_t c = 0; c < share.column_count; ++c) {
      row[share.first_column + c]++;
    }
  }
  for (int32_t i = 0; i < sequences * heads * columns; ++i) {
    const bool is_decode = i / columns / heads < batch->counts.decode_count;
    assert_int_equal(owners[i], is_decode ? 0 : 1);
  }
  free(owners);
}

static void test_every_column_has_one_owner(void** state) {
  (void)state;
  uint64_t seed = 1;
  for (int32_t i = 0; i < 2000; ++i) {
    batch_t batch = {
        .counts.sequence_count = random_below(&seed, 9),
        .params.value_heads = 1 + random_below(&seed, 12),
        .params.value_dim = 32 + 16 * random_below(&seed, 15),
        .workers = 1u + (uint32_t)random_below(&seed, 70),
    };
    batch.params.counts = &batch.counts;
    batch.counts.decode_count =
        random_below(&seed, batch.counts.sequence_count + 1);
    const int32_t capacity =
        batch.counts.sequence_count + random_below(&seed, 3);
    batch.grid =
        least_grid(&batch, capacity) + (uint32_t)random_below(&seed, 200);
    check_batch(&batch);
  }
}

static void test_columns_are_split_for_idle_workers(void** state) {
  (void)state;
  // One sequence of one head leaves seven of eight workers without work.
  assert_int_equal(sg_kda_choose_splits(128, 1, 8, 1000), 4);
  assert_int_equal(sg_kda_choose_splits(128, 1, 2, 1000), 2);
  // Two workers have enough with 32 heads; making operands twice would cost.
  assert_int_equal(sg_kda_choose_splits(128, 32, 2, 1000), 1);
  // A grid without room allows nothing.
  assert_int_equal(sg_kda_choose_splits(128, 1, 8, 1), 1);
  // No block carries more columns than its scratch has.
  assert_int_equal(sg_kda_choose_splits(256, 64, 2, 128), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_column_has_one_owner),
      cmocka_unit_test(test_columns_are_split_for_idle_workers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
