// SPDX-License-Identifier: Apache-2.0
//
// The dump writers on a node table that was made by hand.

#include "graphs/dump.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

typedef struct all_types_t {
  const void* buffer;
  const void* nothing;
  const void* stray;
  uint64_t u64;
  int64_t i64;
  int32_t i32;
  uint32_t u32;
  float f32;
  float not_finite;
} all_types_t;

static const sg_param_field_t fields[] = {
    SG_PARAM_FIELD(all_types_t, buffer, SG_PARAM_POINTER),
    SG_PARAM_FIELD(all_types_t, nothing, SG_PARAM_POINTER),
    SG_PARAM_FIELD(all_types_t, stray, SG_PARAM_POINTER),
    SG_PARAM_FIELD(all_types_t, u64, SG_PARAM_U64),
    SG_PARAM_FIELD(all_types_t, i64, SG_PARAM_I64),
    SG_PARAM_FIELD(all_types_t, i32, SG_PARAM_I32),
    SG_PARAM_FIELD(all_types_t, u32, SG_PARAM_U32),
    SG_PARAM_FIELD(all_types_t, f32, SG_PARAM_F32),
    SG_PARAM_FIELD(all_types_t, not_finite, SG_PARAM_F32),
};

static const sg_kernel_t kernel = {
    .op = "an_op",
    .name = "a \"kernel\"",
    .params_bytes = sizeof(all_types_t),
    .fields = fields,
    .field_count = sizeof(fields) / sizeof(fields[0]),
};

enum { TEXT_BYTES = 16384 };

typedef sg_status_t (*writer_t)(const sg_dump_t* dump, FILE* file);

// Two nodes whose pointers are at |base|, dumped as text.
static void write_dump(writer_t write, uintptr_t base, sg_edge_t edge,
                       char out_text[TEXT_BYTES]) {
  sg_node_table_t table;
  sg_node_table_initialize(sg_allocator_system(), &table);
  const all_types_t params = {.buffer = (const void*)(base + 4096 + 24),
                              .stray = (const void*)(base - 1),
                              .u64 = UINT64_MAX,
                              .i64 = INT64_MIN,
                              .i32 = -7,
                              .u32 = UINT32_MAX,
                              .f32 = 0.1f,
                              .not_finite = -INFINITY};
  for (int32_t layer = -1; layer < 1; ++layer) {
    const sg_launch_t launch = {.kernel = &kernel,
                                .layer = layer,
                                .grid = 3,
                                .block = 64,
                                .shared_bytes = 512,
                                .params = &params};
    assert_ok(sg_node_table_add(&table, &launch));
  }
  table.edges = &edge;
  table.edge_count = 1;
  char name[] = "mixed-8";
  const sg_shape_t shape = {.name = name,
                            .phase = SG_PHASE_MIXED,
                            .max_tokens = 8,
                            .max_sequences = 2};
  const sg_dump_graph_t graph = {.shape = &shape, .nodes = &table};
  // The address lies in three regions, of which the smallest has the name.
  const sg_memory_region_t regions[] = {{"memory", base, 65536},
                                        {"counts", base + 4096, 32},
                                        {"arena", base, 8192}};
  const sg_target_t target = {.name = "a_target"};
  const sg_dump_t dump = {.model = "a_model",
                          .target = &target,
                          .graphs = &graph,
                          .graph_count = 1,
                          .regions = regions,
                          .region_count = 3};
  FILE* file = tmpfile();
  assert_non_null(file);
  assert_ok(write(&dump, file));
  rewind(file);
  size_t bytes = fread(out_text, 1, TEXT_BYTES - 1, file);
  out_text[bytes] = '\0';
  fclose(file);
  table.edges = NULL;
  table.edge_count = 0;
  sg_node_table_deinitialize(&table);
}

static void assert_contains(const char* text, const char* expected) {
  if (strstr(text, expected) == NULL) {
    fail_msg("no '%s' in:\n%s", expected, text);
  }
}

static const uintptr_t some_base = 0x7f0000001000;
static const sg_edge_t chain_edge = {0, 1};

static void test_text_names_buffers(void** state) {
  (void)state;
  static char text[TEXT_BYTES];
  write_dump(sg_dump_write_text, some_base, chain_edge, text);
  assert_contains(text, "model a_model, target a_target, 1 graph");
  assert_contains(text, "2 nodes, 1 edges");
  assert_contains(text, "edges: a chain, 0 -> 1");
  assert_contains(text, "buffer      counts+24\n");
  assert_contains(text, "nothing     null\n");
  assert_contains(text, "stray       unknown\n");
  assert_contains(text, "u64         18446744073709551615\n");
  assert_contains(text, "i64         -9223372036854775808\n");
  assert_contains(text, "f32         0.1\n");
  assert_contains(text, "not_finite  -inf\n");
}

static void test_text_lists_other_edges(void** state) {
  (void)state;
  static char text[TEXT_BYTES];
  write_dump(sg_dump_write_text, some_base, (sg_edge_t){1, 0}, text);
  assert_contains(text, "1 -> 0");
  assert_null(strstr(text, "a chain"));
}

static void test_json_has_every_value(void** state) {
  (void)state;
  static char text[TEXT_BYTES];
  write_dump(sg_dump_write_json, some_base, chain_edge, text);
  assert_contains(text, "\"node_count\": 2");
  assert_contains(text, "\"edge_count\": 1");
  assert_contains(text, "\"kernel\": \"a \\\"kernel\\\"\"");
  assert_contains(text, "\"layer\": null");
  assert_contains(text, "\"layer\": 0");
  assert_contains(text, "{\"buffer\": \"counts\", \"offset_bytes\": 24}");
  assert_contains(text, "\"nothing\": null");
  assert_contains(text, "\"stray\": \"unknown\"");
  assert_contains(text, "\"u64\": 18446744073709551615");
  assert_contains(text, "\"i64\": -9223372036854775808");
  assert_contains(text, "\"f32\": 0.1,");
  assert_contains(text, "\"not_finite\": \"-inf\"");
}

static void test_dot_escapes_and_clusters(void** state) {
  (void)state;
  static char text[TEXT_BYTES];
  write_dump(sg_dump_write_dot, some_base, chain_edge, text);
  assert_contains(text, "a \\\"kernel\\\"");
  assert_contains(text, "subgraph cluster_g0_layer0");
  assert_contains(text, "g0_n0 -> g0_n1;");
}

static void test_addresses_leave_no_trace(void** state) {
  (void)state;
  static char first[TEXT_BYTES];
  static char second[TEXT_BYTES];
  const writer_t writers[] = {sg_dump_write_text, sg_dump_write_json,
                              sg_dump_write_dot};
  for (size_t i = 0; i < 3; ++i) {
    write_dump(writers[i], some_base, chain_edge, first);
    write_dump(writers[i], 0x10000, chain_edge, second);
    assert_string_equal(first, second);
    assert_null(strstr(first, "0x"));
  }
}

static void test_full_file_is_an_error(void** state) {
  (void)state;
  FILE* full = fopen("/dev/full", "w");
  if (full == NULL) skip();
  const sg_target_t target = {.name = "a_target"};
  const sg_dump_t dump = {.model = "a_model", .target = &target};
  assert_code(sg_dump_write_text(&dump, full), SG_STATUS_IO);
  fclose(full);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text_names_buffers),
      cmocka_unit_test(test_text_lists_other_edges),
      cmocka_unit_test(test_json_has_every_value),
      cmocka_unit_test(test_dot_escapes_and_clusters),
      cmocka_unit_test(test_addresses_leave_no_trace),
      cmocka_unit_test(test_full_file_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
