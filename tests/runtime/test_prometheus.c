// SPDX-License-Identifier: Apache-2.0
//
// The text for Prometheus, read back by a parser of the exposition format
// 0.0.4 and held against the statistics that it comes from.

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/prometheus.h"
#include "tests/check.h"
#include "tests/runtime/executor_fixture.h"

enum { TEXT_BYTES = 8192, LINE_BYTES = 256, SAMPLES = 64, FAMILIES = 16 };

typedef struct sample_t {
  char name[LINE_BYTES];
  // As "name=value", or empty.
  char label[LINE_BYTES];
  uint64_t value;
} sample_t;

typedef struct exposition_t {
  // Metrics with a TYPE line, in their order.
  char families[FAMILIES][LINE_BYTES];
  size_t family_count;
  // The HELP line before the TYPE line that is due.
  char helped[LINE_BYTES];
  sample_t samples[SAMPLES];
  size_t sample_count;
} exposition_t;

// Reads [a-zA-Z_][a-zA-Z0-9_]*, and colons where they may be.
static const char* read_name(const char* at, bool colons, char* out_name) {
  size_t length = 0;
  while (isalnum((unsigned char)at[length]) || at[length] == '_' ||
         (colons && at[length] == ':')) {
    ++length;
  }
  if (length == 0 || isdigit((unsigned char)at[0])) {
    fail_msg("no name: \"%s\"", at);
  }
  memcpy(out_name, at, length);
  out_name[length] = 0;
  return at + length;
}

// {name="value"} where there is one. None of our values has an escape.
static const char* read_label(const char* at, char* out_label) {
  out_label[0] = 0;
  if (*at != '{') return at;
  at = read_name(at + 1, /*colons=*/false, out_label);
  char* end = out_label + strlen(out_label);
  if (at[0] != '=' || at[1] != '"') fail_msg("no label value: \"%s\"", at);
  *end++ = '=';
  for (at += 2; *at != '"'; ++at) {
    if (*at == 0 || *at == '\\') fail_msg("a label value goes on: %s", at);
    *end++ = *at;
  }
  *end = 0;
  if (at[1] != '}') fail_msg("a label does not end: \"%s\"", at);
  return at + 2;
}

static void read_help(exposition_t* e, const char* at) {
  at = read_name(at, /*colons=*/true, e->helped);
  if (at[0] != ' ' || at[1] == 0 || strchr(at, '\\') != NULL) {
    fail_msg("%s: no plain help: \"%s\"", e->helped, at);
  }
}

static void read_type(exposition_t* e, const char* at) {
  assert_true(e->family_count < FAMILIES);
  char* name = e->families[e->family_count];
  at = read_name(at, /*colons=*/true, name);
  // HELP and TYPE of a metric stand together, and once.
  assert_string_equal(name, e->helped);
  for (size_t i = 0; i < e->family_count; ++i) {
    if (strcmp(e->families[i], name) == 0) fail_msg("%s comes twice", name);
  }
  size_t length = strlen(name);
  bool total = length > 6 && strcmp(name + length - 6, "_total") == 0;
  // By convention counters, and nothing else, are called so.
  assert_string_equal(at, total ? " counter" : " gauge");
  ++e->family_count;
}

static void read_sample(exposition_t* e, const char* at) {
  assert_true(e->sample_count < SAMPLES && e->family_count > 0);
  sample_t* sample = &e->samples[e->sample_count];
  at = read_name(at, /*colons=*/true, sample->name);
  // The samples of a metric follow its TYPE line, without others between.
  assert_string_equal(sample->name, e->families[e->family_count - 1]);
  at = read_label(at, sample->label);
  if (at[0] != ' ' || !isdigit((unsigned char)at[1])) {
    fail_msg("%s: no value: \"%s\"", sample->name, at);
  }
  char* end;
  sample->value = strtoull(at + 1, &end, 10);
  // No timestamp.
  if (*end != 0) fail_msg("%s: behind the value: \"%s\"", sample->name, end);
  for (size_t i = 0; i < e->sample_count; ++i) {
    if (strcmp(e->samples[i].name, sample->name) == 0 &&
        strcmp(e->samples[i].label, sample->label) == 0) {
      fail_msg("%s{%s} comes twice", sample->name, sample->label);
    }
  }
  ++e->sample_count;
}

