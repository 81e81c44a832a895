// SPDX-License-Identifier: Apache-2.0
//
// stepgraph kda: one layer on tensors from a file.

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/kda_run.h"
#include "cli/output_file.h"
#include "kernels/short_conv/short_conv.h"

typedef struct kda_options_t {
  const char* model;
  const char* input;
  const char* output;
  const char* shape;
  int64_t slots;
  bool eager;
  bool recurrent;
} kda_options_t;

#define VALUE(member) .value_offset = offsetof(kda_options_t, member)

static const sg_option_t option_list[] = {
    SG_OPTION_MODEL(kda_options_t),
    {.name = "in",
     .kind = SG_OPTION_TEXT,
     VALUE(input),
     .placeholder = "FILE",
     .required = true,
     .help = "the layer's inputs, a safetensors file"},
    {.name = "out",
     .letter = 'o',
     .kind = SG_OPTION_TEXT,
     VALUE(output),
     .placeholder = "FILE",
     .required = true,
     .help = "where its outputs go"},
    {.name = "eager",
     .kind = SG_OPTION_FLAG,
     VALUE(eager),
     .help = "run without a graph"},
    {.name = "recurrent",
     .kind = SG_OPTION_FLAG,
     VALUE(recurrent),
     .help = "run one token of each sequence a step"},
    {.name = "shape",
     .kind = SG_OPTION_TEXT,
     VALUE(shape),
     .placeholder = "T,N",
     .help = "tokens and sequences that a step has room for [just enough]"},
    {.name = "slots",
     .kind = SG_OPTION_INTEGER,
     VALUE(slots),
     .placeholder = "N",
     .minimum = 1,
     .maximum = SG_KDA_CASE_MAX_SLOTS,
     .help = "state slots [as many as the file needs]"},
};

#undef VALUE

static const sg_option_table_t table = {
    .command = "kda",
    .summary = "Runs one layer of a model on tensors from a file.",
    .details =
        "The file has T tokens of N sequences, one behind the other:\n"
        "  q, k             [T, heads, key_dim]\n"
        "  v                [T, value_heads, value_dim]\n"
        "  raw_g            [T, value_heads, key_dim]\n"
        "  raw_beta         [T, value_heads]\n"
        "  A_log            [value_heads] F32\n"
        "  query_start_loc  [N + 1] I32 or I64\n"
        "and may have\n"
        "  dt_bias          [value_heads, key_dim] F32\n"
        "  computed_lens    [N]: above 0 for sequences that go on, which all\n"
        "                   do by default where a past is given\n"
        "  slots            [N]: 0 to N - 1 by default, below 0 for none\n"
        "  initial_state    [N, value_heads, value_dim, key_dim]: of the\n"
        "                   model's state type, as is final_state\n"
        "  conv_weight      [channels, conv_width] F32, and with it\n"
        "  conv_cache       [N, conv_width - 1, channels]: q, k and v then go\n"
        "                   through the short convolution first\n"
        "  norm_weight      [value_dim] F32, and with it\n"
        "  output_gate      [T, value_heads, value_dim]: the output is then\n"
        "                   normalised and gated\n"
        "Other tensors have the model's activation type; nothing is "
        "converted.\n"
        "\n"
        "Written are o, final_state, conv_cache, and the tables chunk_indices\n"
        "and chunk_offsets that the device built.\n"
        "\n"
        "A step is the replay of a graph, and --eager and --shape change no "
        "bit\n"
        "of the result. With --recurrent there is a step for each token of "
        "the\n"
        "longest sequence: all tokens but the first of a fresh sequence take\n"
        "the recurrent form, and no chunk tables are written.",
    .options = option_list,
    .option_count = sizeof(option_list) / sizeof(option_list[0]),
};

// Parses a number of at least 1 that ends with |end|.
static bool parse_size(const char** text, char end, int32_t* out_size) {
  if ((*text)[0] < '0' || (*text)[0] > '9') return false;
  char* behind;
  errno = 0;
  const long value = strtol(*text, &behind, 10);
  if (errno != 0 || value < 1 || value > INT32_MAX || *behind != end) {
    return false;
  }
  *out_size = (int32_t)value;
  *text = behind + 1;
  return true;
}

static sg_status_t parse_shape(const char* shape,
                               sg_kda_run_options_t* options) {
  if (shape == NULL) return sg_status_ok();
  const char* text = shape;
  if (parse_size(&text, ',', &options->max_tokens) &&
      parse_size(&text, '\0', &options->max_sequences)) {
    return sg_status_ok();
  }
  return sg_status_make(SG_STATUS_INVALID_ARGUMENT,
                        "kda: --shape is '%.60s', expected T,N: two whole "
                        "numbers from 1 to %d",
                        shape, INT32_MAX);
}

