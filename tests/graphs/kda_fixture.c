// SPDX-License-Identifier: Apache-2.0

#include "tests/graphs/kda_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/device_memory.h"

enum { GUARD = 0xa5, GUARD_BYTES = 256 };

static sg_shape_t default_shapes[] = {
    {"decode-4", SG_PHASE_DECODE, 4, 4},
    {"decode-12", SG_PHASE_DECODE, 12, 12},
    {"prefill-160", SG_PHASE_PREFILL, 160, 6},
    {"mixed-96", SG_PHASE_MIXED, 96, 8},
    {"mixed-320", SG_PHASE_MIXED, 320, 12},
};

kda_fixture_options_t kda_fixture_defaults(void) {
  return (kda_fixture_options_t){
      .geometry = {.heads = 2,
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
      .shapes = default_shapes,
      .shape_count = sizeof(default_shapes) / sizeof(default_shapes[0]),
      .ring_depth = 64,
      .captured = true,
      .allocator = sg_allocator_system()};
}

// splitmix64.
size_t kda_fixture_chunk_nodes(void) {
  return sg_flavour_of_build() == SG_FLAVOUR_HOST ? 1 : 2;
}

uint64_t kda_fixture_random(kda_fixture_t* f) {
  uint64_t z = (f->random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// About N(0, 1): the sum of four uniform numbers.
static double random_normal(kda_fixture_t* f) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += (double)(kda_fixture_random(f) >> 11) * 0x1p-53 - 0.5;
  }
  return sum * sqrt(3.0);
}

int kda_fixture_index(const kda_fixture_t* f, int32_t layer,
                      sg_kda_buffer_t buffer) {
  return sg_kda_step_buffer(f->step, layer, buffer);
}

const sg_buffer_spec_t* kda_fixture_spec(const kda_fixture_t* f, int32_t layer,
                                         sg_kda_buffer_t buffer) {
  int index = kda_fixture_index(f, layer, buffer);
  return index < 0 ? NULL : &f->program->buffers[index];
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

double kda_fixture_element(sg_dtype_t dtype, const void* data, size_t index) {
  return dtype == SG_DTYPE_FP32
             ? (double)((const float*)data)[index]
             : (double)from_bf16(((const uint16_t*)data)[index]);
}

static void set_element(sg_dtype_t dtype, void* data, size_t index,
                        double value) {
  if (dtype == SG_DTYPE_FP32) {
    ((float*)data)[index] = (float)value;
  } else {
    ((uint16_t*)data)[index] = to_bf16((float)value);
  }
}

double kda_fixture_round_to_fp32(double value) { return (double)(float)value; }

double kda_fixture_round_to_bf16(double value) {
  return (double)from_bf16(to_bf16((float)value));
}

// Elements |first| to |first + count| of the host's numbers, to the device's
// from |target| on.
static void upload(const kda_fixture_t* f, int32_t layer,
                   sg_kda_buffer_t buffer, size_t first, size_t count,
                   size_t target) {
  sg_dtype_t dtype = kda_fixture_spec(f, layer, buffer)->dtype;
  size_t element = sg_dtype_bytes(dtype);
  void* staged = malloc(count * element + 1);
  assert_non_null(staged);
  for (size_t i = 0; i < count; ++i) {
    set_element(dtype, staged, i, f->host[layer][buffer][first + i]);
  }
  char* address = f->device[kda_fixture_index(f, layer, buffer)];
  device_upload(address + target * element, staged, count * element);
  free(staged);
}

// Numbers as in released models: decays of a few per cent a token, outputs of
// the convolution and of the norm near 1.
static double draw(kda_fixture_t* f, sg_kda_buffer_t buffer) {
  double z = random_normal(f);
  switch (buffer) {
    case SG_KDA_BUFFER_A_LOG:
    case SG_KDA_BUFFER_CONV_WEIGHT:
      return 0.5 * z;
    case SG_KDA_BUFFER_DT_BIAS:
      return z - 3;
    case SG_KDA_BUFFER_NORM_WEIGHT:
      return 0.2 * z + 1;
    default:
      return z;
  }
}

// Both sides get numbers of the buffer's type.
static void fill(kda_fixture_t* f, int32_t layer, sg_kda_buffer_t buffer) {
  const sg_buffer_spec_t* spec = kda_fixture_spec(f, layer, buffer);
  size_t count = spec->bytes / sg_dtype_bytes(spec->dtype);
  for (size_t i = 0; i < count; ++i) {
    double value = draw(f, buffer);
    f->host[layer][buffer][i] = spec->dtype == SG_DTYPE_FP32
                                    ? kda_fixture_round_to_fp32(value)
                                    : kda_fixture_round_to_bf16(value);
  }
  upload(f, layer, buffer, 0, count, 0);
}

static void fill_role(kda_fixture_t* f, sg_buffer_role_t role) {
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (int b = 0; b < SG_KDA_BUFFER_COUNT; ++b) {
      const sg_buffer_spec_t* spec =
          kda_fixture_spec(f, layer, (sg_kda_buffer_t)b);
      if (spec != NULL && spec->role == role) {
        fill(f, layer, (sg_kda_buffer_t)b);
      }
    }
  }
}

void kda_fixture_new_inputs(kda_fixture_t* f) { fill_role(f, SG_BUFFER_INPUT); }

void kda_fixture_clear_inputs(kda_fixture_t* f, int byte) {
  for (size_t i = 0; i < f->program->buffer_count; ++i) {
    const sg_buffer_spec_t* spec = &f->program->buffers[i];
    if (spec->role != SG_BUFFER_INPUT) continue;
    device_fill(f->device[i], byte, spec->bytes);
  }
}

void kda_fixture_place_inputs(kda_fixture_t* f, int32_t first_row,
                              int32_t row_count, int32_t target_row) {
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (int b = 0; b < SG_KDA_BUFFER_COUNT; ++b) {
      sg_kda_buffer_t buffer = (sg_kda_buffer_t)b;
      const sg_buffer_spec_t* spec = kda_fixture_spec(f, layer, buffer);
      if (spec == NULL || spec->role != SG_BUFFER_INPUT) continue;
      size_t row = spec->row_bytes / sg_dtype_bytes(spec->dtype);
      upload(f, layer, buffer, (size_t)first_row * row, (size_t)row_count * row,
             (size_t)target_row * row);
    }
  }
}

