// SPDX-License-Identifier: Apache-2.0
//
// What the launchers of kda_chunk and kda_recurrent accept, and the launches
// that they make.

#include <stdio.h>
#include <string.h>

#include "kernels/kda_chunk/configure.h"
#include "kernels/kda_recurrent/configure.h"
#include "tests/check.h"
#include "tests/kernels/kda_run.h"

static void expect(sg_status_t status, sg_status_code_t code,
                   const char* words) {
  assert_int_equal(status.code, code);
  if (strstr(status.message, words) == NULL) {
    fail_msg("'%s' is not in '%s'", words, status.message);
  }
}

static sg_kda_geometry_t geometry_of_test(void) {
  const int32_t lens[] = {1};
  return kda_case_of(1, lens).geometry;
}

static void expect_both(const sg_kda_geometry_t* geometry,
                        sg_status_code_t code, const char* words) {
  expect(sg_kda_chunk_supports(geometry, &kda_host_target), code, words);
  expect(sg_kda_recurrent_supports(geometry, &kda_host_target), code, words);
}

static void test_kda_supports_every_dimension(void** state) {
  (void)state;
  sg_kda_geometry_t geometry = geometry_of_test();
  for (int32_t dim = 0; dim <= 300; ++dim) {
    const bool supported = dim >= 32 && dim <= 256 && dim % 16 == 0;
    geometry.key_dim = dim;
    geometry.value_dim = 128;
    assert_int_equal(sg_kda_chunk_supports(&geometry, &kda_host_target).code,
                     supported ? SG_STATUS_OK : SG_STATUS_UNSUPPORTED);
    geometry.key_dim = 128;
    geometry.value_dim = dim;
    assert_int_equal(
        sg_kda_recurrent_supports(&geometry, &kda_host_target).code,
        supported ? SG_STATUS_OK : SG_STATUS_UNSUPPORTED);
  }
}

static void test_kda_supports_names_what_is_wrong(void** state) {
  (void)state;
  sg_kda_geometry_t geometry = geometry_of_test();
  geometry.value_dim = 40;
  expect_both(&geometry, SG_STATUS_UNSUPPORTED, "value_dim 40");
  geometry = geometry_of_test();
  geometry.value_heads = 3;
  expect_both(&geometry, SG_STATUS_INVALID_ARGUMENT, "3 value heads");
  geometry.heads = 0;
  expect_both(&geometry, SG_STATUS_INVALID_ARGUMENT, "0 heads");
  geometry = geometry_of_test();
  geometry.state_dtype = SG_DTYPE_FP16;
  expect_both(&geometry, SG_STATUS_UNSUPPORTED,
              "state dtype fp16, supported are");
  geometry = geometry_of_test();
  geometry.gate_kind = SG_GATE_LOWER_BOUND;
  geometry.gate_lower_bound = 0.5f;
  expect_both(&geometry, SG_STATUS_INVALID_ARGUMENT, "lower bound 0.5");
  geometry = geometry_of_test();
  geometry.chunk_size = 48;
  expect(sg_kda_chunk_supports(&geometry, &kda_host_target),
         SG_STATUS_UNSUPPORTED, "chunk_size 48");
}

static void test_kda_supports_bf16_states_everywhere(void** state) {
  (void)state;
  sg_kda_geometry_t geometry = geometry_of_test();
  geometry.state_dtype = SG_DTYPE_BF16;
  size_t count;
  const sg_target_t* targets = sg_target_list(&count);
  for (size_t i = 0; i < count; ++i) {
    assert_ok(sg_kda_chunk_supports(&geometry, &targets[i]));
    assert_ok(sg_kda_recurrent_supports(&geometry, &targets[i]));
  }
}

static void test_kda_workspace_bytes(void** state) {
  (void)state;
  const sg_kda_geometry_t geometry = geometry_of_test();
  sg_batch_capacity_t capacity = {.tokens = 130, .sequences = 2, .chunks = 4};
  size_t bytes;
  assert_ok(sg_kda_chunk_workspace_bytes(&geometry, &kda_host_target, &capacity,
                                         &bytes));
  assert_int_equal(bytes, 0);
  assert_ok(sg_kda_recurrent_workspace_bytes(&geometry, &kda_host_target,
                                             &capacity, &bytes));
  assert_int_equal(bytes, 0);
  capacity.chunks = 3;
  expect(sg_kda_chunk_workspace_bytes(&geometry, &kda_host_target, &capacity,
                                      &bytes),
         SG_STATUS_INVALID_ARGUMENT, "3 chunks");
  assert_int_equal(bytes, 0);
}

// A run to take valid arguments from.
static int set_up_run(void** state) {
  const int32_t lens[] = {1, 70};
  const kda_case_t test = kda_case_of(2, lens);
  static kda_run_t run;
  kda_inputs_t inputs;
  kda_inputs_initialize(&test, &inputs);
  kda_run_initialize(&test, &inputs, &run);
  kda_inputs_deinitialize(&inputs);
  *state = &run;
  return 0;
}

static int tear_down_run(void** state) {
  kda_run_deinitialize(*state);
  return 0;
}

static sg_status_t configure_chunk(const sg_kda_args_t* args) {
  sg_kda_chunk_plan_t plan;
  return sg__kda_chunk_configure(&kda_host_target, /*layer=*/0, args, &plan);
}

static sg_status_t configure_recurrent(const sg_kda_args_t* args) {
  sg_kda_recurrent_plan_t plan;
  return sg__kda_recurrent_configure(&kda_host_target, /*layer=*/0, args,
                                     &plan);
}

