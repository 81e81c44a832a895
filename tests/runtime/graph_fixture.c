// SPDX-License-Identifier: Apache-2.0

#include "tests/runtime/graph_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/shared_word.h"
#include "tests/check.h"
#include "tests/device_memory.h"

const sg_kernel_t graph_fixture_toy = {.op = "toy_op",
                                       .name = "toy_layer",
                                       .handle = toy_layer_handle,
                                       .params_bytes = sizeof(toy_params_t)};

const sg_kernel_t graph_fixture_gate = {.op = "gate_op",
                                        .name = "gate",
                                        .handle = gate_handle,
                                        .params_bytes = sizeof(gate_params_t)};

static uint64_t input_value(int input) {
  return 1000003u * (uint64_t)(input + 1);
}

static void* device_copy(const void* data, size_t bytes) {
  void* memory = NULL;
  assert_hip(hipMalloc(&memory, bytes));
  device_upload(memory, data, bytes);
  return memory;
}

void graph_fixture_set_up(graph_fixture_t* f) {
  int device_count = 0;
  if (hipGetDeviceCount(&device_count) != hipSuccess || device_count == 0) {
    exit(77);
  }
  memset(f, 0, sizeof(*f));
  assert_hip(hipStreamCreateWithFlags(&f->stream, hipStreamNonBlocking));
  void *host = NULL, *device = NULL;
  assert_hip(hipHostMalloc(&host, sizeof(uint64_t),
                           hipHostMallocMapped | hipHostMallocCoherent));
  assert_hip(hipHostGetDevicePointer(&device, host, 0));
  f->flag = host;
  f->flag_device = device;
  sg_store_release(f->flag, 1);
  sg_batch_counts_t counts = {.sequence_count = 1, .token_count = 1};
  f->counts = device_copy(&counts, sizeof(counts));
  // query_start_loc, computed_lens, slots.
  static const int32_t tables[] = {0, 1, 9, 0};
  f->tables = device_copy(tables, sizeof(tables));
  uint64_t x[GRAPH_FIXTURE_INPUTS];
  for (int i = 0; i < GRAPH_FIXTURE_INPUTS; ++i) x[i] = input_value(i);
  f->x = device_copy(x, sizeof(x));
  f->expected = 12345;
  f->state = device_copy(&f->expected, sizeof(f->expected));
  f->o = device_copy(&f->expected, sizeof(f->expected));
}

void graph_fixture_tear_down(graph_fixture_t* f) {
  assert_hip(hipStreamSynchronize(f->stream));
  assert_hip(hipFree(f->counts));
  assert_hip(hipFree(f->tables));
  assert_hip(hipFree(f->x));
  assert_hip(hipFree(f->state));
  assert_hip(hipFree(f->o));
  assert_hip(hipHostFree(f->flag));
  assert_hip(hipStreamDestroy(f->stream));
}

const sg_target_t* graph_fixture_target(void) {
  const sg_target_t* target = NULL;
  assert_ok(sg_target_of_device(0, &target));
  return target;
}

sg_status_t graph_fixture_toy_enqueue(const graph_fixture_t* f,
                                      hipStream_t stream,
                                      const sg_launch_trace_t* trace, int input,
                                      int32_t layer) {
  toy_params_t params = {.counts = f->counts,
                         .query_start_loc = f->tables,
                         .computed_lens = f->tables + 2,
                         .slots = f->tables + 3,
                         .x = f->x + input,
                         .state = f->state,
                         .o = f->o,
                         .null_slot = -1,
                         .token_capacity = 1};
  sg_enqueue_t where = {stream, trace, graph_fixture_target(), layer};
  sg_launch_t launch = {.kernel = &graph_fixture_toy,
                        .layer = layer,
                        .grid = 1,
                        .block = 32,
                        .params = &params};
  return sg_launch_enqueue(&where, &launch);
}

sg_status_t graph_fixture_gate_enqueue(const graph_fixture_t* f,
                                       hipStream_t stream,
                                       const sg_launch_trace_t* trace) {
  gate_params_t params = {f->flag_device};
  sg_enqueue_t where = {stream, trace, graph_fixture_target(), -1};
  sg_launch_t launch = {.kernel = &graph_fixture_gate,
                        .layer = -1,
                        .grid = 1,
                        .block = 1,
                        .params = &params};
  return sg_launch_enqueue(&where, &launch);
}

void graph_fixture_expect(graph_fixture_t* f, int input) {
  f->expected = f->expected * TOY_MULTIPLIER + input_value(input);
}

void graph_fixture_check(const graph_fixture_t* f) {
  uint64_t found = 0;
  assert_hip(hipStreamSynchronize(f->stream));
  assert_hip(hipMemcpy(&found, f->state, sizeof(found), hipMemcpyDeviceToHost));
  assert_int_equal(found, f->expected);
}

void graph_fixture_check_usable(graph_fixture_t* f) {
  hipStreamCaptureStatus capture = hipStreamCaptureStatusActive;
  assert_hip(hipStreamIsCapturing(f->stream, &capture));
  assert_int_equal(capture, hipStreamCaptureStatusNone);
  assert_ok(graph_fixture_toy_enqueue(f, f->stream, NULL, 3, 0));
  graph_fixture_expect(f, 3);
  graph_fixture_check(f);
}

sg_status_t graph_fixture_record(sg_allocator_t allocator, hipStream_t stream,
                                 sg_record_function_t record, void* self,
                                 bool instantiate, sg_graph_t* out_graph) {
  return sg_graph_record(allocator,
                         &(sg_record_request_t){.stream = stream,
                                                .record = record,
                                                .self = self,
                                                .instantiate = instantiate},
                         out_graph);
}