static void parse(const char* text, exposition_t* out) {
  memset(out, 0, sizeof(*out));
  while (*text != 0) {
    const char* end = strchr(text, '\n');
    if (end == NULL) fail_msg("the last line does not end: \"%s\"", text);
    char line[LINE_BYTES];
    size_t length = (size_t)(end - text);
    assert_true(length > 0 && length < sizeof(line));
    memcpy(line, text, length);
    line[length] = 0;
    if (strncmp(line, "# HELP ", 7) == 0) {
      read_help(out, line + 7);
    } else if (strncmp(line, "# TYPE ", 7) == 0) {
      read_type(out, line + 7);
    } else {
      read_sample(out, line);
    }
    text = end + 1;
  }
}

// The sample's value; |label| is NULL for one without.
static uint64_t value_of(const exposition_t* e, const char* name,
                         const char* label, const char* label_value) {
  char wanted[LINE_BYTES] = "";
  if (label != NULL) {
    snprintf(wanted, sizeof(wanted), "%s=%s", label, label_value);
  }
  for (size_t i = 0; i < e->sample_count; ++i) {
    const sample_t* sample = &e->samples[i];
    if (strcmp(sample->name, name) == 0 && strcmp(sample->label, wanted) == 0) {
      return sample->value;
    }
  }
  fail_msg("no %s{%s}", name, wanted);
  return 0;
}

static void check_steps(const exposition_t* e, const sg_statistics_t* s) {
  for (int i = 0; i < SG_PHASE_COUNT; ++i) {
    assert_int_equal(value_of(e, "stepgraph_steps_total", "phase",
                              sg_phase_name((sg_phase_t)i)),
                     s->steps_by_phase[i]);
  }
  for (int i = 1; i < SG_EAGER_REASON_COUNT; ++i) {
    assert_int_equal(value_of(e, "stepgraph_eager_steps_total", "reason",
                              sg_eager_reason_name((sg_eager_reason_t)i)),
                     s->eager_by_reason[i]);
  }
  assert_int_equal(value_of(e, "stepgraph_tokens_total", "kind", "real"),
                   s->real_tokens);
  assert_int_equal(value_of(e, "stepgraph_tokens_total", "kind", "padded"),
                   s->padded_tokens);
  const struct {
    const char* name;
    uint64_t value;
  } plain[] = {
      {"stepgraph_sequences_total", s->sequences},
      {"stepgraph_busy_calls_total", s->busy_calls},
      {"stepgraph_error_steps_total", s->error_steps},
      {"stepgraph_verified_steps_total", s->verified_steps},
      {"stepgraph_mismatched_rows_total", s->mismatched_rows},
  };
  for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); ++i) {
    assert_int_equal(value_of(e, plain[i].name, NULL, NULL), plain[i].value);
  }
}

// Holds every sample against the statistics; there are no others.
static void check_text(const fixture_t* f, const char* text) {
  exposition_t e;
  parse(text, &e);
  sg_statistics_t s;
  sg_executor_statistics(f->executor, &s);
  check_steps(&e, &s);
  uint64_t graphs = 0, graph_bytes = 0;
  for (size_t i = 0; i < f->shapes.shape_count; ++i) {
    sg_shape_statistics_t shape;
    sg_executor_shape_statistics(f->executor, i, &shape);
    assert_int_equal(value_of(&e, "stepgraph_graph_steps_total", "shape",
                              f->shapes.shapes[i].name),
                     shape.hits);
    if (!shape.captured) continue;
    ++graphs;
    graph_bytes += shape.graph_bytes > 0 ? (uint64_t)shape.graph_bytes : 0;
  }
  assert_int_equal(value_of(&e, "stepgraph_graphs", NULL, NULL), graphs);
  const char* memory = "stepgraph_memory_bytes";
  assert_int_equal(value_of(&e, memory, "kind", "device"), s.device_bytes);
  assert_int_equal(value_of(&e, memory, "kind", "pinned"), s.pinned_bytes);
  assert_int_equal(value_of(&e, memory, "kind", "graphs"), graph_bytes);
  assert_int_equal(e.family_count, 11);
  assert_int_equal(e.sample_count, SG_PHASE_COUNT + SG_EAGER_REASON_COUNT - 1 +
                                       f->shapes.shape_count + 2 + 5 + 3 + 1);
}

