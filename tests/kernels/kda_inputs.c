// SPDX-License-Identifier: Apache-2.0

#include "tests/kernels/kda_inputs.h"

#include <math.h>
#include <stdlib.h>

uint64_t kda_random_bits(uint64_t* stream) {
  uint64_t z = *stream += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double kda_random_uniform(uint64_t* stream) {
  return ((double)(kda_random_bits(stream) >> 11) + 0.5) * 0x1p-53;
}

// Box and Muller.
double kda_random_normal(uint64_t* stream) {
  const double radius = sqrt(-2.0 * log(kda_random_uniform(stream)));
  return radius * cos(6.283185307179586 * kda_random_uniform(stream));
}

// To |fraction_bits| of fraction and exponents not below |least_exponent|, by
// the definition of rounding to nearest even; the kernels' conversions have a
// test of their own.
static double round_to(double value, int fraction_bits, int least_exponent) {
  if (value == 0.0 || !isfinite(value)) return value;
  int exponent;
  frexp(value, &exponent);
  --exponent;
  if (exponent < least_exponent) exponent = least_exponent;
  const double unit = ldexp(1.0, exponent - fraction_bits);
  return nearbyint(value / unit) * unit;
}

double kda_round(sg_dtype_t dtype, double value) {
  switch (dtype) {
    case SG_DTYPE_BF16:
      return round_to(value, 7, -126);
    case SG_DTYPE_FP16:
      return round_to(value, 10, -14);
    default:
      return (double)(float)value;
  }
}

static double* fill_normal(uint64_t* stream, int64_t count, double scale) {
  double* values = malloc(sizeof(double) * (size_t)(count + 1));
  for (int64_t i = 0; i < count; ++i) {
    values[i] = scale * kda_random_normal(stream);
  }
  return values;
}

static void round_all(double* values, int64_t count, sg_dtype_t dtype) {
  for (int64_t i = 0; i < count; ++i) values[i] = kda_round(dtype, values[i]);
}

static void set_all(double* values, int64_t count, double value) {
  for (int64_t i = 0; i < count; ++i) values[i] = value;
}

static void fill_gate_weights(const kda_case_t* test, uint64_t* stream,
                              kda_inputs_t* inputs) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t heads = geometry->value_heads;
  inputs->a_log = fill_normal(stream, heads, 0.5);
  inputs->dt_bias = fill_normal(stream, heads * geometry->key_dim, 1.0);
  if (geometry->gate_kind == SG_GATE_SOFTPLUS) {
    for (int64_t h = 0; h < heads; ++h) {
      inputs->a_log[h] = log(1.0 + 15.0 * kda_random_uniform(stream));
    }
  }
  if (test->inputs == KDA_INPUTS_HUGE_A_LOG) {
    set_all(inputs->a_log, heads, 100.0);
  }
  if (test->inputs == KDA_INPUTS_HARD) {
    for (int64_t i = 0; i < heads * geometry->key_dim; ++i) {
      inputs->dt_bias[i] = -7.8 + 6.4 * kda_random_uniform(stream);
    }
  }
  if (!test->has_bias) {
    set_all(inputs->dt_bias, heads * geometry->key_dim, 0.0);
  }
  round_all(inputs->a_log, heads, SG_DTYPE_FP32);
  round_all(inputs->dt_bias, heads * geometry->key_dim, SG_DTYPE_FP32);
}

// raw_g whose gate is about |log_decay| < 0, whatever the kind of gate.
static double raw_gate_of(const kda_case_t* test, const kda_inputs_t* inputs,
                          int64_t head, int64_t channel, double log_decay) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  if (geometry->gate_kind == SG_GATE_GIVEN) return log_decay;
  const double rate = exp(inputs->a_log[head]);
  const double bias = inputs->dt_bias[head * geometry->key_dim + channel];
  if (geometry->gate_kind == SG_GATE_SOFTPLUS) {
    const double x = -log_decay / rate;
    return (x > 30.0 ? x : log(expm1(x))) - bias;
  }
  const double part = log_decay / geometry->gate_lower_bound;
  return (part >= 1.0 ? 40.0 : log(part / (1.0 - part))) / rate - bias;
}

// The gate that the kind of inputs asks for, 0 for whatever is there.
static double wanted_gate(const kda_case_t* test, uint64_t* stream) {
  switch (test->inputs) {
    case KDA_INPUTS_WEAK_GATES:
    case KDA_INPUTS_IDENTICAL_KEYS:
    case KDA_INPUTS_NEAR_KEYS:
      return -1e-4;
    case KDA_INPUTS_RESETS:
      return -1000.0;
    case KDA_INPUTS_HARD:
      return test->geometry.gate_kind != SG_GATE_LOWER_BOUND &&
                     kda_random_uniform(stream) < 0.1
                 ? -1000.0
                 : 0.0;
    default:
      return 0.0;
  }
}

