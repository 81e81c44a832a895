// SPDX-License-Identifier: Apache-2.0

#include "cli/kda_run.h"

#include "cli/kda_run_internal.h"
#include "cli/report.h"
#include "runtime/hip/error.h"

static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

static int32_t length_of(const sg_kda_case_t* c, int32_t sequence) {
  return c->starts[sequence + 1] - c->starts[sequence];
}

// --- Session ---

// The capacity, which is at least 1 of each: an empty case is a step as well.
static sg_status_t choose_limits(const sg_kda_case_t* c,
                                 const sg_kda_run_options_t* options,
                                 sg_shape_limits_t* out_limits) {
  const int32_t tokens = options->recurrent
                             ? smaller(c->token_count, c->sequence_count)
                             : c->token_count;
  *out_limits =
      (sg_shape_limits_t){larger(tokens, 1), larger(c->sequence_count, 1)};
  if (options->max_tokens == 0) return sg_status_ok();
  if (options->max_tokens < tokens ||
      options->max_sequences < c->sequence_count) {
    return sg_status_make(
        SG_STATUS_OUT_OF_RANGE,
        "%.160s: %d tokens and %d sequences a step, expected at most the %d "
        "and %d of --shape",
        c->path, tokens, c->sequence_count, options->max_tokens,
        options->max_sequences);
  }
  *out_limits =
      (sg_shape_limits_t){options->max_tokens, options->max_sequences};
  return sg_status_ok();
}

static sg_status_t add_shape(sg_shapes_t* shapes, const char* name,
                             sg_phase_t phase, int32_t max_tokens) {
  sg_shape_t* shape = &shapes->shapes[shapes->shape_count];
  SG_RETURN_IF_ERROR(sg_allocate_string(shapes->allocator, name, &shape->name));
  shape->phase = phase;
  shape->max_tokens = max_tokens;
  shape->max_sequences = shapes->limits.max_sequences;
  ++shapes->shape_count;
  return sg_status_ok();
}

// A graph for steps of decodes alone, and one for all others.
static sg_status_t make_shapes(sg_shape_limits_t limits, sg_shapes_t* shapes) {
  *shapes = (sg_shapes_t){.allocator = sg_allocator_system(),
                          .limits = limits,
                          .policy = {.capture = SG_CAPTURE_STARTUP,
                                     .on_no_match = SG_NO_MATCH_ERROR}};
  void* memory;
  SG_RETURN_IF_ERROR(
      sg_allocate(shapes->allocator, "shapes", 2, sizeof(sg_shape_t), &memory));
  shapes->shapes = memory;
  SG_RETURN_IF_ERROR(
      add_shape(shapes, "decode", SG_PHASE_DECODE,
                smaller(limits.max_tokens, limits.max_sequences)));
  return add_shape(shapes, "mixed", SG_PHASE_MIXED, limits.max_tokens);
}

// Keeps the first failure among the captures.
static void check_capture(void* self, size_t done_count, size_t shape_count,
                          const sg_shape_t* shape,
                          const sg_shape_statistics_t* statistics,
                          sg_status_t status) {
  (void)done_count;
  (void)shape_count;
  (void)statistics;
  sg_status_t* first = self;
  if (sg_status_is_ok(*first)) {
    *first = sg_status_annotate(status, "shape %s", shape->name);
  }
}

static sg_status_t start_session(const sg_kda_run_t* r) {
  sg_session_t* session = r->session;
  session->model.layers = 1;
  sg_shape_limits_t limits;
  SG_RETURN_IF_ERROR(choose_limits(r->kda_case, r->options, &limits));
  SG_RETURN_IF_ERROR(make_shapes(limits, &session->shapes));
  const sg_session_options_t options = {
      .slot_count = r->kda_case->slot_count,
      .ring_depth = 1,
      .always_eager = r->options->eager,
      .omit_conv = !r->kda_case->has_conv,
      .omit_norm = !r->kda_case->has_norm,
      .tables = SG_TABLES_DEVICE,
  };
  SG_RETURN_IF_ERROR(sg_session_start(session, &options));
  if (r->options->eager) return sg_status_ok();
  sg_status_t first = sg_status_ok();
  SG_RETURN_IF_ERROR(
      sg_executor_capture(session->executor, check_capture, &first));
  return first;
}

// --- Steps ---

