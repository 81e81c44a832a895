// SPDX-License-Identifier: Apache-2.0

#include "tests/graphs/kda_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static sg_shape_t shapes[] = {
    {"decode-4", SG_PHASE_DECODE, 4, 4},
    {"decode-12", SG_PHASE_DECODE, 12, 12},
    {"prefill-160", SG_PHASE_PREFILL, 160, 6},
    {"mixed-96", SG_PHASE_MIXED, 96, 8},
    {"mixed-320", SG_PHASE_MIXED, 320, 12},
};

kda_fixture_options_t kda_fixture_defaults(void) {
  return (kda_fixture_options_t){.geometry = {.heads = 2,
                                              .value_heads = 2,
                                              .key_dim = 32,
                                              .value_dim = 32,
                                              .conv_width = 4,
                                              .chunk_size = 64,
                                              .gate_kind = SG_GATE_SOFTPLUS,
                                              .gate_lower_bound = -5.0f,
                                              .qk_l2norm = true,
                                              .scale = 0.1767767f,
                                              .activation_dtype = SG_DTYPE_FP32,
                                              .norm_epsilon = 1e-5f},
                                 .layers = 2,
                                 .ring_depth = 64,
                                 .captured = true,
                                 .allocator = sg_allocator_system()};
}

// splitmix64.
uint64_t kda_fixture_random(kda_fixture_t* f) {
  uint64_t z = (f->random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int32_t random_below(kda_fixture_t* f, int32_t limit) {
  return (int32_t)(kda_fixture_random(f) % (uint64_t)limit);
}

// About N(0, 1): the sum of four uniform numbers.
static double random_normal(kda_fixture_t* f) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += (double)(kda_fixture_random(f) >> 11) * 0x1p-53 - 0.5;
  }
  return sum * sqrt(3.0);
}

static size_t spec_index(int32_t layer, int buffer) {
  return (size_t)layer * SG_KDA_BUFFERS_PER_LAYER + (size_t)buffer;
}

static bool is_fp32(const kda_fixture_t* f, int buffer) {
  return f->options.geometry.activation_dtype == SG_DTYPE_FP32 ||
         buffer == SG_KDA_BUFFER_A_LOG || buffer == SG_KDA_BUFFER_DT_BIAS ||
         buffer == SG_KDA_BUFFER_STATE;
}

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float from_bf16(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

static size_t element_count(const kda_fixture_t* f, int buffer) {
  return f->program->buffers[spec_index(0, buffer)].bytes /
         (is_fp32(f, buffer) ? 4 : 2);
}

// Rounds |host| to the buffer's type, so that both sides see equal numbers, and
// copies it to the device.
static void upload(const kda_fixture_t* f, int32_t layer, int buffer) {
  size_t count = element_count(f, buffer);
  size_t bytes = f->program->buffers[spec_index(layer, buffer)].bytes;
  double* host = f->host[layer][buffer];
  void* staged = malloc(bytes);
  assert_non_null(staged);
  for (size_t i = 0; i < count; ++i) {
    if (is_fp32(f, buffer)) {
      ((float*)staged)[i] = (float)host[i];
      host[i] = (double)(float)host[i];
    } else {
      ((uint16_t*)staged)[i] = to_bf16((float)host[i]);
      host[i] = (double)from_bf16(((uint16_t*)staged)[i]);
    }
  }
  assert_hip(hipMemcpy(f->device[spec_index(layer, buffer)], staged, bytes,
                       hipMemcpyHostToDevice));
  free(staged);
}

static void fill(kda_fixture_t* f, int32_t layer, int buffer) {
  size_t count = element_count(f, buffer);
  double* host = f->host[layer][buffer];
  for (size_t i = 0; i < count; ++i) {
    double z = random_normal(f);
    // Weights as in released models: decays of a few per cent a token.
    if (buffer == SG_KDA_BUFFER_A_LOG) z = 0.5 * z;
    if (buffer == SG_KDA_BUFFER_DT_BIAS) z = z - 3;
    host[i] = z;
  }
  upload(f, layer, buffer);
}

void kda_fixture_new_inputs(kda_fixture_t* f) {
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (int buffer = SG_KDA_BUFFER_Q; buffer <= SG_KDA_BUFFER_RAW_BETA;
         ++buffer) {
      fill(f, layer, buffer);
    }
  }
}

