// SPDX-License-Identifier: Apache-2.0
//
// Graphs as HIP and CUDA document them.

#include <stdbool.h>

#include "tests/hip/conformance.h"

typedef struct fixture_t {
  hipStream_t stream;
  hipStream_t other;
  hipGraph_t graph;
  int32_t* log;
} fixture_t;

static fixture_t fixture;

static int set_up(void** state) {
  (void)state;
  assert_hip_ok(
      hipStreamCreateWithFlags(&fixture.stream, hipStreamNonBlocking));
  assert_hip_ok(hipStreamCreateWithFlags(&fixture.other, hipStreamNonBlocking));
  assert_hip_ok(hipGraphCreate(&fixture.graph, /*flags=*/0));
  fixture.log = conformance_numbers(256);
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  (void)hipGetLastError();
  assert_hip_ok(hipGraphDestroy(fixture.graph));
  assert_hip_ok(hipStreamDestroy(fixture.stream));
  assert_hip_ok(hipStreamDestroy(fixture.other));
  assert_hip_ok(hipFree(fixture.log));
  return 0;
}

// A node that appends |value| to the log, after |dependency| unless NULL.
static hipGraphNode_t add_append(hipGraphNode_t dependency, int32_t value) {
  conformance_append_params_t params = {
      .log = fixture.log + 1, .cursor = fixture.log, .value = value};
  void* arguments[1] = {&params};
  hipKernelNodeParams node_params = {0};
  // HIP's accessor gives a const handle; the struct wants it without.
  node_params.func = (void*)(uintptr_t)conformance_append_handle();
  node_params.gridDim = (dim3){.x = 1, .y = 1, .z = 1};
  node_params.blockDim = (dim3){.x = 1, .y = 1, .z = 1};
  node_params.kernelParams = arguments;
  hipGraphNode_t node = NULL;
  assert_hip_ok(hipGraphAddKernelNode(&node, fixture.graph, &dependency,
                                      dependency == NULL ? 0 : 1,
                                      &node_params));
  return node;
}

static hipGraphExec_t instantiate(void) {
  hipGraphExec_t exec = NULL;
  assert_hip_ok(hipGraphInstantiate(&exec, fixture.graph, NULL, NULL, 0));
  return exec;
}

static void run(hipGraphExec_t exec) {
  assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
  assert_hip_ok(hipStreamSynchronize(fixture.stream));
  assert_hip_ok(hipGraphExecDestroy(exec));
}

static void assert_log(const int32_t* expected, int32_t count) {
  int32_t values[256];
  conformance_read(fixture.log, values, 256);
  assert_int_equal(values[0], count);
  for (int32_t i = 0; i < count; ++i) {
    assert_int_equal(values[i + 1], expected[i]);
  }
}

static void test_a_chain_runs_in_order(void** state) {
  (void)state;
  enum { COUNT = 200 };
  int32_t expected[COUNT];
  hipGraphNode_t node = NULL;
  for (int32_t i = 0; i < COUNT; ++i) {
    node = add_append(node, i);
    expected[i] = i;
  }
  run(instantiate());
  assert_log(expected, COUNT);
}

static void test_edges_order_nodes_made_the_other_way_round(void** state) {
  (void)state;
  hipGraphNode_t last = add_append(NULL, 3);
  hipGraphNode_t middle = add_append(NULL, 2);
  hipGraphNode_t first = add_append(NULL, 1);
  hipGraphNode_t from[2] = {middle, first};
  hipGraphNode_t to[2] = {last, middle};
  assert_hip_ok(hipGraphAddDependencies(fixture.graph, from, to, 2));
  run(instantiate());
  assert_log((int32_t[]){1, 2, 3}, 3);
}

