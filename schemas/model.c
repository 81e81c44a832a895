// SPDX-License-Identifier: Apache-2.0

#include "schemas/model.h"

#include <math.h>

#include "schemas/bundled.h"
#include "schemas/json_reader.h"
#include "schemas/text_file.h"

// Limits far above any model, so that products of a few of them fit in 64 bits.
enum {
  MAX_FILE_BYTES = 1 << 20,
  MAX_LAYERS = 1024,
  MAX_HEADS = 1024,
  MAX_DIM = 1024,
  MAX_CONV_WIDTH = 16,
  MAX_CHUNK_SIZE = 1024,
};

// In the order of sg_gate_kind_t, sg_beta_kind_t and sg_dtype_t. States are one
// of the first two types.
static const char* const gate_kinds[] = {"softplus", "lower_bound", "given"};
static const char* const beta_kinds[] = {"sigmoid", "double_sigmoid", "given"};
static const char* const dtypes[] = {"fp32", "bf16", "fp16"};

static sg_status_t read_sizes(const sg_json_node_t* root, sg_model_t* model) {
  sg_kda_geometry_t* geometry = &model->geometry;
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "layers", SG_JSON_REQUIRED, 1,
                                       MAX_LAYERS, &model->layers));
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "heads", SG_JSON_REQUIRED, 1,
                                       MAX_HEADS, &geometry->heads));
  geometry->value_heads = geometry->heads;
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "value_heads", SG_JSON_OPTIONAL, 1,
                                       MAX_HEADS, &geometry->value_heads));
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "key_dim", SG_JSON_REQUIRED, 1,
                                       MAX_DIM, &geometry->key_dim));
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "value_dim", SG_JSON_REQUIRED, 1,
                                       MAX_DIM, &geometry->value_dim));
  geometry->conv_width = 4;
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "conv_width", SG_JSON_OPTIONAL, 1,
                                       MAX_CONV_WIDTH, &geometry->conv_width));
  geometry->chunk_size = 64;
  SG_RETURN_IF_ERROR(sg_json_get_int32(root, "chunk_size", SG_JSON_OPTIONAL, 1,
                                       MAX_CHUNK_SIZE, &geometry->chunk_size));
  if (geometry->value_heads % geometry->heads != 0) {
    return sg_json_error(root,
                         "expected value_heads to be a multiple of heads, "
                         "found %d value_heads and %d heads",
                         (int)geometry->value_heads, (int)geometry->heads);
  }
  return sg_status_ok();
}

static sg_status_t read_gate(const sg_json_node_t* root,
                             sg_kda_geometry_t* geometry) {
  static const char* const keys[] = {"kind", "lower_bound"};
  const sg_json_range_t range = {.min = -5, .max = 0, .is_max_open = true};
  sg_json_node_t gate;
  SG_RETURN_IF_ERROR(sg_json_get(root, "gate", SG_JSON_REQUIRED, &gate));
  SG_RETURN_IF_ERROR(sg_json_check_object(&gate, keys, 2));
  int32_t kind = 0;
  SG_RETURN_IF_ERROR(sg_json_get_choice(&gate, "kind", SG_JSON_REQUIRED,
                                        gate_kinds, 3, &kind));
  geometry->gate_kind = (sg_gate_kind_t)kind;
  if (geometry->gate_kind == SG_GATE_LOWER_BOUND) {
    return sg_json_get_float(&gate, "lower_bound", SG_JSON_REQUIRED, range,
                             &geometry->gate_lower_bound);
  }
  sg_json_node_t bound;
  SG_RETURN_IF_ERROR(
      sg_json_get(&gate, "lower_bound", SG_JSON_OPTIONAL, &bound));
  if (bound.value == NULL) return sg_status_ok();
  return sg_json_error(&bound, "a gate of kind \"%s\" has no lower bound",
                       gate_kinds[kind]);
}

static sg_status_t read_scale(const sg_json_node_t* root,
                              sg_kda_geometry_t* geometry) {
  const sg_json_range_t range = {.min = 0, .max = 1000, .is_min_open = true};
  geometry->scale = (float)(1.0 / sqrt((double)geometry->key_dim));
  sg_json_node_t scale;
  SG_RETURN_IF_ERROR(sg_json_get(root, "scale", SG_JSON_OPTIONAL, &scale));
  if (scale.value == NULL || sg_json_is_null(&scale)) return sg_status_ok();
  return sg_json_get_float(root, "scale", SG_JSON_OPTIONAL, range,
                           &geometry->scale);
}

