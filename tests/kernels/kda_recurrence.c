// SPDX-License-Identifier: Apache-2.0

#include "tests/kernels/kda_recurrence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIM = 256 };

static double sigmoid(double x) {
  return x >= 0.0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x));
}

static double softplus(double x) { return x > 20.0 ? x : log1p(exp(x)); }

static double log_decay(const sg_kda_geometry_t* geometry,
                        const kda_inputs_t* inputs, int64_t head,
                        int64_t channel, double raw) {
  if (geometry->gate_kind == SG_GATE_GIVEN) return raw;
  const double x = raw + inputs->dt_bias[head * geometry->key_dim + channel];
  const double rate = exp(inputs->a_log[head]);
  if (geometry->gate_kind == SG_GATE_SOFTPLUS) return -rate * softplus(x);
  return geometry->gate_lower_bound * sigmoid(rate * x);
}

static double beta_of(const sg_kda_geometry_t* geometry, double raw) {
  switch (geometry->beta_kind) {
    case SG_BETA_SIGMOID:
      return sigmoid(raw);
    case SG_BETA_DOUBLE_SIGMOID:
      return 2.0 * sigmoid(raw);
    default:
      return raw;
  }
}

static void load_normalised(const sg_kda_geometry_t* geometry,
                            const double* source, double scale, double* row) {
  double squares = 0.0;
  for (int32_t c = 0; c < geometry->key_dim; ++c) {
    squares += source[c] * source[c];
  }
  const double norm = geometry->qk_l2norm ? sqrt(squares + 1e-6) : 1.0;
  for (int32_t c = 0; c < geometry->key_dim; ++c) {
    row[c] = source[c] * scale / norm;
  }
}

// One token of one value head; |state| is [value_dim, key_dim].
static void step(const kda_case_t* test, const kda_inputs_t* inputs,
                 int64_t token, int64_t head, double* state, double* o) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t dim = geometry->key_dim;
  const int64_t key_head = head / (geometry->value_heads / geometry->heads);
  const int64_t key_offset = (token * geometry->heads + key_head) * dim;
  const int64_t row = token * geometry->value_heads + head;
  double q[MAX_DIM], k[MAX_DIM], decay[MAX_DIM];
  load_normalised(geometry, inputs->q + key_offset, geometry->scale, q);
  load_normalised(geometry, inputs->k + key_offset, 1.0, k);
  for (int64_t c = 0; c < dim; ++c) {
    decay[c] =
        exp(log_decay(geometry, inputs, head, c, inputs->raw_g[row * dim + c]));
  }
  const double beta = beta_of(geometry, inputs->raw_beta[row]);
  for (int64_t v = 0; v < geometry->value_dim; ++v) {
    double* s = state + v * dim;
    double prediction = 0.0, output = 0.0;
    for (int64_t c = 0; c < dim; ++c) {
      s[c] *= decay[c];
      prediction += s[c] * k[c];
    }
    const double delta =
        beta * (inputs->v[row * geometry->value_dim + v] - prediction);
    for (int64_t c = 0; c < dim; ++c) {
      s[c] += k[c] * delta;
      output += s[c] * q[c];
    }
    o[row * geometry->value_dim + v] = output;
  }
}

void kda_expected_initialize(const kda_case_t* test, const kda_inputs_t* inputs,
                             kda_expected_t* out_expected) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t heads = geometry->value_heads;
  const int64_t elements = (int64_t)geometry->value_dim * geometry->key_dim;
  const size_t state_bytes =
      sizeof(double) * (size_t)(test->sequence_count * heads * elements);
  out_expected->o =
      calloc((size_t)(kda_case_tokens(test) * heads * geometry->value_dim + 1),
             sizeof(double));
  out_expected->states = malloc(state_bytes + 1);
  memcpy(out_expected->states, inputs->states, state_bytes);
  int64_t token = 0;
  for (int32_t n = 0; n < test->sequence_count; ++n) {
    double* state = out_expected->states + n * heads * elements;
    const bool live = kda_case_is_live(test, n);
    if (live && test->computed[n] == 0) {
      memset(state, 0, sizeof(double) * (size_t)(heads * elements));
    }
    for (int32_t t = 0; t < test->lens[n]; ++t, ++token) {
      for (int64_t h = 0; live && h < heads; ++h) {
        step(test, inputs, token, h, state + h * elements, out_expected->o);
      }
    }
  }
}

void kda_expected_deinitialize(kda_expected_t* expected) {
  free(expected->o);
  free(expected->states);
}