// Memory with a guard on both sides.
static void* allocate_guarded(size_t bytes) {
  char* memory = device_allocate(bytes + 2 * GUARD_BYTES, GUARD);
  // 0xff bytes are NaN in every float format.
  char* data = memory + GUARD_BYTES;
  device_fill(data, 0xff, bytes);
  return data;
}

static void free_guarded(void* data, const sg_buffer_spec_t* spec) {
  unsigned char guard[2][GUARD_BYTES];
  char* memory = (char*)data - GUARD_BYTES;
  assert_hip(hipMemcpy(guard[0], memory, GUARD_BYTES, hipMemcpyDeviceToHost));
  assert_hip(hipMemcpy(guard[1], (char*)data + spec->bytes, GUARD_BYTES,
                       hipMemcpyDeviceToHost));
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < GUARD_BYTES; ++i) {
      if (guard[side][i] == GUARD) continue;
      fail_msg("%s: a byte %s it was written", spec->name,
               side == 0 ? "before" : "behind");
    }
  }
  assert_hip(hipFree(memory));
}

static void allocate_host(kda_fixture_t* f) {
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (int b = 0; b < SG_KDA_BUFFER_COUNT; ++b) {
      const sg_buffer_spec_t* spec =
          kda_fixture_spec(f, layer, (sg_kda_buffer_t)b);
      if (spec == NULL) continue;
      f->host[layer][b] =
          calloc(spec->bytes / sg_dtype_bytes(spec->dtype), sizeof(double));
      assert_non_null(f->host[layer][b]);
    }
  }
  const sg_buffer_spec_t* o = kda_fixture_spec(f, 0, SG_KDA_BUFFER_O);
  f->expected_o = calloc(o->bytes / sg_dtype_bytes(o->dtype), sizeof(double));
  assert_non_null(f->expected_o);
}

static void allocate_buffers(kda_fixture_t* f) {
  size_t count = f->program->buffer_count;
  sg_buffer_binding_t* bindings = calloc(count, sizeof(*bindings));
  f->device = calloc(count, sizeof(void*));
  assert_true(bindings != NULL && f->device != NULL);
  for (size_t i = 0; i < count; ++i) {
    size_t bytes = f->program->buffers[i].bytes;
    f->device[i] = allocate_guarded(bytes);
    bindings[i] = (sg_buffer_binding_t){f->device[i], bytes};
  }
  assert_ok(sg_executor_bind(f->executor, bindings, count));
  free(bindings);
  allocate_host(f);
  fill_role(f, SG_BUFFER_WEIGHT);
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
                            .shapes = options->shapes,
                            .shape_count = options->shape_count,
                            .policy = {.capture = options->capture}};
  const sg_target_t* target;
  assert_ok(sg_target_of_device(0, &target));
  sg_kda_step_options_t step_options = {.allocator = options->allocator,
                                        .model = &f->model,
                                        .limits = f->shapes.limits,
                                        .target = target,
                                        .slot_count = KDA_SLOTS,
                                        .null_slot = KDA_NULL_SLOT,
                                        .with_conv = options->with_conv,
                                        .with_norm = options->with_norm,
                                        .zero_tail = options->zero_tail,
                                        .tables = options->tables,
                                        .record = options->record,
                                        .record_self = options->record_self,
                                        .piece_count = options->piece_count};
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
    free_guarded(f->device[i], &f->program->buffers[i]);
  }
  sg_kda_step_destroy(f->step);
  assert_hip(hipStreamDestroy(f->stream));
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    for (int b = 0; b < SG_KDA_BUFFER_COUNT; ++b) free(f->host[layer][b]);
  }
  free(f->expected_o);
  free(f->device);
}

void kda_fixture_read(const kda_fixture_t* f, int32_t layer,
                      sg_kda_buffer_t buffer, void* out_bytes, size_t bytes) {
  if (bytes == 0) return;
  assert_hip(hipMemcpy(out_bytes,
                       f->device[kda_fixture_index(f, layer, buffer)], bytes,
                       hipMemcpyDeviceToHost));
}
