// SPDX-License-Identifier: Apache-2.0

#include "tests/graphs/segment_caller.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/hip/error.h"
#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/runtime/toy_program.h"

// --- What is recorded ---

static void* q_of(const segment_caller_t* c, int32_t layer, size_t* out_bytes) {
  const kda_fixture_t* f = c->fixture;
  *out_bytes = kda_fixture_spec(f, layer, SG_KDA_BUFFER_Q)->bytes;
  return f->device[kda_fixture_index(f, layer, SG_KDA_BUFFER_Q)];
}

// Half of q comes on the second stream.
static sg_status_t bring_q(segment_caller_t* c, const sg_kda_segment_t* segment,
                           int32_t layer, bool joins) {
  size_t bytes;
  char* q = q_of(c, layer, &bytes);
  const char* source = c->source[layer];
  hipStream_t stream = segment->stream;
  size_t half = bytes / 2;
  SG_RETURN_IF_HIP_ERROR(hipMemsetAsync, q, 0xff, bytes, stream);
  SG_RETURN_IF_HIP_ERROR(hipEventRecord, c->fork, stream);
  SG_RETURN_IF_HIP_ERROR(hipStreamWaitEvent, c->side, c->fork, 0);
  SG_RETURN_IF_HIP_ERROR(hipMemcpyAsync, q, source, half,
                         hipMemcpyDeviceToDevice, c->side);
  SG_RETURN_IF_HIP_ERROR(hipMemcpyAsync, q + half, source + half, bytes - half,
                         hipMemcpyDeviceToDevice, stream);
  SG_RETURN_IF_HIP_ERROR(hipEventRecord, c->join, c->side);
  if (!joins) return sg_status_ok();
  SG_RETURN_IF_HIP_ERROR(hipStreamWaitEvent, stream, c->join, 0);
  return sg_status_ok();
}

static sg_status_t keep_o(const segment_caller_t* c,
                          const sg_kda_segment_t* segment, int32_t layer) {
  const kda_fixture_t* f = c->fixture;
  const void* o = f->device[kda_fixture_index(f, layer, SG_KDA_BUFFER_O)];
  SG_RETURN_IF_HIP_ERROR(hipMemcpyAsync, c->kept[layer], o,
                         kda_fixture_spec(f, layer, SG_KDA_BUFFER_O)->bytes,
                         hipMemcpyDeviceToDevice, segment->stream);
  return sg_status_ok();
}

static sg_status_t launch(const void* handle, void* params, uint32_t grid,
                          hipStream_t stream) {
  dim3 blocks = {grid, 1, 1}, threads = {32, 1, 1};
  void* arguments[] = {params};
  SG_RETURN_IF_HIP_ERROR(hipLaunchKernel, handle, blocks, threads, arguments, 0,
                         stream);
  return sg_status_ok();
}

static sg_status_t run_toy(const segment_caller_t* c,
                           const sg_kda_segment_t* segment) {
  toy_params_t toy = {
      .counts = segment->tables.counts,
      .query_start_loc = segment->tables.query_start_loc,
      .computed_lens = segment->tables.computed_lens,
      .slots = segment->tables.slots,
      .x = c->x,
      .state = c->state,
      .o = c->o,
      .null_slot = KDA_NULL_SLOT,
      .token_capacity = segment->capacity.max_tokens,
  };
  // An eager step may have no sequence, a launch always has a block.
  uint32_t sequences = (uint32_t)segment->capacity.max_sequences;
  SG_RETURN_IF_ERROR(launch(toy_layer_handle(), &toy,
                            sequences == 0 ? 1 : sequences, segment->stream));
  add_one_params_t count = {c->runs};
  SG_RETURN_IF_HIP_ERROR(hipLaunchKernel, add_one_handle(), ((dim3){1, 1, 1}),
                         ((dim3){1, 1, 1}), ((void*[]){&count}), 0,
                         segment->stream);
  return sg_status_ok();
}

static sg_status_t graph_of(hipStream_t stream, hipGraph_t* out_graph,
                            const hipGraphNode_t** out_last,
                            size_t* out_last_count) {
  hipStreamCaptureStatus status;
  unsigned long long id;
  SG_RETURN_IF_HIP_ERROR(hipStreamGetCaptureInfo_v2, stream, &status, &id,
                         out_graph, out_last, out_last_count);
  return sg_status_ok();
}

static void nothing(void* self) { (void)self; }

// The call exists in HIP 5.2, where hipLaunchHostFunc has no definition.
static sg_status_t add_host_node(hipStream_t stream) {
  hipGraph_t graph;
  const hipGraphNode_t* last;
  size_t last_count;
  SG_RETURN_IF_ERROR(graph_of(stream, &graph, &last, &last_count));
  hipGraphNode_t node;
  hipHostNodeParams host = {.fn = nothing, .userData = NULL};
  SG_RETURN_IF_HIP_ERROR(hipGraphAddHostNode, &node, graph, last, last_count,
                         &host);
  return sg_status_ok();
}