static void test_kda_refuses_bad_arguments(void** state) {
  const kda_run_t* run = *state;
  sg_kda_args_t args = run->args;
  args.tensors.k = NULL;
  expect(configure_chunk(&args), SG_STATUS_INVALID_ARGUMENT, "k is NULL");
  expect(configure_recurrent(&args), SG_STATUS_INVALID_ARGUMENT, "k is NULL");
  args = run->args;
  args.tensors.a_log = NULL;
  expect(configure_chunk(&args), SG_STATUS_INVALID_ARGUMENT, "a_log is NULL");
  args = run->args;
  args.tensors.v_row_stride = 127;
  expect(configure_chunk(&args), SG_STATUS_INVALID_ARGUMENT,
         "v_row_stride is 127, expected at least 128");
  args = run->args;
  args.tensors.state_slot_stride = 8191;
  expect(configure_recurrent(&args), SG_STATUS_INVALID_ARGUMENT,
         "state_slot_stride is 8191");
  // There is none on the host.
  args = run->args;
  args.workspace = NULL;
  assert_ok(configure_chunk(&args));
  assert_ok(configure_recurrent(&args));
  args = run->args;
  args.tables.chunk_offsets = NULL;
  expect(configure_chunk(&args), SG_STATUS_INVALID_ARGUMENT, "chunk_offsets");
  args = run->args;
  args.capacity.chunks = 1;
  expect(configure_chunk(&args), SG_STATUS_INVALID_ARGUMENT, "1 chunks");
  args = run->args;
  args.capacity.sequences = INT32_MAX;
  expect(configure_recurrent(&args), SG_STATUS_OUT_OF_RANGE, "2147483647 x 2");
}

static void test_kda_grids_come_from_capacities(void** state) {
  const kda_run_t* run = *state;
  sg_kda_args_t args = run->args;
  args.capacity = (sg_batch_capacity_t){
      .tokens = 1000, .sequences = 5, .chunks = 995 / 64 + 5};
  sg_kda_chunk_plan_t plan;
  assert_ok(
      sg__kda_chunk_configure(&kda_host_target, /*layer=*/3, &args, &plan));
  // 64 columns of v can be split in two.
  assert_int_equal(args.geometry->value_dim, 64);
  assert_int_equal(plan.launches[0].grid, 5 * 2 * 2);
  assert_int_equal(plan.launches[0].layer, 3);
  args.capacity = (sg_batch_capacity_t){
      .tokens = 1000, .sequences = 100, .chunks = 900 / 64 + 100};
  assert_ok(
      sg__kda_chunk_configure(&kda_host_target, /*layer=*/3, &args, &plan));
  assert_int_equal(plan.launches[0].grid, SG_KDA_CHUNK_SPLIT_GRID);
  args.capacity = (sg_batch_capacity_t){
      .tokens = 1000, .sequences = 700, .chunks = 300 / 64 + 700};
  assert_ok(
      sg__kda_chunk_configure(&kda_host_target, /*layer=*/3, &args, &plan));
  assert_int_equal(plan.launches[0].grid, 700 * 2);
  args.capacity = (sg_batch_capacity_t){
      .tokens = 1000, .sequences = 5, .chunks = 995 / 64 + 5};
  sg_kda_recurrent_plan_t decode;
  assert_ok(sg__kda_recurrent_configure(&kda_host_target, /*layer=*/3, &args,
                                        &decode));
  assert_int_equal(decode.launch.grid, 5 * 2);
  args.capacity = (sg_batch_capacity_t){0};
  assert_ok(
      sg__kda_chunk_configure(&kda_host_target, /*layer=*/3, &args, &plan));
  assert_int_equal(plan.launches[0].grid, 0);
}

// Every member of the params struct is in the table, in order, without gaps.
static void check_fields(const sg_kernel_t* kernel) {
  size_t offset = 0;
  for (size_t i = 0; i < kernel->field_count; ++i) {
    const sg_param_type_t type = kernel->fields[i].type;
    assert_int_equal(kernel->fields[i].offset, offset);
    offset +=
        type == SG_PARAM_POINTER || type == SG_PARAM_I64 || type == SG_PARAM_U64
            ? 8
            : 4;
  }
  assert_int_equal(offset, kernel->params_bytes);
}

static void test_kda_kernels_name_every_param(void** state) {
  const kda_run_t* run = *state;
  sg_kda_chunk_plan_t plan;
  sg_kda_recurrent_plan_t decode;
  assert_ok(sg__kda_chunk_configure(&kda_host_target, /*layer=*/0, &run->args,
                                    &plan));
  assert_ok(sg__kda_recurrent_configure(&kda_host_target, /*layer=*/0,
                                        &run->args, &decode));
  check_fields(plan.launches[0].kernel);
  check_fields(decode.launch.kernel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kda_supports_every_dimension),
      cmocka_unit_test(test_kda_supports_names_what_is_wrong),
      cmocka_unit_test(test_kda_supports_bf16_states_everywhere),
      cmocka_unit_test(test_kda_workspace_bytes),
      cmocka_unit_test_setup_teardown(test_kda_refuses_bad_arguments,
                                      set_up_run, tear_down_run),
      cmocka_unit_test_setup_teardown(test_kda_grids_come_from_capacities,
                                      set_up_run, tear_down_run),
      cmocka_unit_test_setup_teardown(test_kda_kernels_name_every_param,
                                      set_up_run, tear_down_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
