// SPDX-License-Identifier: Apache-2.0

#include "tests/graphs/serving_model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_DIM = 256 };

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

// One token of one value head; |state| is [value_dim, key_dim].
static void advance(const sg_kda_geometry_t* g, const serving_inputs_t* in,
                    size_t token, int head, double* state, double* o) {
  size_t key_dim = (size_t)g->key_dim, value_dim = (size_t)g->value_dim;
  size_t value_head = token * (size_t)g->value_heads + (size_t)head;
  size_t qk_head =
      token * (size_t)g->heads + (size_t)(head / (g->value_heads / g->heads));
  const double* q = in->q + qk_head * key_dim;
  const double* k = in->k + qk_head * key_dim;
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
    double* row = state + j * key_dim;
    double predicted = 0, read = 0;
    for (size_t i = 0; i < key_dim; ++i) {
      row[i] *= decay[i];
      predicted += row[i] * k[i] * k_scale;
    }
    double delta = beta * (in->v[value_head * value_dim + j] - predicted);
    for (size_t i = 0; i < key_dim; ++i) {
      row[i] += k[i] * k_scale * delta;
      read += row[i] * q[i] * q_scale;
    }
    o[value_head * value_dim + j] = read;
  }
}

void serving_model_step(const sg_kda_geometry_t* g, const sg_batch_t* batch,
                        int32_t null_slot, const serving_inputs_t* inputs,
                        double* states, double* o) {
  size_t head_size = (size_t)g->value_dim * (size_t)g->key_dim;
  size_t slot_size = (size_t)g->value_heads * head_size;
  size_t row = (size_t)g->value_heads * (size_t)g->value_dim;
  size_t token = 0;
  for (int32_t n = 0; n < batch->sequence_count; ++n) {
    int32_t slot = batch->slots[n];
    bool live = slot >= 0 && slot != null_slot;
    double* state = live ? states + (size_t)slot * slot_size : NULL;
    if (live && batch->query_lens[n] > 0 && batch->computed_lens[n] == 0) {
      memset(state, 0, slot_size * sizeof(double));
    }
    for (int32_t t = 0; t < batch->query_lens[n]; ++t, ++token) {
      if (!live) memset(o + token * row, 0, row * sizeof(double));
      for (int head = 0; live && head < g->value_heads; ++head) {
        advance(g, inputs, token, head, state + (size_t)head * head_size, o);
      }
    }
  }
}