static void test_a_graph_tells_its_structure(void** state) {
  (void)state;
  hipGraphNode_t root = add_append(NULL, 1);
  hipGraphNode_t left = add_append(root, 2);
  hipGraphNode_t right = NULL;
  assert_hip_ok(hipGraphAddEmptyNode(&right, fixture.graph, &root, 1));
  hipGraphNode_t both[2] = {left, right};
  hipGraphNode_t end = NULL;
  assert_hip_ok(hipGraphAddEmptyNode(&end, fixture.graph, both, 2));

  hipGraphNode_t found[8];
  size_t count = 8;
  assert_hip_ok(hipGraphGetRootNodes(fixture.graph, found, &count));
  assert_int_equal(count, 1);
  assert_ptr_equal(found[0], root);
  // What the array has no room for is left out, what it has too much cleared.
  count = 2;
  assert_hip_ok(hipGraphGetNodes(fixture.graph, found, &count));
  assert_int_equal(count, 2);
  count = 8;
  assert_hip_ok(hipGraphGetNodes(fixture.graph, found, &count));
  assert_int_equal(count, 4);
  assert_null(found[4]);
  count = 8;
  assert_hip_ok(hipGraphNodeGetDependencies(end, found, &count));
  assert_int_equal(count, 2);
  assert_true((found[0] == left && found[1] == right) ||
              (found[0] == right && found[1] == left));
  count = 8;
  assert_hip_ok(hipGraphNodeGetDependentNodes(root, found, &count));
  assert_int_equal(count, 2);
  hipGraphNode_t to[8];
  count = 8;
  assert_hip_ok(hipGraphGetEdges(fixture.graph, found, to, &count));
  assert_int_equal(count, 4);
  hipGraphNodeType type;
  assert_hip_ok(hipGraphNodeGetType(left, &type));
  assert_int_equal(type, hipGraphNodeTypeKernel);
  assert_hip_ok(hipGraphNodeGetType(end, &type));
  assert_int_equal(type, hipGraphNodeTypeEmpty);
}

static void test_a_node_keeps_its_own_params(void** state) {
  (void)state;
  // add_append's params are gone when it returns.
  hipGraphNode_t node = add_append(NULL, 42);
  hipKernelNodeParams params;
  assert_hip_ok(hipGraphKernelNodeGetParams(node, &params));
  assert_ptr_equal(params.func, conformance_append_handle());
  assert_int_equal(params.gridDim.x, 1);
  assert_int_equal(params.blockDim.x, 1);
  assert_int_equal(params.sharedMemBytes, 0);
  const conformance_append_params_t* append = params.kernelParams[0];
  assert_int_equal(append->value, 42);
  assert_ptr_equal(append->cursor, fixture.log);
}

static void test_circles_and_double_edges_are_refused(void** state) {
  (void)state;
  hipGraphNode_t first = add_append(NULL, 1);
  hipGraphNode_t second = add_append(first, 2);
  hipGraphNode_t third = add_append(second, 3);
  assert_hip(hipErrorInvalidValue,
             hipGraphAddDependencies(fixture.graph, &first, &second, 1));
  // CUDA lets the circle be made and refuses the instantiation.
  hipError_t error = hipGraphAddDependencies(fixture.graph, &third, &first, 1);
  if (error == hipSuccess) {
    hipGraphExec_t exec = NULL;
    error = hipGraphInstantiate(&exec, fixture.graph, NULL, NULL, 0);
  }
  assert_int_not_equal(error, hipSuccess);
}

static void test_fills_and_copies_by_hand(void** state) {
  (void)state;
  hipMemsetParams fill = {0};
  fill.dst = fixture.log;
  fill.elementSize = 4;
  fill.value = 0x01020304;
  fill.width = 3;
  fill.height = 1;
  hipGraphNode_t fill_node = NULL;
  hipGraphNode_t copy_node = NULL;
  assert_hip_ok(
      hipGraphAddMemsetNode(&fill_node, fixture.graph, NULL, 0, &fill));
  assert_hip_ok(hipGraphAddMemcpyNode1D(
      &copy_node, fixture.graph, &fill_node, 1, fixture.log + 10, fixture.log,
      2 * sizeof(int32_t), hipMemcpyDeviceToDevice));
  hipMemsetParams got = {0};
  assert_hip_ok(hipGraphMemsetNodeGetParams(fill_node, &got));
  assert_ptr_equal(got.dst, fixture.log);
  assert_int_equal(got.value, 0x01020304);
  assert_int_equal(got.width, 3);
  run(instantiate());
  int32_t values[13];
  conformance_read(fixture.log, values, 13);
  for (int32_t i = 0; i < 13; ++i) {
    bool is_set = i < 3 || i == 10 || i == 11;
    assert_int_equal(values[i], is_set ? 0x01020304 : 0);
  }
}

