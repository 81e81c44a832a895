// SPDX-License-Identifier: Apache-2.0

#include "cli/fill.h"

#include <math.h>
#include <string.h>

#include "kernels/random_fill/random_fill.h"

// Standard deviation and mean of a buffer's elements.
typedef struct distribution_t {
  float scale;
  float offset;
} distribution_t;

static distribution_t unit_distribution(const sg_kda_geometry_t* geometry) {
  (void)geometry;
  return (distribution_t){1.0f, 0.0f};
}

static distribution_t qk_distribution(const sg_kda_geometry_t* geometry) {
  // Without normalisation in the kernel a vector should have about length 1.
  float scale =
      geometry->qk_l2norm ? 1.0f : 1.0f / sqrtf((float)geometry->key_dim);
  return (distribution_t){scale, 0.0f};
}

// A sum over the width has the variance of one input.
static distribution_t conv_weight_distribution(
    const sg_kda_geometry_t* geometry) {
  return (distribution_t){1.0f / sqrtf((float)geometry->conv_width), 0.0f};
}

static distribution_t gate_distribution(const sg_kda_geometry_t* geometry) {
  if (geometry->gate_kind != SG_GATE_GIVEN) {
    return (distribution_t){1.0f, 0.0f};
  }
  // A log decay is below 0; the numbers end at 3.46 deviations.
  return (distribution_t){0.05f, -0.2f};
}

static distribution_t beta_distribution(const sg_kda_geometry_t* geometry) {
  if (geometry->beta_kind != SG_BETA_GIVEN) {
    return (distribution_t){1.0f, 0.0f};
  }
  // Between 0 and 1.
  return (distribution_t){0.14f, 0.5f};
}

// The logarithm of a uniform number in [1, 16], as these layers are initialised
// and near what they are trained to, has about this mean and deviation. Under a
// lower bound the factor on the gate stays near 1.
static distribution_t a_log_distribution(const sg_kda_geometry_t* geometry) {
  if (geometry->gate_kind == SG_GATE_LOWER_BOUND) {
    return (distribution_t){0.5f, 0.0f};
  }
  return (distribution_t){0.7f, 1.96f};
}

// The inverse softplus of step sizes from 0.001 to 0.1, which lies between -6.9
// and -2.3; trained models have -7.8 to -1.4.
static distribution_t dt_bias_distribution(const sg_kda_geometry_t* geometry) {
  (void)geometry;
  return (distribution_t){1.3f, -4.6f};
}

static distribution_t state_distribution(const sg_kda_geometry_t* geometry) {
  (void)geometry;
  return (distribution_t){0.1f, 0.0f};
}

// Trained weights of a norm stay near the 1 that they start from.
static distribution_t norm_weight_distribution(
    const sg_kda_geometry_t* geometry) {
  (void)geometry;
  return (distribution_t){0.2f, 1.0f};
}

typedef struct rule_t {
  // Last part of the buffer's name.
  const char* name;
  distribution_t (*distribution)(const sg_kda_geometry_t* geometry);
} rule_t;

static const rule_t rules[] = {
    {"q", qk_distribution},
    {"k", qk_distribution},
    {"v", unit_distribution},
    {"qkv", qk_distribution},
    {"conv_weight", conv_weight_distribution},
    {"conv_cache", qk_distribution},
    {"raw_g", gate_distribution},
    {"raw_beta", beta_distribution},
    {"a_log", a_log_distribution},
    {"dt_bias", dt_bias_distribution},
    {"state", state_distribution},
    {"output_gate", unit_distribution},
    {"norm_weight", norm_weight_distribution},
};

static sg_status_t find_distribution(const sg_session_t* session,
                                     const sg_buffer_spec_t* spec,
                                     distribution_t* out_distribution) {
  const char* dot = strrchr(spec->name, '.');
  const char* name = dot == NULL ? spec->name : dot + 1;
  for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
    if (strcmp(rules[i].name, name) != 0) continue;
    *out_distribution = rules[i].distribution(&session->model.geometry);
    return sg_status_ok();
  }
  return sg_status_make(SG_STATUS_INTERNAL, "no numbers are known for %s",
                        spec->name);
}

// The output function of splitmix64, which keeps streams of near seeds apart.
static uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

static sg_status_t fill_rows(const sg_session_t* session, size_t buffer,
                             uint64_t seed, size_t offset_bytes, int64_t rows,
                             size_t row_bytes, size_t stride_bytes) {
  const sg_buffer_spec_t* spec = &session->program->buffers[buffer];
  distribution_t distribution;
  SG_RETURN_IF_ERROR(find_distribution(session, spec, &distribution));
  const int64_t element_bytes = (int64_t)sg_dtype_bytes(spec->dtype);
  const sg_enqueue_t where = {.stream = session->stream,
                              .target = session->target,
                              .layer = spec->layer};
  const sg_random_fill_args_t args = {
      .data = (unsigned char*)session->bindings[buffer].address + offset_bytes,
      .dtype = spec->dtype,
      .rows = rows,
      .row_elements = (int64_t)row_bytes / element_bytes,
      .row_stride = (int64_t)stride_bytes / element_bytes,
      .seed = mix(seed ^ mix(buffer)),
      .scale = distribution.scale,
      .offset = distribution.offset,
  };
  return sg_status_annotate(sg_random_fill_enqueue(&where, &args), "%s",
                            spec->name);
}

sg_status_t sg_fill_weights(const sg_session_t* session, uint64_t seed) {
  for (size_t i = 0; i < session->program->buffer_count; ++i) {
    const sg_buffer_spec_t* spec = &session->program->buffers[i];
    if (spec->role != SG_BUFFER_WEIGHT) continue;
    SG_RETURN_IF_ERROR(fill_rows(session, i, mix(seed), /*offset_bytes=*/0,
                                 /*rows=*/1, spec->bytes, spec->bytes));
  }
  return sg_status_ok();
}

sg_status_t sg_fill_inputs(const sg_session_t* session, uint64_t seed,
                           uint64_t step, int32_t token_count) {
  // Weights have the seed itself: steps count from 1.
  const uint64_t step_seed = mix(mix(seed) + step);
  for (size_t i = 0; i < session->program->buffer_count; ++i) {
    const sg_buffer_spec_t* spec = &session->program->buffers[i];
    if (spec->role != SG_BUFFER_INPUT) continue;
    SG_RETURN_IF_ERROR(fill_rows(session, i, step_seed, /*offset_bytes=*/0,
                                 token_count, spec->row_bytes,
                                 spec->stride_bytes));
  }
  return sg_status_ok();
}

sg_status_t sg_fill_slot(const sg_session_t* session, uint64_t seed,
                         int32_t slot) {
  const uint64_t slot_seed = mix(mix(seed) ^ mix((uint64_t)slot));
  for (size_t i = 0; i < session->program->buffer_count; ++i) {
    const sg_buffer_spec_t* spec = &session->program->buffers[i];
    if (spec->role != SG_BUFFER_POOL) continue;
    SG_RETURN_IF_ERROR(fill_rows(session, i, slot_seed,
                                 (size_t)slot * spec->stride_bytes, /*rows=*/1,
                                 spec->row_bytes, spec->stride_bytes));
  }
  return sg_status_ok();
}