static void allocate_buffers(kda_fixture_t* f) {
  size_t count = f->program->buffer_count;
  sg_buffer_binding_t* bindings = calloc(count, sizeof(*bindings));
  f->device = calloc(count, sizeof(void*));
  assert_true(bindings != NULL && f->device != NULL);
  for (size_t i = 0; i < count; ++i) {
    size_t bytes = f->program->buffers[i].bytes;
    assert_hip(hipMalloc(&f->device[i], bytes));
    // 0xff bytes are NaN in every float format.
    assert_hip(hipMemset(f->device[i], 0xff, bytes));
    bindings[i] = (sg_buffer_binding_t){f->device[i], bytes};
  }
  assert_ok(sg_executor_bind(f->executor, bindings, count));
  free(bindings);
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (int b = 0; b < SG_KDA_BUFFERS_PER_LAYER; ++b) {
      f->host[layer][b] = calloc(element_count(f, b), sizeof(double));
      assert_non_null(f->host[layer][b]);
    }
    fill(f, layer, SG_KDA_BUFFER_A_LOG);
    fill(f, layer, SG_KDA_BUFFER_DT_BIAS);
  }
  f->expected_o = calloc(element_count(f, SG_KDA_BUFFER_O), sizeof(double));
  assert_non_null(f->expected_o);
  kda_fixture_new_inputs(f);
}

void kda_fixture_set_up(kda_fixture_t* f,
                        const kda_fixture_options_t* options) {
  int device_count = 0;
  if (hipGetDeviceCount(&device_count) != hipSuccess || device_count == 0) {
    exit(77);
  }
  memset(f, 0, sizeof(*f));
  f->options = *options;
  f->random = 1;
  f->model =
      (sg_model_t){.layers = options->layers, .geometry = options->geometry};
  f->shapes = (sg_shapes_t){.limits = {KDA_MAX_TOKENS, KDA_MAX_SEQUENCES},
                            .shapes = shapes,
                            .shape_count = sizeof(shapes) / sizeof(shapes[0])};
  const sg_target_t* target;
  assert_ok(sg_target_of_device(0, &target));
  sg_kda_step_options_t step_options = {.allocator = options->allocator,
                                        .model = &f->model,
                                        .limits = f->shapes.limits,
                                        .target = target,
                                        .slot_count = KDA_SLOTS,
                                        .null_slot = KDA_NULL_SLOT,
                                        .tables = options->tables};
  assert_ok(sg_kda_step_create(&step_options, &f->step));
  f->program = sg_kda_step_program(f->step);
  sg_context_options_t context_options;
  sg_context_options_initialize(&context_options);
  context_options.allocator = options->allocator;
  assert_ok(sg_context_create(&context_options, &f->context));
  sg_executor_options_t executor_options;
  sg_executor_options_initialize(&executor_options);
  executor_options.ring_depth = options->ring_depth;
  executor_options.verify_every = options->verify_every;
  executor_options.always_eager = options->always_eager;
  assert_ok(sg_executor_create(f->context, &executor_options, f->program,
                               &f->shapes, &f->executor));
  assert_hip(hipStreamCreateWithFlags(&f->stream, hipStreamNonBlocking));
  allocate_buffers(f);
  if (options->captured)
    assert_ok(sg_executor_capture(f->executor, NULL, NULL));
}

void kda_fixture_tear_down(kda_fixture_t* f) {
  sg_executor_destroy(f->executor);
  sg_context_release(f->context);
  for (size_t i = 0; i < f->program->buffer_count; ++i) {
    assert_hip(hipFree(f->device[i]));
  }
  sg_kda_step_destroy(f->step);
  assert_hip(hipStreamDestroy(f->stream));
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (int b = 0; b < SG_KDA_BUFFERS_PER_LAYER; ++b) free(f->host[layer][b]);
  }
  free(f->expected_o);
  free(f->device);
}

static int32_t random_slot(kda_fixture_t* f, const kda_batch_t* b, int32_t n) {
  int32_t kind = random_below(f, 12);
  if (kind == 0) return -1;
  if (kind == 1) return KDA_NULL_SLOT;
  for (;;) {
    int32_t slot = random_below(f, KDA_SLOTS);
    bool taken = slot == KDA_NULL_SLOT;
    for (int32_t i = 0; i < n; ++i) taken = taken || b->slots[i] == slot;
    if (!taken) return slot;
  }
}

// A sequence to decode must have a past; others may start anew.
static int32_t random_computed(kda_fixture_t* f, int32_t slot, bool decode) {
  if (slot < 0 || slot == KDA_NULL_SLOT) return decode ? 1 : 0;
  if (!decode && random_below(f, 3) == 0) return 0;
  return f->computed[slot];
}

