// SPDX-License-Identifier: Apache-2.0
//
// The table of a graph's nodes: copies of launches, growth, failures.

#include "runtime/node_table.h"

#include <stdalign.h>
#include <string.h>

#include "tests/base/counting_allocator.h"
#include "tests/check.h"

enum { KERNELS = 6 };

// Sizes that no alignment divides, and one without params.
static const sg_kernel_t kernels[KERNELS] = {
    {.op = "a", .name = "a0", .params_bytes = 1},
    {.op = "a", .name = "a1", .params_bytes = 8},
    {.op = "b", .name = "b0", .params_bytes = 33},
    {.op = "b", .name = "b1", .params_bytes = 200},
    {.op = "c", .name = "c0", .params_bytes = 0},
    {.op = "c", .name = "c1", .params_bytes = 1000},
};

static void fill_params(unsigned char* params, int i) {
  for (int j = 0; j < 1000; ++j) params[j] = (unsigned char)(i * 7 + j);
}

static sg_launch_t launch_number(int i, const void* params) {
  return (sg_launch_t){.kernel = &kernels[i % KERNELS],
                       .layer = i - 1,
                       .grid = (uint32_t)(i + 1),
                       .block = (uint32_t)(i % 1024 + 1),
                       .shared_bytes = (uint32_t)(i * 16),
                       .params = params};
}

static void check_node(const sg_node_table_t* table, int i) {
  unsigned char params[1000];
  fill_params(params, i);
  sg_launch_t launch = launch_number(i, params);
  const sg_node_t* node = &table->nodes[i];
  assert_ptr_equal(node->kernel, launch.kernel);
  assert_int_equal(node->layer, launch.layer);
  assert_int_equal(node->grid, launch.grid);
  assert_int_equal(node->block, launch.block);
  assert_int_equal(node->shared_bytes, launch.shared_bytes);
  const unsigned char* copy = sg_node_params(table, node);
  size_t bytes = launch.kernel->params_bytes;
  if (bytes == 0) return;
  assert_int_equal((uintptr_t)copy % alignof(max_align_t), 0);
  assert_true(copy >= table->params);
  assert_true(copy + bytes <= table->params + table->params_bytes);
  assert_memory_equal(copy, params, bytes);
}

// The table keeps copies: the caller's params change after each launch.
static void test_keeps_copies_in_order(void** state) {
  (void)state;
  counting_allocator_t counting = {0};
  sg_node_table_t table;
  sg_node_table_initialize(counting_allocator(&counting), &table);
  assert_int_equal(table.node_count, 0);
  assert_int_equal(table.edge_count, 0);
  unsigned char params[1000];
  for (int i = 0; i < 700; ++i) {
    fill_params(params, i);
    sg_launch_t launch = launch_number(i, params);
    assert_ok(sg_node_table_add(&table, &launch));
    assert_int_equal(table.node_count, i + 1);
    memset(params, 0xee, sizeof(params));
  }
  for (int i = 0; i < 700; ++i) check_node(&table, i);
  // It grows by more than one node at a time.
  assert_true(counting.allocations < 100);
  sg_node_table_deinitialize(&table);
  assert_int_equal(counting.live, 0);
}

static void test_trace_adds_to_the_table(void** state) {
  (void)state;
  sg_node_table_t table;
  sg_node_table_initialize(sg_allocator_system(), &table);
  sg_launch_trace_t trace = sg_node_table_trace(&table);
  unsigned char params[1000];
  for (int i = 0; i < 10; ++i) {
    fill_params(params, i);
    sg_launch_t launch = launch_number(i, params);
    assert_ok(trace.add(trace.self, &launch));
  }
  assert_int_equal(table.node_count, 10);
  for (int i = 0; i < 10; ++i) check_node(&table, i);
  sg_node_table_deinitialize(&table);
}

// Whichever allocation fails, the table is as it was before the add, and the
// same add succeeds later.
static void test_failed_adds_change_nothing(void** state) {
  (void)state;
  for (uint64_t nth = 1; nth < 40; ++nth) {
    counting_allocator_t counting = {.fail_nth = nth};
    sg_node_table_t table;
    sg_node_table_initialize(counting_allocator(&counting), &table);
    unsigned char params[1000];
    int failures = 0;
    for (int i = 0; i < 200; ++i) {
      fill_params(params, i);
      sg_launch_t launch = launch_number(i, params);
      sg_status_t status = sg_node_table_add(&table, &launch);
      if (!sg_status_is_ok(status)) {
        assert_int_equal(status.code, SG_STATUS_OUT_OF_MEMORY);
        assert_int_equal(table.node_count, i);
        ++failures;
        assert_ok(sg_node_table_add(&table, &launch));
      }
    }
    assert_int_equal(failures, counting.allocations >= nth);
    for (int i = 0; i < 200; ++i) check_node(&table, i);
    sg_node_table_deinitialize(&table);
    assert_int_equal(counting.live, 0);
  }
}

static void test_deinitialize_accepts_nothing(void** state) {
  (void)state;
  sg_node_table_deinitialize(NULL);
  sg_node_table_t zeroed;
  memset(&zeroed, 0, sizeof(zeroed));
  sg_node_table_deinitialize(&zeroed);
  sg_node_table_t empty;
  sg_node_table_initialize(sg_allocator_system(), &empty);
  sg_node_table_deinitialize(&empty);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keeps_copies_in_order),
      cmocka_unit_test(test_trace_adds_to_the_table),
      cmocka_unit_test(test_failed_adds_change_nothing),
      cmocka_unit_test(test_deinitialize_accepts_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
