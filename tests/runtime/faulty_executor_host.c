// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "runtime/hip_host/hip_host.h"
#include "tests/check.h"
#include "tests/device_memory.h"
#include "tests/runtime/faulty_executor.h"

static sg_shape_t shapes[FAULTY_SHAPES] = {
    {"decode-4", SG_PHASE_DECODE, 4, 4},
    {"prefill-32", SG_PHASE_PREFILL, 32, 4},
    {"mixed-32", SG_PHASE_MIXED, 32, 8},
};

static const int32_t ones[] = {1, 1, 1, 1};
static const int32_t prompts[] = {9, 0, 17};
static const int32_t both[] = {1, 1, 5, 20};
static const int32_t tall[] = {30, 30};
static const int32_t known[] = {3, 4, 5, 6};
static const int32_t fresh[] = {0, 0, 0};
static const int32_t slots_a[] = {1, 2, 3, 4};
static const int32_t slots_b[] = {4, 7, 2};

sg_batch_t faulty_batch(int step) {
  if (step == FAULTY_STEPS - 1) {
    return (sg_batch_t){2, tall, fresh, slots_b};
  }
  switch (step % 3) {
    case 0:
      return (sg_batch_t){4, ones, known, slots_a};
    case 1:
      return (sg_batch_t){3, prompts, fresh, slots_b};
    default:
      return (sg_batch_t){4, both, known, slots_a};
  }
}

int faulty_shape(int step) { return step == FAULTY_STEPS - 1 ? -1 : step % 3; }

void faulty_set_up(faulty_world_t* w) {
  memset(w, 0, sizeof(*w));
  sg_shape_limits_t limits = {FAULTY_TOKENS, FAULTY_SEQUENCES};
  toy_program_initialize(&w->toy, limits, FAULTY_SLOTS, -1, SG_TABLES_DEVICE);
  w->shapes = (sg_shapes_t){
      .limits = limits, .shapes = shapes, .shape_count = FAULTY_SHAPES};
  assert_hip(hipStreamCreateWithFlags(&w->stream, hipStreamNonBlocking));
  for (int i = 0; i < TOY_BUFFER_COUNT; ++i) {
    w->bindings[i].bytes = w->toy.specs[i].bytes;
    assert_hip(hipMalloc(&w->bindings[i].address, w->bindings[i].bytes));
  }
  for (int i = 0; i < FAULTY_TOKENS; ++i) w->x[i] = 77777u * (uint64_t)(i + 1);
  device_upload(w->bindings[TOY_X].address, w->x, sizeof(w->x));
  for (int i = 0; i < FAULTY_SLOTS; ++i) w->model[0][i] = (uint64_t)i + 1;
  for (int step = 0; step < FAULTY_STEPS; ++step) {
    uint64_t o[FAULTY_TOKENS];
    memcpy(w->model[step + 1], w->model[step], sizeof(w->model[step]));
    sg_batch_t batch = faulty_batch(step);
    toy_model_step(&batch, -1, w->x, w->model[step + 1], o);
  }
}

void faulty_tear_down(faulty_world_t* w) {
  for (int i = 0; i < TOY_BUFFER_COUNT; ++i) {
    assert_hip(hipFree(w->bindings[i].address));
  }
  assert_hip(hipStreamDestroy(w->stream));
}

static void note_shape(void* self, size_t done_count, size_t shape_count,
                       const sg_shape_t* shape,
                       const sg_shape_statistics_t* statistics,
                       sg_status_t status) {
  (void)done_count;
  (void)shape_count;
  (void)shape;
  faulty_life_t* life = self;
  assert_int_equal(statistics->captured, sg_status_is_ok(status));
  if (sg_status_is_ok(status)) return;
  ++life->failed_shapes;
  life->shape_status = status;
}

static void run_steps(faulty_world_t* w, sg_executor_t* executor,
                      faulty_life_t* life) {
  for (int step = 0; step < FAULTY_STEPS; ++step) {
    sg_batch_t batch = faulty_batch(step);
    life->run =
        sg_executor_run(executor, &batch, w->stream, &life->reports[step]);
    if (!sg_status_is_ok(life->run)) {
      life->again = sg_executor_run(executor, &batch, w->stream, NULL);
      return;
    }
    ++life->steps;
  }
}