static void write_text(const fixture_t* f, char* out_text) {
  size_t bytes = 0;
  memset(out_text, '~', TEXT_BYTES);
  sg_prometheus_write(f->executor, &f->shapes, TEXT_BYTES, out_text, &bytes);
  assert_true(bytes < TEXT_BYTES);
  assert_int_equal(strlen(out_text), bytes);
}

static void run_steps(fixture_t* f, int count) {
  for (int i = 0; i < count; ++i) {
    test_batch_t b;
    fixture_random_batch(f, &b);
    fixture_step(f, &b.batch, NULL);
  }
}

static void test_an_idle_executor_has_all_metrics(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.captured = false;
  fixture_t f;
  fixture_set_up(&f, &options);
  char text[TEXT_BYTES];
  write_text(&f, text);
  check_text(&f, text);
  fixture_tear_down(&f);
}

static void test_values_are_those_of_the_statistics(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.verify_every = 3;
  options.max_padding_ratio = 4;
  fixture_t f;
  fixture_set_up(&f, &options);
  char text[TEXT_BYTES];
  run_steps(&f, 60);
  // A fault, whose step counts.
  const int32_t one[] = {1, 1}, seven[] = {7, 7}, slots[] = {3, 3};
  const sg_batch_t twice = {2, one, seven, slots};
  assert_ok(sg_executor_run(f.executor, &twice, f.stream, NULL));
  assert_hip(hipStreamSynchronize(f.stream));
  write_text(&f, text);
  check_text(&f, text);
  sg_statistics_t s;
  sg_executor_statistics(f.executor, &s);
  // Otherwise the comparisons above say little.
  assert_true(s.graph_steps > 0 && s.eager_by_reason[SG_EAGER_PADDING] > 0);
  assert_true(s.verified_steps > 0 && s.error_steps > 0);
  assert_true(s.padded_tokens > 0 && s.steps_by_phase[SG_PHASE_MIXED] > 0);
  fixture_tear_down(&f);
}

static void test_dropped_graphs_and_a_full_ring_show(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  options.ring_depth = 1;
  fixture_t f;
  fixture_set_up(&f, &options);
  const int32_t one[] = {1}, seven[] = {7}, slots[] = {3};
  const sg_batch_t batch = {1, one, seven, slots};
  sg_statistics_t s = {0};
  for (int i = 0; i < 100000 && s.busy_calls == 0; ++i) {
    sg_status_t status = sg_executor_run(f.executor, &batch, f.stream, NULL);
    if (status.code != SG_STATUS_BUSY) assert_ok(status);
    sg_executor_statistics(f.executor, &s);
  }
  assert_true(s.busy_calls > 0);
  assert_hip(hipStreamSynchronize(f.stream));
  sg_executor_set_memory_budget(f.executor, 1);
  char text[TEXT_BYTES];
  write_text(&f, text);
  check_text(&f, text);
  fixture_tear_down(&f);
}

static void test_short_texts_are_cut(void** state) {
  (void)state;
  fixture_options_t options = fixture_defaults();
  fixture_t f;
  fixture_set_up(&f, &options);
  run_steps(&f, 10);
  char whole[TEXT_BYTES], cut[TEXT_BYTES + 1];
  write_text(&f, whole);
  size_t bytes = strlen(whole), needed = 0;
  sg_prometheus_write(f.executor, &f.shapes, 0, NULL, &needed);
  assert_int_equal(needed, bytes);
  for (size_t capacity = 0; capacity <= bytes + 2; ++capacity) {
    memset(cut, '~', sizeof(cut));
    needed = 0;
    sg_prometheus_write(f.executor, &f.shapes, capacity, cut, &needed);
    assert_int_equal(needed, bytes);
    size_t kept = capacity > bytes ? bytes : capacity;
    if (capacity > 0 && capacity <= bytes) --kept;
    assert_memory_equal(cut, whole, kept);
    if (capacity > 0) assert_int_equal(cut[kept], 0);
    // Nothing behind the room.
    for (size_t i = capacity; i < bytes + 8; ++i) {
      assert_int_equal(cut[i], '~');
    }
  }
  fixture_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_idle_executor_has_all_metrics),
      cmocka_unit_test(test_values_are_those_of_the_statistics),
      cmocka_unit_test(test_dropped_graphs_and_a_full_ring_show),
      cmocka_unit_test(test_short_texts_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