// The sequences of a step. A step of all tokens has all of them; a recurrent
// one has those with tokens left, sequences that go on before fresh ones: so
// all but fresh first tokens are decodes.
static sg_batch_t form_step(sg_kda_run_t* r, int32_t step) {
  const sg_kda_case_t* c = r->kda_case;
  const bool recurrent = r->options->recurrent;
  int32_t count = 0;
  for (int fresh = 0; fresh < (recurrent ? 2 : 1); ++fresh) {
    for (int32_t n = 0; n < c->sequence_count; ++n) {
      const bool is_fresh = c->computed_lens[n] == 0 && step == 0;
      if (recurrent && (length_of(c, n) <= step || is_fresh != (fresh == 1))) {
        continue;
      }
      // The number counts only against 0.
      const int32_t computed = c->computed_lens[n];
      r->parts[count] = (sg_kda_part_t){.sequence = n, .first_token = step};
      r->query_lens[count] = recurrent ? 1 : length_of(c, n);
      r->computed_lens[count] =
          computed > INT32_MAX - step ? INT32_MAX : computed + step;
      r->slots[count++] = c->slots[n];
    }
  }
  return (sg_batch_t){count, r->query_lens, r->computed_lens, r->slots};
}

static sg_status_t check_step(const sg_kda_run_t* r,
                              const sg_step_report_t* report) {
  sg_step_error_record_t error;
  if (sg_executor_poll_error(r->session->executor, &error)) {
    return sg_status_make(SG_STATUS_INTERNAL,
                          "%.160s: the device found %s (sequence %d of a step, "
                          "value %lld)",
                          r->kda_case->path, sg_step_error_name(error.code),
                          error.sequence, (long long)error.value);
  }
  if (report->shape_index >= 0 || r->options->eager) return sg_status_ok();
  return sg_status_make(
      SG_STATUS_INTERNAL, "%.160s: a step ran eagerly (%s), expected a replay",
      r->kda_case->path, sg_eager_reason_name(report->reason));
}

static sg_status_t run_step(sg_kda_run_t* r, int32_t step) {
  sg_session_t* session = r->session;
  const sg_batch_t batch = form_step(r, step);
  SG_RETURN_IF_ERROR(sg__kda_load_inputs(r, &batch));
  sg_step_report_t report;
  SG_RETURN_IF_ERROR(
      sg_executor_run(session->executor, &batch, session->stream, &report));
  SG_RETURN_IF_ERROR(sg__kda_fetch_output(r, &batch));
  SG_RETURN_IF_HIP_ERROR(hipStreamSynchronize, session->stream);
  return check_step(r, &report);
}

static int32_t count_steps(const sg_kda_run_t* r) {
  if (!r->options->recurrent) return 1;
  int32_t count = 0;
  for (int32_t n = 0; n < r->kda_case->sequence_count; ++n) {
    count = larger(count, length_of(r->kda_case, n));
  }
  return count;
}

static sg_status_t allocate_batch(sg_kda_run_t* r) {
  const size_t count = (size_t)r->kda_case->sequence_count;
  const sg_allocator_t allocator = sg_allocator_system();
  void* memory;
  SG_RETURN_IF_ERROR(
      sg_allocate(allocator, "batch", count, sizeof(*r->parts), &memory));
  r->parts = memory;
  int32_t** const arrays[] = {&r->query_lens, &r->computed_lens, &r->slots};
  for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i) {
    SG_RETURN_IF_ERROR(
        sg_allocate(allocator, "batch", count, sizeof(int32_t), &memory));
    *arrays[i] = memory;
  }
  return sg_status_ok();
}

static sg_status_t run_steps(sg_kda_run_t* r) {
  SG_RETURN_IF_ERROR(start_session(r));
  SG_RETURN_IF_ERROR(allocate_batch(r));
  SG_RETURN_IF_ERROR(sg__kda_make_result(r));
  SG_RETURN_IF_ERROR(sg__kda_load(r));
  const int32_t count = count_steps(r);
  for (int32_t step = 0; step < count; ++step) {
    SG_RETURN_IF_ERROR(run_step(r, step));
  }
  r->result->step_count = count;
  return sg__kda_fetch_result(r);
}

sg_status_t sg_kda_run(sg_session_t* session, const sg_kda_case_t* kda_case,
                       const sg_kda_run_options_t* options,
                       sg_kda_result_t* out_result) {
  *out_result = (sg_kda_result_t){0};
  sg_kda_run_t run = {.session = session,
                      .kda_case = kda_case,
                      .options = options,
                      .result = out_result};
  sg_status_t status = run_steps(&run);
  // Copies may still be on their way.
  if (session->stream != NULL) (void)hipStreamSynchronize(session->stream);
  const sg_allocator_t allocator = sg_allocator_system();
  sg_release(allocator, run.qkv);
  sg_release(allocator, run.parts);
  sg_release(allocator, run.query_lens);
  sg_release(allocator, run.computed_lens);
  sg_release(allocator, run.slots);
  if (!sg_status_is_ok(status)) sg_kda_result_deinitialize(out_result);
  return status;
}

void sg_kda_result_deinitialize(sg_kda_result_t* result) {
  if (result == NULL) return;
  const sg_allocator_t allocator = sg_allocator_system();
  sg_release(allocator, result->o);
  sg_release(allocator, result->final_state);
  sg_release(allocator, result->conv_cache);
  sg_release(allocator, result->chunk_indices);
  sg_release(allocator, result->chunk_offsets);
  *result = (sg_kda_result_t){0};
}