// Most of these look at no result, so that the capture must tell.
static sg_status_t err(segment_caller_t* c, const sg_kda_segment_t* segment) {
  void* memory = NULL;
  switch (c->fault) {
    case CALLER_FAILS: {
      bool joins = segment->mode != SG_RECORD_CAPTURE;
      SG_RETURN_IF_ERROR(bring_q(c, segment, 0, joins));
      return sg_status_make(SG_STATUS_NOT_FOUND, "the caller has lost it");
    }
    case CALLER_LEAVES_A_FORK:
      return bring_q(c, segment, 1, /*joins=*/false);
    case CALLER_ALLOCATES:
      (void)hipMalloc(&memory, 64);
      break;
    case CALLER_SYNCHRONISES:
      (void)hipStreamSynchronize(segment->stream);
      break;
    case CALLER_QUERIES:
      (void)hipStreamQuery(segment->stream);
      break;
    case CALLER_ADDS_A_HOST_NODE:
      return add_host_node(segment->stream);
    case CALLER_NO_FAULT:
      break;
  }
  (void)hipGetLastError();
  return sg_status_ok();
}

static sg_status_t record_layer(segment_caller_t* c,
                                const sg_kda_segment_t* segment,
                                int32_t layer) {
  SG_RETURN_IF_ERROR(bring_q(c, segment, layer, /*joins=*/true));
  SG_RETURN_IF_ERROR(sg_kda_segment_layer(segment, layer));
  return keep_o(c, segment, layer);
}

static sg_status_t look_at_graph(segment_caller_t* c,
                                 const sg_kda_segment_t* segment) {
  hipGraph_t graph;
  const hipGraphNode_t* last;
  size_t last_count;
  SG_RETURN_IF_ERROR(graph_of(segment->stream, &graph, &last, &last_count));
  SG_RETURN_IF_HIP_ERROR(hipGraphGetNodes, graph, NULL,
                         &c->node_count[segment->piece]);
  SG_RETURN_IF_HIP_ERROR(hipGraphGetEdges, graph, NULL, NULL,
                         &c->edge_count[segment->piece]);
  return sg_status_ok();
}

static sg_status_t record(void* self, const sg_kda_segment_t* segment) {
  segment_caller_t* c = self;
  assert_true(c->seen_count < CALLER_SEEN);
  c->seen[c->seen_count++] =
      (caller_seen_t){segment->mode, segment->piece, segment->capacity};
  bool cut = c->fixture->options.piece_count > 1;
  if (!cut || segment->piece == 0) {
    SG_RETURN_IF_ERROR(record_layer(c, segment, 0));
  }
  if (!cut || segment->piece == 1) {
    c->bad_layers[0] = sg_kda_segment_layer(segment, -1);
    c->bad_layers[1] = sg_kda_segment_layer(segment, 2);
    SG_RETURN_IF_ERROR(run_toy(c, segment));
  }
  if (!cut || segment->piece == 2) {
    SG_RETURN_IF_ERROR(record_layer(c, segment, 1));
  }
  if (c->fault != CALLER_NO_FAULT && segment->mode == c->faulty_mode) {
    return err(c, segment);
  }
  if (segment->mode != SG_RECORD_CAPTURE) return sg_status_ok();
  return look_at_graph(c, segment);
}

// --- Its memory ---

void segment_caller_set_up(segment_caller_t* c, kda_fixture_t* f,
                           int32_t piece_count, bool always_eager) {
  memset(c, 0, sizeof(*c));
  c->fixture = f;
  kda_fixture_options_t options = kda_fixture_defaults();
  options.captured = false;
  options.always_eager = always_eager;
  options.record = record;
  options.record_self = c;
  options.piece_count = piece_count;
  kda_fixture_set_up(f, &options);
  for (int32_t layer = 0; layer < options.layers; ++layer) {
    c->source[layer] = device_allocate(
        kda_fixture_spec(f, layer, SG_KDA_BUFFER_Q)->bytes, 0xff);
    c->kept[layer] = device_allocate(
        kda_fixture_spec(f, layer, SG_KDA_BUFFER_O)->bytes, 0xff);
  }
  c->x = device_allocate(sizeof(c->host_x), 0);
  c->o = device_allocate(sizeof(c->model_o), 0xee);
  c->state = device_allocate(sizeof(c->model_state), 0xee);
  c->runs = device_allocate(sizeof(uint64_t), 0);
  memset(c->model_state, 0xee, sizeof(c->model_state));
  for (uint64_t i = 0; i < KDA_MAX_TOKENS; ++i) c->host_x[i] = 17 * i + 5;
  device_upload(c->x, c->host_x, sizeof(c->host_x));
  assert_hip(hipStreamCreateWithFlags(&c->side, hipStreamNonBlocking));
  assert_hip(hipEventCreateWithFlags(&c->fork, hipEventDisableTiming));
  assert_hip(hipEventCreateWithFlags(&c->join, hipEventDisableTiming));
}

