// SPDX-License-Identifier: Apache-2.0
//
// Which tensors a case has, and of what type and shape they must be.

#include <stdio.h>
#include <string.h>

#include "cli/kda_case.h"
#include "kernels/short_conv/short_conv.h"

// What a dimension is.
typedef enum dimension_t {
  NONE = 0,
  TOKENS,
  SEQUENCES,
  OFFSETS,
  HEADS,
  VALUE_HEADS,
  KEY_DIM,
  VALUE_DIM,
  CHANNELS,
  WIDTH,
  HISTORY,
  DIMENSION_COUNT,
} dimension_t;

typedef enum type_t { ACTIVATION, GATE, BETA, STATE, FLOAT, INTEGER } type_t;

typedef enum presence_t {
  REQUIRED,
  OPTIONAL,
  // Only of formulas for the gate.
  REQUIRED_FOR_GATE,
  OPTIONAL_FOR_GATE,
  // Goes with conv_weight.
  OPTIONAL_WITH_CONV,
  // Both or neither of norm_weight and output_gate.
  REQUIRED_WITH_NORM,
} presence_t;

enum { MAX_RANK = 4 };

typedef struct rule_t {
  const char* name;
  type_t type;
  presence_t presence;
  dimension_t shape[MAX_RANK];
} rule_t;

static const rule_t rules[SG_KDA_CASE_TENSOR_COUNT] = {
    [SG_KDA_CASE_Q] = {"q", ACTIVATION, REQUIRED, {TOKENS, HEADS, KEY_DIM}},
    [SG_KDA_CASE_K] = {"k", ACTIVATION, REQUIRED, {TOKENS, HEADS, KEY_DIM}},
    [SG_KDA_CASE_V] = {"v",
                       ACTIVATION,
                       REQUIRED,
                       {TOKENS, VALUE_HEADS, VALUE_DIM}},
    [SG_KDA_CASE_RAW_G] = {"raw_g",
                           GATE,
                           REQUIRED,
                           {TOKENS, VALUE_HEADS, KEY_DIM}},
    [SG_KDA_CASE_RAW_BETA] = {"raw_beta",
                              BETA,
                              REQUIRED,
                              {TOKENS, VALUE_HEADS}},
    [SG_KDA_CASE_A_LOG] = {"A_log", FLOAT, REQUIRED_FOR_GATE, {VALUE_HEADS}},
    [SG_KDA_CASE_DT_BIAS] = {"dt_bias",
                             FLOAT,
                             OPTIONAL_FOR_GATE,
                             {VALUE_HEADS, KEY_DIM}},
    [SG_KDA_CASE_QUERY_START_LOC] = {"query_start_loc",
                                     INTEGER,
                                     REQUIRED,
                                     {OFFSETS}},
    [SG_KDA_CASE_COMPUTED_LENS] = {"computed_lens",
                                   INTEGER,
                                   OPTIONAL,
                                   {SEQUENCES}},
    [SG_KDA_CASE_SLOTS] = {"slots", INTEGER, OPTIONAL, {SEQUENCES}},
    [SG_KDA_CASE_INITIAL_STATE] = {"initial_state",
                                   STATE,
                                   OPTIONAL,
                                   {SEQUENCES, VALUE_HEADS, VALUE_DIM,
                                    KEY_DIM}},
    [SG_KDA_CASE_CONV_WEIGHT] = {"conv_weight",
                                 FLOAT,
                                 OPTIONAL,
                                 {CHANNELS, WIDTH}},
    [SG_KDA_CASE_CONV_CACHE] = {"conv_cache",
                                ACTIVATION,
                                OPTIONAL_WITH_CONV,
                                {SEQUENCES, HISTORY, CHANNELS}},
    [SG_KDA_CASE_NORM_WEIGHT] = {"norm_weight",
                                 FLOAT,
                                 REQUIRED_WITH_NORM,
                                 {VALUE_DIM}},
    [SG_KDA_CASE_OUTPUT_GATE] = {"output_gate",
                                 ACTIVATION,
                                 REQUIRED_WITH_NORM,
                                 {TOKENS, VALUE_HEADS, VALUE_DIM}},
};