static void fill_gates(const kda_case_t* test, uint64_t* stream,
                       kda_inputs_t* inputs) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t tokens = kda_case_tokens(test);
  const bool hard = test->inputs == KDA_INPUTS_HARD;
  const bool given = geometry->gate_kind == SG_GATE_GIVEN;
  inputs->raw_g =
      fill_normal(stream, tokens * geometry->value_heads * geometry->key_dim,
                  hard ? 10.0 : 1.0);
  double* raw = inputs->raw_g;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < geometry->value_heads; ++h) {
      for (int64_t c = 0; c < geometry->key_dim; ++c, ++raw) {
        if (given) *raw = -fabs(*raw);
        const double gate = wanted_gate(test, stream);
        if (gate < 0.0) *raw = raw_gate_of(test, inputs, h, c, gate);
        if (test->inputs == KDA_INPUTS_MINUS_INFINITY && !given &&
            (t + c) % 5 == 0) {
          *raw = -INFINITY;
        }
      }
    }
  }
  round_all(inputs->raw_g, tokens * geometry->value_heads * geometry->key_dim,
            given ? SG_DTYPE_FP32 : geometry->activation_dtype);
}

static void fill_betas(const kda_case_t* test, uint64_t* stream,
                       kda_inputs_t* inputs) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t count = (int64_t)kda_case_tokens(test) * geometry->value_heads;
  const bool given = geometry->beta_kind == SG_BETA_GIVEN;
  inputs->raw_beta = fill_normal(stream, count, 1.0);
  for (int64_t i = 0; i < count; ++i) {
    double* raw = &inputs->raw_beta[i];
    if (test->inputs == KDA_INPUTS_HARD) *raw += 3.0;
    if (given) *raw = 1.0 / (1.0 + exp(-*raw));
    if (test->inputs == KDA_INPUTS_IDENTICAL_KEYS) *raw = given ? 1.0 : 40.0;
    if (test->inputs == KDA_INPUTS_NEAR_KEYS) *raw = given ? 0.9997 : 8.112;
  }
  round_all(inputs->raw_beta, count,
            given ? SG_DTYPE_FP32 : geometry->activation_dtype);
}

// How far keys stray from one common key; 1 for keys of their own.
static double key_spread(kda_inputs_kind_t kind) {
  switch (kind) {
    case KDA_INPUTS_HARD:
      return 0.02;
    case KDA_INPUTS_NEAR_KEYS:
      return 1e-3;
    case KDA_INPUTS_IDENTICAL_KEYS:
      return 0.0;
    default:
      return 1.0;
  }
}

static void fill_keys(const kda_case_t* test, uint64_t* stream,
                      kda_inputs_t* inputs) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  const int64_t width = (int64_t)geometry->heads * geometry->key_dim;
  const int64_t tokens = kda_case_tokens(test);
  // Without the L2 norm rows must have about unit length by themselves.
  double scale = geometry->qk_l2norm ? 1.0 : 1.0 / sqrt(geometry->key_dim);
  if (test->inputs == KDA_INPUTS_TINY_KEYS) scale *= 1e-4;
  inputs->q = fill_normal(stream, tokens * width, scale);
  double* common = fill_normal(stream, width, scale);
  const double spread = key_spread(test->inputs);
  inputs->k = fill_normal(stream, tokens * width, scale * spread);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t c = 0; c < width; ++c) {
      if (spread < 1.0) inputs->k[t * width + c] += common[c];
      if (test->inputs == KDA_INPUTS_ZERO_KEYS && t % 3 == 0) {
        inputs->q[t * width + c] = 0.0;
        inputs->k[t * width + c] = 0.0;
      }
    }
  }
  free(common);
  round_all(inputs->q, tokens * width, geometry->activation_dtype);
  round_all(inputs->k, tokens * width, geometry->activation_dtype);
}

void kda_inputs_initialize(const kda_case_t* test, kda_inputs_t* out_inputs) {
  const sg_kda_geometry_t* geometry = &test->geometry;
  uint64_t stream = test->seed;
  const int64_t tokens = kda_case_tokens(test);
  const int64_t values = tokens * geometry->value_heads * geometry->value_dim;
  const int64_t state_values = (int64_t)test->sequence_count *
                               geometry->value_heads * geometry->value_dim *
                               geometry->key_dim;
  fill_gate_weights(test, &stream, out_inputs);
  fill_keys(test, &stream, out_inputs);
  out_inputs->v = fill_normal(&stream, values, 1.0);
  round_all(out_inputs->v, values, geometry->activation_dtype);
  fill_gates(test, &stream, out_inputs);
  fill_betas(test, &stream, out_inputs);
  out_inputs->states = fill_normal(&stream, state_values, 1.0);
  round_all(out_inputs->states, state_values, geometry->state_dtype);
}

void kda_inputs_deinitialize(kda_inputs_t* inputs) {
  free(inputs->q);
  free(inputs->k);
  free(inputs->v);
  free(inputs->raw_g);
  free(inputs->raw_beta);
  free(inputs->a_log);
  free(inputs->dt_bias);
  free(inputs->states);
}