static void live(faulty_world_t* w, sg_executor_t* executor,
                 faulty_life_t* life) {
  life->bind = sg_executor_bind(executor, w->bindings, TOY_BUFFER_COUNT);
  if (!sg_status_is_ok(life->bind)) return;
  life->capture = sg_executor_capture(executor, note_shape, life);
  if (!sg_status_is_ok(life->capture)) return;
  run_steps(w, executor, life);
}

static void check_state(const faulty_world_t* w, const faulty_order_t* order,
                        const faulty_life_t* life) {
  uint64_t state[FAULTY_SLOTS];
  assert_hip(hipStreamSynchronize(w->stream));
  assert_hip(hipMemcpy(state, w->bindings[TOY_STATE].address, sizeof(state),
                       hipMemcpyDeviceToHost));
  if (memcmp(state, w->model[life->steps], sizeof(state)) == 0) return;
  if (!sg_status_is_ok(life->run) &&
      memcmp(state, w->model[life->steps + 1], sizeof(state)) == 0) {
    return;
  }
  fail_msg("call %d of %s failed: the state is wrong after %d steps",
           order == NULL ? 0 : (int)order->nth,
           order == NULL ? "none" : order->name, life->steps);
}

static void check_paired(const faulty_order_t* order, const char* make,
                         const char* destroy) {
  uint64_t made = sg_hip_host_call_count(make);
  if (order != NULL && strcmp(order->name, make) == 0) {
    uint64_t tried = made >= order->nth ? made - order->nth + 1 : 0;
    made -= tried < order->count ? tried : order->count;
  }
  uint64_t destroyed = sg_hip_host_call_count(destroy);
  if (destroyed < made) {
    fail_msg("%d times made by %s, %d calls of %s", (int)made, make,
             (int)destroyed, destroy);
  }
}

void faulty_live(faulty_world_t* w, counting_allocator_t* counting,
                 const faulty_order_t* order, faulty_life_t* life) {
  memset(life, 0, sizeof(*life));
  device_upload(w->bindings[TOY_STATE].address, w->model[0],
                sizeof(w->model[0]));
  size_t memory = sg_hip_host_memory_in_use(0);
  sg_executor_options_t options;
  sg_executor_options_initialize(&options);
  sg_context_options_t context_options;
  sg_context_options_initialize(&context_options);
  context_options.allocator = counting_allocator(counting);
  options.verify_every = w->verify_every;
  w->shapes.policy.capture = w->capture;
  sg_hip_host_reset_counters();
  if (order != NULL) {
    assert_hip(sg_hip_host_fail_calls(order->name, order->nth, order->count,
                                      order->error));
  }
  sg_executor_t* executor = NULL;
  sg_context_t* context = NULL;
  life->create = sg_context_create(&context_options, &context);
  if (sg_status_is_ok(life->create)) {
    life->create = sg_executor_create(context, &options, &w->toy.program,
                                      &w->shapes, &executor);
  }
  if (sg_status_is_ok(life->create)) {
    live(w, executor, life);
  } else {
    assert_null(executor);
  }
  if (order != NULL) life->calls = sg_hip_host_call_count(order->name);
  sg_hip_host_reset_faults();
  assert_int_equal(hipGetLastError(), hipSuccess);
  check_state(w, order, life);
  sg_executor_destroy(executor);
  sg_context_release(context);
  assert_int_equal(sg_hip_host_memory_in_use(0), memory);
  assert_int_equal(counting->live, 0);
  check_paired(order, "hipHostMalloc", "hipHostFree");
  check_paired(order, "hipStreamCreateWithFlags", "hipStreamDestroy");
  check_paired(order, "hipEventCreateWithFlags", "hipEventDestroy");
  check_paired(order, "hipGraphInstantiate", "hipGraphExecDestroy");
}