static sg_tensor_dtype_t type_of(sg_dtype_t dtype) {
  switch (dtype) {
    case SG_DTYPE_FP32:
      return SG_TENSOR_F32;
    case SG_DTYPE_BF16:
      return SG_TENSOR_BF16;
    case SG_DTYPE_FP16:
      break;
  }
  return SG_TENSOR_F16;
}

sg_tensor_dtype_t sg_kda_case_activation_type(const sg_kda_geometry_t* g) {
  return type_of(g->activation_dtype);
}

sg_tensor_dtype_t sg_kda_case_state_type(const sg_kda_geometry_t* g) {
  return type_of(g->state_dtype);
}

static bool type_matches(const sg_kda_geometry_t* g, type_t type,
                         sg_tensor_dtype_t found) {
  const bool is_given = (type == GATE && g->gate_kind == SG_GATE_GIVEN) ||
                        (type == BETA && g->beta_kind == SG_BETA_GIVEN);
  if (type == INTEGER) return found == SG_TENSOR_I32 || found == SG_TENSOR_I64;
  if (type == STATE) return found == sg_kda_case_state_type(g);
  return found == (type == FLOAT || is_given ? SG_TENSOR_F32
                                             : sg_kda_case_activation_type(g));
}

// Also says what would have matched.
static const char* type_text(const sg_kda_geometry_t* g, type_t type) {
  if (type == INTEGER) return "I32 or I64";
  for (int t = 0; t < SG_TENSOR_DTYPE_COUNT; ++t) {
    const sg_tensor_dtype_t dtype = (sg_tensor_dtype_t)t;
    if (type_matches(g, type, dtype)) return sg_tensor_dtype_name(dtype);
  }
  return "none";
}

static int32_t rank_of(const rule_t* rule) {
  int32_t rank = 0;
  while (rank < MAX_RANK && rule->shape[rank] != NONE) ++rank;
  return rank;
}

typedef struct sizes_t {
  int64_t of[DIMENSION_COUNT];
} sizes_t;

static sizes_t sizes_of(const sg_kda_geometry_t* g, int64_t tokens,
                        int64_t sequences) {
  return (sizes_t){{[TOKENS] = tokens,
                    [SEQUENCES] = sequences,
                    [OFFSETS] = sequences + 1,
                    [HEADS] = g->heads,
                    [VALUE_HEADS] = g->value_heads,
                    [KEY_DIM] = g->key_dim,
                    [VALUE_DIM] = g->value_dim,
                    [CHANNELS] = sg_short_conv_channels(g),
                    [WIDTH] = g->conv_width,
                    [HISTORY] = g->conv_width - 1}};
}

enum { SHAPE_TEXT_BYTES = 120 };

static void shape_text(const int64_t* shape, int32_t rank,
                       char out_text[SHAPE_TEXT_BYTES]) {
  size_t used = (size_t)snprintf(out_text, SHAPE_TEXT_BYTES, "[");
  // Numbers of any size fit for the ranks of cases, longer shapes are cut.
  for (int32_t i = 0; i < rank && used + 26 < SHAPE_TEXT_BYTES; ++i) {
    used += (size_t)snprintf(out_text + used, SHAPE_TEXT_BYTES - used, "%s%lld",
                             i == 0 ? "" : ", ", (long long)shape[i]);
  }
  snprintf(out_text + used, SHAPE_TEXT_BYTES - used, "]");
}

static sg_status_t check_tensor(const sg_kda_case_t* c,
                                const sg_kda_geometry_t* g, const rule_t* rule,
                                const sizes_t* sizes,
                                const sg_tensor_t* tensor) {
  const int32_t rank = rank_of(rule);
  int64_t shape[MAX_RANK] = {0};
  bool matches =
      tensor->rank == rank && type_matches(g, rule->type, tensor->dtype);
  for (int32_t i = 0; i < rank; ++i) {
    shape[i] = sizes->of[rule->shape[i]];
    matches = matches && tensor->shape[i] == shape[i];
  }
  if (matches) return sg_status_ok();
  char expected[SHAPE_TEXT_BYTES];
  char found[SHAPE_TEXT_BYTES];
  shape_text(shape, rank, expected);
  shape_text(tensor->shape, tensor->rank, found);
  return sg_status_make(SG_STATUS_INVALID_DATA,
                        "%.160s: %s: expected %s %s, found %s %s", c->path,
                        rule->name, type_text(g, rule->type), expected,
                        sg_tensor_dtype_name(tensor->dtype), found);
}