static sg_status_t read_numerics(const sg_json_node_t* root,
                                 sg_kda_geometry_t* geometry) {
  const sg_json_range_t epsilon = {.min = 0, .max = 1, .is_min_open = true};
  int32_t beta = SG_BETA_SIGMOID;
  SG_RETURN_IF_ERROR(
      sg_json_get_choice(root, "beta", SG_JSON_OPTIONAL, beta_kinds, 3, &beta));
  geometry->beta_kind = (sg_beta_kind_t)beta;
  geometry->qk_l2norm = true;
  SG_RETURN_IF_ERROR(sg_json_get_bool(root, "qk_l2norm", SG_JSON_OPTIONAL,
                                      &geometry->qk_l2norm));
  SG_RETURN_IF_ERROR(read_scale(root, geometry));
  int32_t activation = SG_DTYPE_BF16;
  SG_RETURN_IF_ERROR(sg_json_get_choice(
      root, "activation_dtype", SG_JSON_OPTIONAL, dtypes, 3, &activation));
  geometry->activation_dtype = (sg_dtype_t)activation;
  int32_t state = SG_DTYPE_FP32;
  SG_RETURN_IF_ERROR(sg_json_get_choice(root, "state_dtype", SG_JSON_OPTIONAL,
                                        dtypes, 2, &state));
  geometry->state_dtype = (sg_dtype_t)state;
  geometry->norm_epsilon = 1e-5f;
  return sg_json_get_float(root, "norm_epsilon", SG_JSON_OPTIONAL, epsilon,
                           &geometry->norm_epsilon);
}

static sg_status_t read_model(const sg_json_node_t* root, sg_model_t* model) {
  static const char* const keys[] = {
      "version",    "name",         "layers",
      "heads",      "value_heads",  "key_dim",
      "value_dim",  "conv_width",   "chunk_size",
      "gate",       "beta",         "qk_l2norm",
      "scale",      "norm_epsilon", "activation_dtype",
      "state_dtype"};
  SG_RETURN_IF_ERROR(
      sg_json_check_object(root, keys, sizeof(keys) / sizeof(keys[0])));
  int32_t version;
  SG_RETURN_IF_ERROR(
      sg_json_get_int32(root, "version", SG_JSON_REQUIRED, 1, 1, &version));
  SG_RETURN_IF_ERROR(
      sg_json_get_name(root, "name", model->allocator, &model->name));
  SG_RETURN_IF_ERROR(read_sizes(root, model));
  SG_RETURN_IF_ERROR(read_gate(root, &model->geometry));
  return read_numerics(root, &model->geometry);
}

sg_status_t sg_model_parse(sg_allocator_t allocator, const char* text,
                           size_t bytes, const char* source_name,
                           sg_model_t* out_model) {
  *out_model = (sg_model_t){.allocator = allocator};
  const sg_json_source_t source = {.name = source_name};
  sg_json_node_t root;
  SG_RETURN_IF_ERROR(sg_json_parse(&source, text, bytes, &root));
  sg_status_t status = read_model(&root, out_model);
  sg_json_release(&root);
  if (!sg_status_is_ok(status)) sg_model_deinitialize(out_model);
  return status;
}

sg_status_t sg_model_load(sg_allocator_t allocator, const char* path,
                          sg_model_t* out_model) {
  *out_model = (sg_model_t){0};
  char* text;
  size_t bytes;
  SG_RETURN_IF_ERROR(
      sg_text_file_read(allocator, path, MAX_FILE_BYTES, &text, &bytes));
  sg_status_t status = sg_model_parse(allocator, text, bytes, path, out_model);
  sg_release(allocator, text);
  return status;
}

sg_status_t sg_model_open(sg_allocator_t allocator, const char* name_or_path,
                          sg_model_t* out_model) {
  const sg_bundled_file_t* bundled =
      sg_bundled_find(SG_BUNDLED_MODEL, name_or_path);
  if (bundled != NULL) {
    return sg_model_parse(allocator, bundled->text, bundled->bytes,
                          bundled->name, out_model);
  }
  return sg_bundled_explain(sg_model_load(allocator, name_or_path, out_model),
                            SG_BUNDLED_MODEL, name_or_path);
}

void sg_model_deinitialize(sg_model_t* model) {
  if (model == NULL) return;
  sg_release(model->allocator, model->name);
  *model = (sg_model_t){0};
}
