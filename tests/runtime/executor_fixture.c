// SPDX-License-Identifier: Apache-2.0

#include "tests/runtime/executor_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/device_memory.h"

static sg_shape_t shapes[] = {
    {"decode-8", SG_PHASE_DECODE, 8, 8},
    {"decode-24", SG_PHASE_DECODE, 24, 24},
    {"prefill-64", SG_PHASE_PREFILL, 64, 8},
    {"mixed-48", SG_PHASE_MIXED, 48, 16},
    {"mixed-96", SG_PHASE_MIXED, 96, 20},
};

fixture_options_t fixture_defaults(void) {
  return (fixture_options_t){.ring_depth = 64,
                             .captured = true,
                             .piece_count = 1,
                             .layers = 1,
                             .allocator = sg_allocator_system()};
}

static void bind_owned(fixture_t* f) {
  const sg_buffer_binding_t none[TOY_BUFFER_COUNT] = {{0}};
  assert_ok(sg_executor_bind(f->executor, none, TOY_BUFFER_COUNT));
  for (size_t i = 0; i < TOY_BUFFER_COUNT; ++i) {
    f->device[i] = sg_executor_buffer(f->executor, i);
    device_fill(f->device[i], 0xee, f->toy.specs[i].bytes);
  }
}

static void bind_buffers(fixture_t* f) {
  sg_buffer_binding_t bindings[TOY_BUFFER_COUNT];
  for (int i = 0; i < TOY_BUFFER_COUNT; ++i) {
    bindings[i].bytes = f->toy.specs[i].bytes;
    f->device[i] = device_allocate(bindings[i].bytes, 0xee);
    bindings[i].address = f->device[i];
  }
  assert_ok(sg_executor_bind(f->executor, bindings, TOY_BUFFER_COUNT));
}

static void fill_buffers(fixture_t* f) {
  void* memory = NULL;
  size_t row_bytes = FIXTURE_MAX_TOKENS * sizeof(uint64_t);
  assert_hip(hipHostMalloc(&memory, row_bytes, hipHostMallocDefault));
  f->x = memory;
  assert_hip(hipHostMalloc(&memory, row_bytes, hipHostMallocDefault));
  f->o = memory;
  for (int i = 0; i < FIXTURE_MAX_TOKENS; ++i) f->x[i] = fixture_random(f);
  device_upload(f->device[TOY_X], f->x, row_bytes);
  memset(f->model_state, 0xee, sizeof(f->model_state));
}

void fixture_set_up(fixture_t* f, const fixture_options_t* options) {
  int device_count = 0;
  if (hipGetDeviceCount(&device_count) != hipSuccess || device_count == 0) {
    exit(77);
  }
  memset(f, 0, sizeof(*f));
  f->random = 1;
  sg_shape_limits_t limits = {FIXTURE_MAX_TOKENS, FIXTURE_MAX_SEQUENCES};
  toy_program_initialize(&f->toy, limits, FIXTURE_SLOTS, FIXTURE_NULL_SLOT,
                         options->tables);
  void* counter = device_allocate(sizeof(uint64_t), 0);
  f->foreign_counter = counter;
  toy_program_cut(&f->toy, options->piece_count,
                  options->foreign ? counter : NULL);
  if (options->piece_count == 1) f->toy.layers = options->layers;
  f->shapes = (sg_shapes_t){
      .limits = limits,
      .shapes = shapes,
      .shape_count = sizeof(shapes) / sizeof(shapes[0]),
      .policy = {.max_padding_ratio = options->max_padding_ratio,
                 .capture = options->capture,
                 .memory_budget_bytes = options->memory_budget_bytes,
                 .on_no_match = options->on_no_match}};
  sg_context_options_t context_options;
  sg_context_options_initialize(&context_options);
  context_options.allocator = options->allocator;
  context_options.device = options->device;
  context_options.log = options->log;
  context_options.log_self = options->log_self;
  assert_ok(sg_context_create(&context_options, &f->context));
  sg_executor_options_t executor_options;
  sg_executor_options_initialize(&executor_options);
  executor_options.ring_depth = options->ring_depth;
  executor_options.verify_every = options->verify_every;
  executor_options.always_eager = options->always_eager;
  assert_ok(sg_executor_create(f->context, &executor_options, &f->toy.program,
                               &f->shapes, &f->executor));
  assert_hip(hipStreamCreateWithFlags(&f->stream, hipStreamNonBlocking));
  f->owned = options->owned;
  if (options->owned) {
    bind_owned(f);
  } else {
    bind_buffers(f);
  }
  fill_buffers(f);
  if (options->captured)
    assert_ok(sg_executor_capture(f->executor, NULL, NULL));
}