void segment_caller_tear_down(segment_caller_t* c) {
  kda_fixture_tear_down(c->fixture);
  for (int32_t layer = 0; layer < KDA_MAX_LAYERS; ++layer) {
    assert_hip(hipFree(c->source[layer]));
    assert_hip(hipFree(c->kept[layer]));
  }
  assert_hip(hipFree(c->x));
  assert_hip(hipFree(c->o));
  assert_hip(hipFree(c->state));
  assert_hip(hipFree(c->runs));
  assert_hip(hipStreamDestroy(c->side));
  assert_hip(hipEventDestroy(c->fork));
  assert_hip(hipEventDestroy(c->join));
}

// --- Steps ---

// The inputs as both fixtures drew them; q waits in the caller's memory.
static void place_inputs(segment_caller_t* c, kda_fixture_t* plain) {
  kda_fixture_new_inputs(c->fixture);
  kda_fixture_new_inputs(plain);
  for (int32_t layer = 0; layer < KDA_MAX_LAYERS; ++layer) {
    size_t bytes;
    void* q = q_of(c, layer, &bytes);
    assert_hip(hipMemcpy(c->source[layer], q, bytes, hipMemcpyDeviceToDevice));
    device_fill(q, 0xff, bytes);
    device_fill(c->kept[layer], 0xff,
                kda_fixture_spec(c->fixture, layer, SG_KDA_BUFFER_O)->bytes);
  }
}

static void check_equal(const void* device, const void* expected, size_t bytes,
                        const char* what) {
  char* found = malloc(bytes + 1);
  char* wanted = malloc(bytes + 1);
  assert_true(found != NULL && wanted != NULL);
  assert_hip(hipMemcpy(found, device, bytes, hipMemcpyDeviceToHost));
  assert_hip(hipMemcpy(wanted, expected, bytes, hipMemcpyDefault));
  if (memcmp(found, wanted, bytes) != 0) fail_msg("%s: other bits", what);
  free(found);
  free(wanted);
}

static void check_step(segment_caller_t* c, const kda_fixture_t* plain,
                       const sg_batch_t* batch) {
  const kda_fixture_t* f = c->fixture;
  size_t tokens = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    tokens += (size_t)batch->query_lens[n];
  }
  toy_model_step(batch, KDA_NULL_SLOT, c->host_x, c->model_state, c->model_o);
  check_equal(c->state, c->model_state, sizeof(c->model_state), "toy state");
  if (tokens > 0) check_equal(c->o, c->model_o, 8 * tokens, "toy o");
  for (int32_t layer = 0; layer < KDA_MAX_LAYERS; ++layer) {
    int o = kda_fixture_index(f, layer, SG_KDA_BUFFER_O);
    int state = kda_fixture_index(f, layer, SG_KDA_BUFFER_STATE);
    const sg_buffer_spec_t* specs = f->program->buffers;
    if (tokens > 0) {
      check_equal(c->kept[layer], plain->device[o],
                  tokens * specs[o].stride_bytes, specs[o].name);
    }
    check_equal(f->device[state], plain->device[state], specs[state].bytes,
                specs[state].name);
  }
}

static void run_by_piece(segment_caller_t* c, const sg_batch_t* batch,
                         sg_step_report_t* out_report) {
  kda_fixture_t* f = c->fixture;
  assert_ok(sg_executor_begin(f->executor, batch, NULL, f->stream, out_report));
  for (int32_t piece = 1; piece < CALLER_PIECES; ++piece) {
    // The toy layer's output is new, whatever was in it before its piece.
    if (piece == 1) {
      assert_hip(hipMemsetAsync(c->o, 0x11, sizeof(c->model_o), f->stream));
    }
    assert_ok(sg_executor_run_piece(f->executor, piece));
  }
  assert_hip(hipStreamSynchronize(f->stream));
}

void segment_caller_step(segment_caller_t* c, kda_fixture_t* plain,
                         bool by_piece, sg_step_report_t* out_report) {
  // The fp32 tolerance of test_kda_step.c.
  const double tolerance = 1e-5;
  kda_batch_t b, same;
  place_inputs(c, plain);
  kda_fixture_random_batch(c->fixture, &b);
  kda_fixture_random_batch(plain, &same);
  kda_fixture_step(plain, &same.batch, tolerance, tolerance, NULL);
  if (by_piece) {
    run_by_piece(c, &b.batch, out_report);
  } else {
    kda_fixture_run(c->fixture, &b.batch, out_report);
  }
  check_step(c, plain, &b.batch);
}
