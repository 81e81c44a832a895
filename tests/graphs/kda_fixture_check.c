// SPDX-License-Identifier: Apache-2.0
//
// Steps on the device held against the serving model.

#include <math.h>
#include <stdlib.h>

#include "tests/check.h"
#include "tests/graphs/kda_fixture.h"

// Relative L2 distance of |count| elements of a device buffer, from |first|, to
// |expected|.
static double distance(const kda_fixture_t* f, int32_t layer,
                       sg_kda_buffer_t buffer, size_t first, size_t count,
                       const double* expected) {
  sg_dtype_t dtype = kda_fixture_spec(f, layer, buffer)->dtype;
  size_t element = sg_dtype_bytes(dtype);
  char* found = malloc(count * element);
  assert_non_null(found);
  const char* base = f->device[kda_fixture_index(f, layer, buffer)];
  assert_hip(hipMemcpy(found, base + first * element, count * element,
                       hipMemcpyDeviceToHost));
  double difference = 0, norm = 0;
  for (size_t i = 0; i < count; ++i) {
    double value = kda_fixture_element(dtype, found, i);
    difference += (value - expected[i]) * (value - expected[i]);
    norm += expected[i] * expected[i];
  }
  free(found);
  return difference == 0 ? 0 : sqrt(difference / (norm + 1e-30));
}

static void check_output(const kda_fixture_t* f, int32_t layer, size_t tokens,
                         double tolerance) {
  if (tokens == 0) return;
  const sg_buffer_spec_t* spec = kda_fixture_spec(f, layer, SG_KDA_BUFFER_O);
  size_t row = spec->row_bytes / sg_dtype_bytes(spec->dtype);
  double error =
      distance(f, layer, SG_KDA_BUFFER_O, 0, tokens * row, f->expected_o);
  // Written so that NaN fails.
  if (!(error <= tolerance)) fail_msg("layer %d: o off by %g", layer, error);
}

// The slots of |batch| in |buffer|, where the step has it.
static void check_slots(const kda_fixture_t* f, const sg_batch_t* batch,
                        int32_t layer, sg_kda_buffer_t buffer,
                        double tolerance) {
  const sg_buffer_spec_t* spec = kda_fixture_spec(f, layer, buffer);
  if (spec == NULL) return;
  size_t size = spec->row_bytes / sg_dtype_bytes(spec->dtype);
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    int32_t slot = batch->slots[n];
    if (slot < 0 || slot == KDA_NULL_SLOT || f->computed[slot] == 0) continue;
    size_t first = (size_t)slot * size;
    double error =
        distance(f, layer, buffer, first, size, f->host[layer][buffer] + first);
    if (!(error <= tolerance)) {
      fail_msg("slot %d of %s off by %g", slot, spec->name, error);
    }
  }
}

// Nothing may touch the null slot, which holds what it was made with.
static void check_null_slot(const kda_fixture_t* f, int32_t layer,
                            sg_kda_buffer_t buffer) {
  const sg_buffer_spec_t* spec = kda_fixture_spec(f, layer, buffer);
  if (spec == NULL) return;
  unsigned char* pool = malloc(spec->bytes);
  assert_non_null(pool);
  kda_fixture_read(f, layer, buffer, pool, spec->bytes);
  const unsigned char* slot = pool + KDA_NULL_SLOT * spec->stride_bytes;
  for (size_t i = 0; i < spec->row_bytes; ++i) {
    if (slot[i] != 0xff) fail_msg("%s: the null slot changed", spec->name);
  }
  free(pool);
}

static void advance_model(const kda_fixture_t* f, const sg_batch_t* batch,
                          int32_t layer) {
  double* const* host = f->host[layer];
  const serving_inputs_t inputs = {
      .q = host[SG_KDA_BUFFER_Q],
      .k = host[SG_KDA_BUFFER_K],
      .v = host[SG_KDA_BUFFER_V],
      .qkv = host[SG_KDA_BUFFER_QKV],
      .conv_weight = host[SG_KDA_BUFFER_CONV_WEIGHT],
      .raw_g = host[SG_KDA_BUFFER_RAW_G],
      .raw_beta = host[SG_KDA_BUFFER_RAW_BETA],
      .a_log = host[SG_KDA_BUFFER_A_LOG],
      .dt_bias = host[SG_KDA_BUFFER_DT_BIAS],
      .output_gate = host[SG_KDA_BUFFER_OUTPUT_GATE],
      .norm_weight = host[SG_KDA_BUFFER_NORM_WEIGHT],
      .rounded = f->options.geometry.activation_dtype == SG_DTYPE_FP32
                     ? kda_fixture_round_to_fp32
                     : kda_fixture_round_to_bf16,
  };
  serving_model_step(&f->options.geometry, batch, KDA_NULL_SLOT, &inputs,
                     host[SG_KDA_BUFFER_STATE], host[SG_KDA_BUFFER_CONV_CACHE],
                     f->expected_o);
  const sg_buffer_spec_t* state =
      kda_fixture_spec(f, layer, SG_KDA_BUFFER_STATE);
  if (state->dtype == SG_DTYPE_FP32) return;
  // What a step leaves behind is rounded.
  for (size_t i = 0; i < state->bytes / sg_dtype_bytes(state->dtype); ++i) {
    double* value = &host[SG_KDA_BUFFER_STATE][i];
    *value = kda_fixture_round_to_bf16(*value);
  }
}

void kda_fixture_run(kda_fixture_t* f, const sg_batch_t* batch,
                     sg_step_report_t* out_report) {
  assert_ok(sg_executor_run(f->executor, batch, f->stream, out_report));
  assert_hip(hipStreamSynchronize(f->stream));
}

void kda_fixture_check(kda_fixture_t* f, const sg_batch_t* batch,
                       double o_tolerance, double state_tolerance) {
  size_t tokens = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    tokens += (size_t)batch->query_lens[n];
  }
  for (int32_t layer = 0; layer < f->options.layers; ++layer) {
    advance_model(f, batch, layer);
    check_output(f, layer, tokens, o_tolerance);
    check_slots(f, batch, layer, SG_KDA_BUFFER_STATE, state_tolerance);
    // Raw inputs, kept as they are.
    check_slots(f, batch, layer, SG_KDA_BUFFER_CONV_CACHE, 0);
    check_null_slot(f, layer, SG_KDA_BUFFER_STATE);
    check_null_slot(f, layer, SG_KDA_BUFFER_CONV_CACHE);
  }
}

void kda_fixture_step(kda_fixture_t* f, const sg_batch_t* batch,
                      double o_tolerance, double state_tolerance,
                      sg_step_report_t* out_report) {
  kda_fixture_run(f, batch, out_report);
  kda_fixture_check(f, batch, o_tolerance, state_tolerance);
}