// --- Which tensors there are ---

static sg_status_t surplus(const sg_kda_case_t* c, const char* name,
                           const char* why) {
  return sg_status_make(SG_STATUS_INVALID_DATA,
                        "%.160s: %.64s: expected no such tensor%s", c->path,
                        name, why);
}

static sg_status_t find_all(sg_kda_case_t* c) {
  for (int i = 0; i < SG_KDA_CASE_TENSOR_COUNT; ++i) {
    c->tensors[i] = sg_safetensors_find(&c->file, rules[i].name);
  }
  for (size_t i = 0; i < c->file.tensor_count; ++i) {
    bool is_known = false;
    for (int j = 0; j < SG_KDA_CASE_TENSOR_COUNT; ++j) {
      is_known = is_known || c->tensors[j] == &c->file.tensors[i];
    }
    if (!is_known) return surplus(c, c->file.tensors[i].name, "");
  }
  return sg_status_ok();
}

static sg_status_t check_presence(const sg_kda_case_t* c,
                                  const sg_kda_geometry_t* g, int index) {
  const rule_t* rule = &rules[index];
  const bool has_gate = g->gate_kind != SG_GATE_GIVEN;
  const bool is_present = c->tensors[index] != NULL;
  bool is_required = false;
  const char* why = NULL;
  switch (rule->presence) {
    case REQUIRED:
      is_required = true;
      break;
    case OPTIONAL:
      break;
    case REQUIRED_FOR_GATE:
      is_required = has_gate;
      if (!has_gate) why = ", since the model's gates are given";
      break;
    case OPTIONAL_FOR_GATE:
      if (!has_gate) why = ", since the model's gates are given";
      break;
    case OPTIONAL_WITH_CONV:
      if (!c->has_conv) why = " without conv_weight";
      break;
    case REQUIRED_WITH_NORM:
      is_required = c->has_norm;
      break;
  }
  if (is_present && why != NULL) return surplus(c, rule->name, why);
  if (is_present || !is_required) return sg_status_ok();
  return sg_status_make(SG_STATUS_INVALID_DATA,
                        "%.160s: %s: expected this tensor%s, found none",
                        c->path, rule->name,
                        rule->presence == REQUIRED_WITH_NORM
                            ? ", norm_weight and output_gate go together"
                            : "");
}

sg_status_t sg__kda_case_find_tensors(const sg_kda_geometry_t* g,
                                      sg_kda_case_t* c) {
  SG_RETURN_IF_ERROR(find_all(c));
  c->has_conv = c->tensors[SG_KDA_CASE_CONV_WEIGHT] != NULL;
  c->has_norm = c->tensors[SG_KDA_CASE_NORM_WEIGHT] != NULL ||
                c->tensors[SG_KDA_CASE_OUTPUT_GATE] != NULL;
  for (int i = 0; i < SG_KDA_CASE_TENSOR_COUNT; ++i) {
    SG_RETURN_IF_ERROR(check_presence(c, g, i));
  }
  // How many there are of tokens and sequences is what these two say.
  const sg_tensor_t* q = c->tensors[SG_KDA_CASE_Q];
  const sg_tensor_t* offsets = c->tensors[SG_KDA_CASE_QUERY_START_LOC];
  const int64_t tokens = q->rank > 0 ? q->shape[0] : 0;
  const int64_t sequences =
      offsets->rank > 0 && offsets->shape[0] > 0 ? offsets->shape[0] - 1 : 0;
  if (tokens > INT32_MAX || sequences > SG_KDA_CASE_MAX_SLOTS) {
    return sg_status_make(
        SG_STATUS_INVALID_DATA,
        "%.160s: expected at most %d tokens and %d sequences, found %lld and "
        "%lld",
        c->path, INT32_MAX, SG_KDA_CASE_MAX_SLOTS, (long long)tokens,
        (long long)sequences);
  }
  c->token_count = (int32_t)tokens;
  c->sequence_count = (int32_t)sequences;
  const sizes_t sizes = sizes_of(g, tokens, sequences);
  for (int i = 0; i < SG_KDA_CASE_TENSOR_COUNT; ++i) {
    if (c->tensors[i] == NULL) continue;
    SG_RETURN_IF_ERROR(check_tensor(c, g, &rules[i], &sizes, c->tensors[i]));
  }
  return sg_status_ok();
}
