// SPDX-License-Identifier: Apache-2.0

#include "runtime/prometheus.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

// Text that is counted whole and kept as far as there is room.
typedef struct text_t {
  char* text;
  size_t capacity;
  size_t bytes;
} text_t;

static void put(text_t* t, const char* format, ...) SG_PRINTF_LIKE(2, 3);

static void put(text_t* t, const char* format, ...) {
  size_t room = t->bytes < t->capacity ? t->capacity - t->bytes : 0;
  va_list arguments;
  va_start(arguments, format);
  int bytes =
      vsnprintf(room > 0 ? t->text + t->bytes : NULL, room, format, arguments);
  va_end(arguments);
  if (bytes > 0) t->bytes += (size_t)bytes;
}

static void put_head(text_t* t, const char* name, const char* type,
                     const char* help) {
  put(t, "# HELP stepgraph_%s %s\n# TYPE stepgraph_%s %s\n", name, help, name,
      type);
}

static void put_counter(text_t* t, const char* name, const char* help,
                        uint64_t value) {
  put_head(t, name, "counter", help);
  put(t, "stepgraph_%s %" PRIu64 "\n", name, value);
}

static void put_labelled(text_t* t, const char* name, const char* label,
                         const char* label_value, uint64_t value) {
  // Names of shapes, phases and reasons need no escapes (schemas/shapes.h).
  put(t, "stepgraph_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, label_value,
      value);
}

static void put_steps(text_t* t, const sg_statistics_t* statistics) {
  put_head(t, "steps_total", "counter", "Steps by phase.");
  for (int phase = 0; phase < SG_PHASE_COUNT; ++phase) {
    put_labelled(t, "steps_total", "phase", sg_phase_name((sg_phase_t)phase),
                 statistics->steps_by_phase[phase]);
  }
  put_head(t, "eager_steps_total", "counter", "Eager steps by reason.");
  for (int reason = 1; reason < SG_EAGER_REASON_COUNT; ++reason) {
    put_labelled(t, "eager_steps_total", "reason",
                 sg_eager_reason_name((sg_eager_reason_t)reason),
                 statistics->eager_by_reason[reason]);
  }
}

static void put_shapes(text_t* t, const sg_executor_t* executor,
                       const sg_shapes_t* shapes, uint64_t* out_graph_bytes) {
  uint64_t graphs = 0;
  *out_graph_bytes = 0;
  put_head(t, "graph_steps_total", "counter", "Replayed steps by shape.");
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    sg_shape_statistics_t shape;
    sg_executor_shape_statistics(executor, i, &shape);
    put_labelled(t, "graph_steps_total", "shape", shapes->shapes[i].name,
                 shape.hits);
    graphs += shape.captured;
    if (shape.captured && shape.graph_bytes > 0) {
      *out_graph_bytes += (uint64_t)shape.graph_bytes;
    }
  }
  put_head(t, "graphs", "gauge", "Shapes that have a graph.");
  put(t, "stepgraph_graphs %" PRIu64 "\n", graphs);
}

void sg_prometheus_write(const sg_executor_t* executor,
                         const sg_shapes_t* shapes, size_t capacity,
                         char* out_text, size_t* out_bytes) {
  text_t t = {.text = out_text, .capacity = capacity};
  sg_statistics_t s;
  sg_executor_statistics(executor, &s);
  uint64_t graph_bytes;
  put_steps(&t, &s);
  put_shapes(&t, executor, shapes, &graph_bytes);
  put_head(&t, "tokens_total", "counter", "Rows of replays and eager steps.");
  put_labelled(&t, "tokens_total", "kind", "real", s.real_tokens);
  put_labelled(&t, "tokens_total", "kind", "padded", s.padded_tokens);
  put_counter(&t, "sequences_total", "Sequences of all steps.", s.sequences);
  put_counter(&t, "busy_calls_total", "Calls that found the ring full.",
              s.busy_calls);
  put_counter(&t, "error_steps_total", "Steps in which the device saw a fault.",
              s.error_steps);
  put_counter(&t, "verified_steps_total", "Steps run twice and compared.",
              s.verified_steps);
  put_counter(&t, "mismatched_rows_total", "Rows and slots that differed.",
              s.mismatched_rows);
  put_head(&t, "memory_bytes", "gauge", "Memory that the executor holds.");
  put_labelled(&t, "memory_bytes", "kind", "device", s.device_bytes);
  put_labelled(&t, "memory_bytes", "kind", "pinned", s.pinned_bytes);
  put_labelled(&t, "memory_bytes", "kind", "graphs", graph_bytes);
  *out_bytes = t.bytes;
}
