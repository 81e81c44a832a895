// SPDX-License-Identifier: Apache-2.0

#include "tests/graphs/serving_model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/check.h"

enum { MAX_DIM = 256, MAX_CHANNELS = 4096 };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double log_decay(const sg_kda_geometry_t* g, double raw, double a_log,
                        double bias) {
  double x = raw + bias;
  switch (g->gate_kind) {
    case SG_GATE_SOFTPLUS:
      return -exp(a_log) * (x > 20 ? x : log1p(exp(x)));
    case SG_GATE_LOWER_BOUND:
      return (double)g->gate_lower_bound * sigmoid(exp(a_log) * x);
    case SG_GATE_GIVEN:
      break;
  }
  return raw;
}

static double write_strength(const sg_kda_geometry_t* g, double raw) {
  switch (g->beta_kind) {
    case SG_BETA_SIGMOID:
      return sigmoid(raw);
    case SG_BETA_DOUBLE_SIGMOID:
      return 2 * sigmoid(raw);
    case SG_BETA_GIVEN:
      break;
  }
  return raw;
}

static double inverse_norm(const sg_kda_geometry_t* g, const double* x) {
  if (!g->qk_l2norm) return 1;
  double sum = 0;
  for (int i = 0; i < g->key_dim; ++i) sum += x[i] * x[i];
  return 1 / sqrt(sum + 1e-6);
}

// The rows of one token that the recurrence reads.
typedef struct projections_t {
  const double* q;
  const double* k;
  const double* v;
} projections_t;

// One token of one value head; |state| is [value_dim, key_dim].
static void advance(const sg_kda_geometry_t* g, const serving_inputs_t* in,
                    const projections_t* row, size_t token, int head,
                    double* state, double* o) {
  size_t key_dim = (size_t)g->key_dim, value_dim = (size_t)g->value_dim;
  size_t value_head = token * (size_t)g->value_heads + (size_t)head;
  size_t qk_head = (size_t)(head / (g->value_heads / g->heads));
  const double* q = row->q + qk_head * key_dim;
  const double* k = row->k + qk_head * key_dim;
  const double* v = row->v + (size_t)head * value_dim;
  double q_scale = inverse_norm(g, q) * (double)g->scale;
  double k_scale = inverse_norm(g, k);
  double beta = write_strength(g, in->raw_beta[value_head]);
  double decay[MAX_DIM];
  for (size_t i = 0; i < key_dim; ++i) {
    decay[i] =
        exp(log_decay(g, in->raw_g[value_head * key_dim + i], in->a_log[head],
                      in->dt_bias[(size_t)head * key_dim + i]));
  }
  for (size_t j = 0; j < value_dim; ++j) {
    double* state_row = state + j * key_dim;
    double predicted = 0, read = 0;
    for (size_t i = 0; i < key_dim; ++i) {
      state_row[i] *= decay[i];
      predicted += state_row[i] * k[i] * k_scale;
    }
    double delta = beta * (v[j] - predicted);
    for (size_t i = 0; i < key_dim; ++i) {
      state_row[i] += k[i] * k_scale * delta;
      read += state_row[i] * q[i] * q_scale;
    }
    o[value_head * value_dim + j] = read;
  }
}

// One token: |cache| [width - 1, channels] has the inputs before it, oldest
// first, and takes it in.
static void convolve(const sg_kda_geometry_t* g, const serving_inputs_t* in,
                     const double* x, size_t channels, double* cache,
                     double* y) {
  size_t width = (size_t)g->conv_width;
  for (size_t d = 0; d < channels; ++d) {
    const double* weight = in->conv_weight + d * width;
    double sum = weight[width - 1] * x[d];
    for (size_t i = 0; i + 1 < width; ++i) {
      sum += weight[i] * cache[i * channels + d];
    }
    y[d] = in->rounded(sum * sigmoid(sum));
  }
  memmove(cache, cache + channels, (width - 2) * channels * sizeof(double));
  memcpy(cache + (width - 2) * channels, x, channels * sizeof(double));
}

static void normalise(const sg_kda_geometry_t* g, const serving_inputs_t* in,
                      size_t value_head, double* o) {
  size_t value_dim = (size_t)g->value_dim;
  double* row = o + value_head * value_dim;
  const double* gate = in->output_gate + value_head * value_dim;
  double squares = 0;
  for (size_t j = 0; j < value_dim; ++j) {
    row[j] = in->rounded(row[j]);
    squares += row[j] * row[j];
  }
  double scale = 1 / sqrt(squares / g->value_dim + (double)g->norm_epsilon);
  for (size_t j = 0; j < value_dim; ++j) {
    row[j] *= scale * in->norm_weight[j] * sigmoid(gate[j]);
  }
}

// One token of a sequence whose slot holds |state| and |cache|.
static void advance_token(const sg_kda_geometry_t* g,
                          const serving_inputs_t* in, size_t token,
                          size_t channels, double* state, double* cache,
                          double* o) {
  size_t qk = (size_t)g->heads * (size_t)g->key_dim;
  size_t head_size = (size_t)g->value_dim * (size_t)g->key_dim;
  double y[MAX_CHANNELS];
  projections_t row = {.q = y, .k = y + qk, .v = y + 2 * qk};
  if (in->qkv != NULL) {
    convolve(g, in, in->qkv + token * channels, channels, cache, y);
  } else {
    row.q = in->q + token * qk;
    row.k = in->k + token * qk;
    row.v = in->v + token * (channels - 2 * qk);
  }
  for (int head = 0; head < g->value_heads; ++head) {
    advance(g, in, &row, token, head, state + (size_t)head * head_size, o);
    if (in->norm_weight == NULL) continue;
    normalise(g, in, token * (size_t)g->value_heads + (size_t)head, o);
  }
}

void serving_model_step(const sg_kda_geometry_t* g, const sg_batch_t* batch,
                        int32_t null_slot, const serving_inputs_t* inputs,
                        double* states, double* caches, double* o) {
  size_t row = (size_t)g->value_heads * (size_t)g->value_dim;
  size_t state_size = row * (size_t)g->key_dim;
  size_t channels = 2 * (size_t)g->heads * (size_t)g->key_dim + row;
  size_t cache_size =
      inputs->qkv == NULL ? 0 : (size_t)(g->conv_width - 1) * channels;
  assert_true(channels <= MAX_CHANNELS);
  size_t token = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    size_t slot = (size_t)batch->slots[n];
    bool live = batch->slots[n] >= 0 && batch->slots[n] != null_slot;
    double* state = live ? states + slot * state_size : NULL;
    double* cache = live && cache_size > 0 ? caches + slot * cache_size : NULL;
    if (live && batch->query_lens[n] > 0 && batch->computed_lens[n] == 0) {
      memset(state, 0, state_size * sizeof(double));
      if (cache != NULL) memset(cache, 0, cache_size * sizeof(double));
    }
    for (int32_t t = 0; t < batch->query_lens[n]; ++t, ++token) {
      if (live) {
        advance_token(g, inputs, token, channels, state, cache, o);
      } else {
        memset(o + token * row, 0, row * sizeof(double));
      }
    }
  }
}