static void test_a_clone_is_a_graph_of_its_own(void** state) {
  (void)state;
  hipGraph_t clone = NULL;
  hipGraphNode_t node = add_append(add_append(NULL, 1), 2);
  assert_hip_ok(hipGraphClone(&clone, fixture.graph));
  (void)add_append(node, 3);
  hipGraphNode_t from[2] = {NULL};
  hipGraphNode_t to[2] = {NULL};
  hipGraphNode_t nodes[3] = {NULL};
  size_t edge_count = 2;
  size_t node_count = 3;
  assert_hip_ok(hipGraphGetNodes(clone, nodes, &node_count));
  assert_hip_ok(hipGraphGetEdges(clone, from, to, &edge_count));
  assert_int_equal(node_count, 2);
  assert_int_equal(edge_count, 1);
  assert_true(from[0] == nodes[0] || from[0] == nodes[1]);
  assert_true(to[0] == nodes[0] || to[0] == nodes[1]);
  hipGraphExec_t exec = NULL;
  assert_hip_ok(hipGraphInstantiateWithFlags(&exec, clone, /*flags=*/0));
  assert_hip_ok(hipGraphDestroy(clone));
  run(exec);
  assert_log((int32_t[]){1, 2}, 2);
}

static void test_an_executable_graph_outlives_its_graph(void** state) {
  (void)state;
  (void)add_append(NULL, 5);
  hipGraphExec_t exec = instantiate();
  assert_hip_ok(hipGraphDestroy(fixture.graph));
  assert_hip_ok(hipGraphCreate(&fixture.graph, /*flags=*/0));
  run(exec);
  assert_log((int32_t[]){5}, 1);
}

static void test_a_destroyed_executable_graph_finishes(void** state) {
  (void)state;
  (void)add_append(NULL, 6);
  hipGraphExec_t exec = instantiate();
  conformance_gate_t gate = conformance_gate_close(fixture.stream);
  assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
  assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
  assert_hip_ok(hipGraphExecDestroy(exec));
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_log((int32_t[]){6, 6}, 2);
  conformance_gate_destroy(&gate);
}

// The nodes change a counter without atomics: two at once would lose counts.
static void test_launches_of_one_graph_do_not_overlap(void** state) {
  (void)state;
  enum { NODES = 20, LAUNCHES = 5 };
  hipGraphNode_t node = NULL;
  for (int32_t i = 0; i < NODES; ++i) node = add_append(node, i);
  hipGraphExec_t exec = instantiate();
  for (int32_t i = 0; i < LAUNCHES; ++i) {
    assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
    assert_hip_ok(hipGraphLaunch(exec, fixture.other));
  }
  int32_t expected[2 * NODES * LAUNCHES];
  for (int32_t i = 0; i < 2 * NODES * LAUNCHES; ++i) expected[i] = i % NODES;
  assert_log(expected, 2 * NODES * LAUNCHES);
  assert_hip_ok(hipGraphExecDestroy(exec));
}

static void test_a_launch_does_not_wait(void** state) {
  (void)state;
  (void)add_append(NULL, 8);
  hipGraphExec_t exec = instantiate();
  conformance_gate_t gate = conformance_gate_close(fixture.stream);
  assert_hip_ok(hipGraphLaunch(exec, fixture.stream));
  assert_hip(hipErrorNotReady, hipStreamQuery(fixture.stream));
  conformance_let_run();
  conformance_gate_open(&gate);
  assert_hip_ok(hipStreamSynchronize(fixture.stream));
  assert_log((int32_t[]){8}, 1);
  conformance_gate_destroy(&gate);
  assert_hip_ok(hipGraphExecDestroy(exec));
}

static void test_a_graph_runs_in_the_null_stream(void** state) {
  (void)state;
  (void)add_append(NULL, 4);
  hipGraphExec_t exec = instantiate();
  assert_hip_ok(hipGraphLaunch(exec, NULL));
  assert_log((int32_t[]){4}, 1);
  assert_hip_ok(hipGraphExecDestroy(exec));
}

#define graph_test(function) \
  cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      graph_test(test_a_chain_runs_in_order),
      graph_test(test_edges_order_nodes_made_the_other_way_round),
      graph_test(test_a_graph_tells_its_structure),
      graph_test(test_a_node_keeps_its_own_params),
      graph_test(test_circles_and_double_edges_are_refused),
      graph_test(test_fills_and_copies_by_hand),
      graph_test(test_a_clone_is_a_graph_of_its_own),
      graph_test(test_an_executable_graph_outlives_its_graph),
      graph_test(test_a_destroyed_executable_graph_finishes),
      graph_test(test_launches_of_one_graph_do_not_overlap),
      graph_test(test_a_launch_does_not_wait),
      graph_test(test_a_graph_runs_in_the_null_stream),
  };
  int skip = conformance_exit_code_without_device();
  if (skip != 0) return skip;
  return cmocka_run_group_tests(tests, conformance_set_up,
                                conformance_tear_down);
}
