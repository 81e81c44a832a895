// SPDX-License-Identifier: Apache-2.0
//
// An executor over the KDA step program with buffers on the device and seeded
// inputs, beside the serving model.

#ifndef STEPGRAPH_TESTS_GRAPHS_KDA_FIXTURE_H_
#define STEPGRAPH_TESTS_GRAPHS_KDA_FIXTURE_H_

#include "graphs/kda_step.h"
#include "runtime/executor.h"
#include "tests/graphs/serving_model.h"

enum {
  KDA_MAX_TOKENS = 320,
  KDA_MAX_SEQUENCES = 12,
  KDA_SLOTS = 20,
  KDA_NULL_SLOT = 3,
  KDA_MAX_LAYERS = 2,
};

typedef struct kda_fixture_options_t {
  sg_kda_geometry_t geometry;
  int32_t layers;
  bool with_conv;
  bool with_norm;
  bool zero_tail;
  // Within KDA_MAX_TOKENS and KDA_MAX_SEQUENCES; must outlive the fixture.
  sg_shape_t* shapes;
  size_t shape_count;
  int32_t ring_depth;
  int32_t verify_every;
  sg_table_source_t tables;
  bool always_eager;
  // Capture as the policy says at set-up.
  bool captured;
  sg_capture_time_t capture;
  // A step of the test's own (graphs/kda_step.h), or NULL.
  sg_kda_record_function_t record;
  void* record_self;
  int32_t piece_count;
  sg_allocator_t allocator;
} kda_fixture_options_t;

// Two layers of two heads, K = V = 32, softplus gates, fp32, without conv and
// norm; five shapes of all phases, ring of 64.
kda_fixture_options_t kda_fixture_defaults(void);

typedef struct kda_fixture_t {
  kda_fixture_options_t options;
  sg_model_t model;
  sg_shapes_t shapes;
  sg_kda_step_t* step;
  const sg_program_t* program;
  sg_context_t* context;
  sg_executor_t* executor;
  hipStream_t stream;
  // Device addresses, one a buffer of the program. Tearing down checks that
  // nothing was written around them.
  void** device;
  // In double, what the device buffers hold; NULL where the step has none.
  double* host[KDA_MAX_LAYERS][SG_KDA_BUFFER_COUNT];
  // Expected output of the last step.
  double* expected_o;
  int32_t computed[KDA_SLOTS];
  uint64_t random;
} kda_fixture_t;

// Exits with 77 where there is no device.
void kda_fixture_set_up(kda_fixture_t* fixture,
                        const kda_fixture_options_t* options);
void kda_fixture_tear_down(kda_fixture_t* fixture);

uint64_t kda_fixture_random(kda_fixture_t* fixture);

// Where |buffer| of |layer| stands among the program's, or -1, and its spec, or
// NULL.
int kda_fixture_index(const kda_fixture_t* fixture, int32_t layer,
                      sg_kda_buffer_t buffer);
const sg_buffer_spec_t* kda_fixture_spec(const kda_fixture_t* fixture,
                                         int32_t layer, sg_kda_buffer_t buffer);

// An element of fp32 or bf16 data.
double kda_fixture_element(sg_dtype_t dtype, const void* data, size_t index);

double kda_fixture_round_to_fp32(double value);
double kda_fixture_round_to_bf16(double value);

// New inputs of all layers, copied to the device; waits.
void kda_fixture_new_inputs(kda_fixture_t* fixture);

// Sets every byte of the inputs on the device.
void kda_fixture_clear_inputs(kda_fixture_t* fixture, int byte);

// Copies |row_count| rows of the inputs, as last drawn, from |first_row| to
// |target_row| on the device.
void kda_fixture_place_inputs(kda_fixture_t* fixture, int32_t first_row,
                              int32_t row_count, int32_t target_row);

typedef struct kda_batch_t {
  int32_t query_lens[KDA_MAX_SEQUENCES];
  int32_t computed_lens[KDA_MAX_SEQUENCES];
  int32_t slots[KDA_MAX_SEQUENCES];
  sg_batch_t batch;
} kda_batch_t;

// A random legal batch that goes on from the slots' computed lengths, which it
// advances: decodes, prefills, empty sequences, some without a slot.
void kda_fixture_random_batch(kda_fixture_t* fixture, kda_batch_t* out_batch);

// Runs |batch| on the executor and waits. |out_report| may be NULL.
void kda_fixture_run(kda_fixture_t* fixture, const sg_batch_t* batch,
                     sg_step_report_t* out_report);

// Advances the model by |batch|, which has run on the device, and compares
// outputs and states of every layer in relative L2; caches must be equal.
void kda_fixture_check(kda_fixture_t* fixture, const sg_batch_t* batch,
                       double o_tolerance, double state_tolerance);

// Runs |batch| on the executor and on the model, waits, and compares outputs
// and states of every layer in relative L2; caches must be equal, and the null
// slots untouched.
void kda_fixture_step(kda_fixture_t* fixture, const sg_batch_t* batch,
                      double o_tolerance, double state_tolerance,
                      sg_step_report_t* out_report);

// Copies |bytes| from buffer |buffer| of |layer|; the stream must be idle.
void kda_fixture_read(const kda_fixture_t* fixture, int32_t layer,
                      sg_kda_buffer_t buffer, void* out_bytes, size_t bytes);

#endif  // STEPGRAPH_TESTS_GRAPHS_KDA_FIXTURE_H_