static sg_tensor_t make_tensor(const char* name, sg_tensor_dtype_t dtype,
                               const void* data, int32_t rank,
                               const int64_t* shape) {
  sg_tensor_t tensor = {.name = name,
                        .dtype = dtype,
                        .rank = rank,
                        .data = data,
                        .bytes = sg_tensor_dtype_bytes(dtype)};
  for (int32_t i = 0; i < rank; ++i) {
    tensor.shape[i] = shape[i];
    tensor.bytes *= (size_t)shape[i];
  }
  return tensor;
}

static sg_status_t write_result(const kda_options_t* o,
                                const sg_kda_geometry_t* g,
                                const sg_kda_case_t* kda_case,
                                const sg_kda_result_t* result) {
  const sg_tensor_dtype_t dtype = sg_kda_case_activation_type(g);
  const int64_t n = kda_case->sequence_count;
  sg_tensor_t tensors[5];
  size_t count = 0;
  tensors[count++] = make_tensor(
      "o", dtype, result->o, 3,
      (int64_t[]){kda_case->token_count, g->value_heads, g->value_dim});
  tensors[count++] =
      make_tensor("final_state", sg_kda_case_state_type(g), result->final_state,
                  4, (int64_t[]){n, g->value_heads, g->value_dim, g->key_dim});
  if (result->conv_cache != NULL) {
    tensors[count++] = make_tensor(
        "conv_cache", dtype, result->conv_cache, 3,
        (int64_t[]){n, g->conv_width - 1, sg_short_conv_channels(g)});
  }
  if (result->chunk_offsets != NULL) {
    tensors[count++] =
        make_tensor("chunk_indices", SG_TENSOR_I32, result->chunk_indices, 2,
                    (int64_t[]){result->chunk_count, 2});
    tensors[count++] =
        make_tensor("chunk_offsets", SG_TENSOR_I64, result->chunk_offsets, 1,
                    (int64_t[]){n + 1});
  }
  sg_output_file_t file;
  SG_RETURN_IF_ERROR(sg_output_file_open(o->output, &file));
  return sg_output_file_finish(
      &file, sg_safetensors_write_file(
                 sg_allocator_system(), file.file, o->output, tensors, count,
                 kda_case->file.metadata, kda_case->file.metadata_count));
}

static const char* plural(int64_t count) { return count == 1 ? "" : "s"; }

static sg_status_t run(const kda_options_t* o, sg_session_t* session,
                       sg_kda_case_t* kda_case, sg_kda_result_t* result) {
  sg_kda_run_options_t options = {.eager = o->eager, .recurrent = o->recurrent};
  SG_RETURN_IF_ERROR(parse_shape(o->shape, &options));
  SG_RETURN_IF_ERROR(sg_output_file_check(o->output));
  SG_RETURN_IF_ERROR(sg_session_open(o->model, /*shapes=*/NULL, session));
  const sg_kda_geometry_t* geometry = &session->model.geometry;
  SG_RETURN_IF_ERROR(
      sg_kda_case_load(o->input, geometry, (int32_t)o->slots, kda_case));
  SG_RETURN_IF_ERROR(sg_kda_run(session, kda_case, &options, result));
  SG_RETURN_IF_ERROR(write_result(o, geometry, kda_case, result));
  printf("%s: %d token%s of %d sequence%s in %lld %s step%s\n", o->output,
         kda_case->token_count, plural(kda_case->token_count),
         kda_case->sequence_count, plural(kda_case->sequence_count),
         (long long)result->step_count, o->eager ? "eager" : "replayed",
         plural(result->step_count));
  return sg_status_ok();
}

int sg_command_kda(int argc, char** argv) {
  kda_options_t o = {0};
  int exit_code;
  int positional_count;
  if (!sg_command_parse(&table, argc, argv, &o, &positional_count,
                        &exit_code)) {
    return exit_code;
  }
  sg_session_t session = {0};
  sg_kda_case_t kda_case = {0};
  sg_kda_result_t result = {0};
  sg_status_t status = run(&o, &session, &kda_case, &result);
  exit_code = sg_status_is_ok(status) ? sg_command_finish(SG_EXIT_DONE)
                                      : sg_command_fail(status);
  sg_kda_result_deinitialize(&result);
  sg_kda_case_deinitialize(&kda_case);
  sg_session_close(&session);
  return exit_code;
}