void fixture_tear_down(fixture_t* f) {
  sg_executor_destroy(f->executor);
  sg_context_release(f->context);
  for (int i = 0; i < TOY_BUFFER_COUNT; ++i) {
    if (!f->owned) assert_hip(hipFree(f->device[i]));
  }
  assert_hip(hipFree(f->foreign_counter));
  assert_hip(hipHostFree(f->x));
  assert_hip(hipHostFree(f->o));
  assert_hip(hipStreamDestroy(f->stream));
}

// splitmix64.
uint64_t fixture_random(fixture_t* f) {
  uint64_t z = (f->random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int32_t random_below(fixture_t* f, int32_t limit) {
  return (int32_t)(fixture_random(f) % (uint64_t)limit);
}

// A slot that the batch does not use yet, or -1, or the null slot.
static int32_t random_slot(fixture_t* f, const test_batch_t* b, int32_t n) {
  int32_t kind = random_below(f, 12);
  if (kind == 0) return -1;
  if (kind == 1) return FIXTURE_NULL_SLOT;
  for (;;) {
    int32_t slot = random_below(f, FIXTURE_SLOTS);
    bool taken = slot == FIXTURE_NULL_SLOT;
    for (int32_t i = 0; i < n; ++i) taken = taken || b->slots[i] == slot;
    if (!taken) return slot;
  }
}

void fixture_random_batch(fixture_t* f, test_batch_t* b) {
  int32_t decodes = random_below(f, FIXTURE_MAX_SEQUENCES + 1);
  int32_t others = random_below(f, FIXTURE_MAX_SEQUENCES - decodes + 1);
  int32_t style = random_below(f, 4);
  if (style == 0) others = 0;
  if (style == 1) decodes = 0;
  int32_t room = FIXTURE_MAX_TOKENS - decodes;
  for (int32_t n = 0; n < decodes + others; ++n) {
    int32_t slot = random_slot(f, b, n);
    int32_t length = 1;
    if (n >= decodes) {
      length = random_below(f, 3) == 0 ? 0 : random_below(f, 24);
      if (length > room) length = room;
      room -= length;
    }
    bool known = slot >= 0 && slot != FIXTURE_NULL_SLOT;
    int32_t computed = known ? f->computed[slot] : 1;
    if (n < decodes && computed == 0) computed = 1;
    if (n >= decodes && random_below(f, 2) == 0) computed = 0;
    b->query_lens[n] = length;
    b->computed_lens[n] = computed;
    b->slots[n] = slot;
  }
  b->batch =
      (sg_batch_t){decodes + others, b->query_lens, b->computed_lens, b->slots};
}

void fixture_apply(fixture_t* f, const sg_batch_t* batch) {
  for (int32_t layer = 0; layer < f->toy.layers; ++layer) {
    toy_model_step(batch, FIXTURE_NULL_SLOT, f->x, f->model_state, f->model_o);
  }
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    int32_t slot = batch->slots[n];
    if (slot < 0 || slot == FIXTURE_NULL_SLOT || batch->query_lens[n] == 0) {
      continue;
    }
    f->computed[slot] = batch->computed_lens[n] + batch->query_lens[n];
  }
}

void fixture_check_state(fixture_t* f) {
  uint64_t state[FIXTURE_SLOTS];
  assert_hip(hipStreamSynchronize(f->stream));
  assert_hip(hipMemcpy(state, f->device[TOY_STATE], sizeof(state),
                       hipMemcpyDeviceToHost));
  for (int i = 0; i < FIXTURE_SLOTS; ++i) {
    if (state[i] != f->model_state[i]) {
      fail_msg("slot %d: expected %llx, found %llx", i,
               (unsigned long long)f->model_state[i],
               (unsigned long long)state[i]);
    }
  }
}

void fixture_step(fixture_t* f, const sg_batch_t* batch,
                  sg_step_report_t* out_report) {
  assert_ok(sg_executor_run(f->executor, batch, f->stream, out_report));
  fixture_apply(f, batch);
  fixture_check_state(f);
  int32_t tokens = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    tokens += batch->query_lens[n];
  }
  size_t bytes = (size_t)tokens * sizeof(uint64_t);
  if (bytes == 0) return;
  assert_hip(hipMemcpy(f->o, f->device[TOY_O], bytes, hipMemcpyDeviceToHost));
  assert_memory_equal(f->o, f->model_o, bytes);
}