void kda_fixture_random_batch(kda_fixture_t* f, kda_batch_t* b) {
  static const int32_t lengths[] = {0,  1,  2,  15, 16, 17,
                                    31, 40, 63, 64, 65, 90};
  const int32_t length_count = sizeof(lengths) / sizeof(lengths[0]);
  int32_t wanted_decodes = random_below(f, KDA_MAX_SEQUENCES + 1);
  int32_t others = random_below(f, KDA_MAX_SEQUENCES - wanted_decodes + 1);
  int32_t style = random_below(f, 4);
  if (style == 0) others = 0;
  if (style == 1) wanted_decodes = 0;
  int32_t room = KDA_MAX_TOKENS - wanted_decodes;
  int32_t n = 0;
  for (int32_t i = 0; i < wanted_decodes + others; ++i) {
    bool decode = i < wanted_decodes;
    int32_t slot = random_slot(f, b, n);
    int32_t computed = random_computed(f, slot, decode);
    if (decode && computed == 0) continue;
    int32_t length = decode ? 1 : lengths[random_below(f, length_count)];
    if (!decode && length > room) length = room;
    if (!decode) room -= length;
    b->query_lens[n] = length;
    b->computed_lens[n] = computed;
    b->slots[n] = slot;
    if (slot >= 0 && length > 0) f->computed[slot] = computed + length;
    ++n;
  }
  b->batch = (sg_batch_t){n, b->query_lens, b->computed_lens, b->slots};
}

void kda_fixture_read(const kda_fixture_t* f, int32_t layer, int buffer,
                      void* out_bytes, size_t bytes) {
  if (bytes == 0) return;
  assert_hip(hipMemcpy(out_bytes, f->device[spec_index(layer, buffer)], bytes,
                       hipMemcpyDeviceToHost));
}

// Relative L2 distance of |count| elements of a device buffer, from |first|, to
// |expected|.
static double distance(const kda_fixture_t* f, int32_t layer, int buffer,
                       size_t first, size_t count, const double* expected) {
  size_t element = is_fp32(f, buffer) ? 4 : 2;
  unsigned char* found = malloc(count * element);
  assert_non_null(found);
  const unsigned char* base = f->device[spec_index(layer, buffer)];
  assert_hip(hipMemcpy(found, base + first * element, count * element,
                       hipMemcpyDeviceToHost));
  double difference = 0, norm = 0;
  for (size_t i = 0; i < count; ++i) {
    double value = element == 4
                       ? (double)((const float*)(void*)found)[i]
                       : (double)from_bf16(((const uint16_t*)(void*)found)[i]);
    difference += (value - expected[i]) * (value - expected[i]);
    norm += expected[i] * expected[i];
  }
  free(found);
  return difference == 0 ? 0 : sqrt(difference / (norm + 1e-30));
}

static void check_layer(const kda_fixture_t* f, const sg_batch_t* batch,
                        int32_t layer, size_t tokens, double o_tolerance,
                        double state_tolerance) {
  size_t row = element_count(f, SG_KDA_BUFFER_O) / KDA_MAX_TOKENS;
  size_t slot_size = element_count(f, SG_KDA_BUFFER_STATE) / KDA_SLOTS;
  if (tokens > 0) {
    double error =
        distance(f, layer, SG_KDA_BUFFER_O, 0, tokens * row, f->expected_o);
    // Written so that NaN fails.
    if (!(error <= o_tolerance))
      fail_msg("layer %d: o off by %g", layer, error);
  }
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    int32_t slot = batch->slots[n];
    if (slot < 0 || slot == KDA_NULL_SLOT || f->computed[slot] == 0) continue;
    double error = distance(
        f, layer, SG_KDA_BUFFER_STATE, (size_t)slot * slot_size, slot_size,
        f->host[layer][SG_KDA_BUFFER_STATE] + (size_t)slot * slot_size);
    if (!(error <= state_tolerance)) {
      fail_msg("layer %d, slot %d: state off by %g", layer, slot, error);
    }
  }
}

void kda_fixture_step(kda_fixture_t* f, const sg_batch_t* batch,
                      double o_tolerance, double state_tolerance,
                      sg_step_report_t* out_report) {
  assert_ok(sg_executor_run(f->executor, batch, f->stream, out_report));
  assert_hip(hipStreamSynchronize(f->stream));
  size_t tokens = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    tokens += (size_t)batch->query_lens[n];
  }
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    double** host = f->host[layer];
    serving_inputs_t inputs = {.q = host[SG_KDA_BUFFER_Q],
                               .k = host[SG_KDA_BUFFER_K],
                               .v = host[SG_KDA_BUFFER_V],
                               .raw_g = host[SG_KDA_BUFFER_RAW_G],
                               .raw_beta = host[SG_KDA_BUFFER_RAW_BETA],
                               .a_log = host[SG_KDA_BUFFER_A_LOG],
                               .dt_bias = host[SG_KDA_BUFFER_DT_BIAS]};
    serving_model_step(&f->options.geometry, batch, KDA_NULL_SLOT, &inputs,
                       host[SG_KDA_BUFFER_STATE], f->expected_o);
    check_layer(f, batch, layer, tokens, o_tolerance, state_tolerance);
  }
}
