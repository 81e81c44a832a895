// SPDX-License-Identifier: Apache-2.0
//
// stepgraph dump: records the graphs of shapes and writes what is in them.

#include "graphs/dump.h"

#include <stddef.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/session.h"

enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_DOT, FORMAT_HTML };

typedef struct dump_options_t {
  const char* model;
  const char* shapes;
  const char* shape;
  const char* target;
  const char* output;
  int format;
} dump_options_t;

#define VALUE(member) .value_offset = offsetof(dump_options_t, member)

static const sg_option_t option_list[] = {
    SG_OPTION_MODEL(dump_options_t),
    SG_OPTION_SHAPES(dump_options_t),
    {.name = "shape",
     .kind = SG_OPTION_TEXT,
     VALUE(shape),
     .placeholder = "NAME",
     .help = "only this shape [all]"},
    {.name = "format",
     .kind = SG_OPTION_CHOICE,
     VALUE(format),
     .placeholder = "text|json|dot",
     .help = "what to write [text]",
     .choices = {"text", "json", "dot", "html"}},
    {.name = "target",
     .kind = SG_OPTION_TEXT,
     VALUE(target),
     .placeholder = "NAME",
     .help = "record for another device, e.g. gfx942 [this one]"},
    {.name = "output",
     .letter = 'o',
     .kind = SG_OPTION_TEXT,
     VALUE(output),
     .placeholder = "FILE",
     .help = "write to a file instead of the standard output"},
};

#undef VALUE

static const sg_option_table_t table = {
    .command = "dump",
    .summary = "Shows the nodes of the graphs that steps are recorded as.",
    .options = option_list,
    .option_count = sizeof(option_list) / sizeof(option_list[0]),
};

// Leaves only the shape called |name|, and of the policy only what recording
// needs: every graph, now, of any size.
static sg_status_t choose_shapes(sg_shapes_t* shapes, const char* name) {
  shapes->policy.capture = SG_CAPTURE_STARTUP;
  shapes->policy.memory_budget_bytes = 0;
  if (name == NULL) return sg_status_ok();
  char known[160] = "";
  for (size_t i = 0; i < shapes->shape_count; ++i) {
    if (strcmp(shapes->shapes[i].name, name) == 0) {
      const sg_shape_t chosen = shapes->shapes[i];
      shapes->shapes[i] = shapes->shapes[0];
      shapes->shapes[0] = chosen;
      for (size_t j = 1; j < shapes->shape_count; ++j) {
        sg_release(shapes->allocator, shapes->shapes[j].name);
      }
      shapes->shape_count = 1;
      return sg_status_ok();
    }
    size_t used = strlen(known);
    snprintf(known + used, sizeof(known) - used, "%s%s", i == 0 ? "" : ", ",
             shapes->shapes[i].name);
  }
  return sg_status_make(SG_STATUS_NOT_FOUND,
                        "dump: no shape '%.64s', expected one of %s", name,
                        known);
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

static sg_status_t record(sg_session_t* session, const dump_options_t* o) {
  sg_session_options_t options = {
      .slot_count = session->shapes.limits.max_sequences, .ring_depth = 64};
  if (o->target != NULL) {
    SG_RETURN_IF_ERROR(sg_target_find(o->target, &options.target));
  }
  SG_RETURN_IF_ERROR(sg_session_start(session, &options));
  sg_status_t first = sg_status_ok();
  SG_RETURN_IF_ERROR(
      sg_executor_capture(session->executor, check_capture, &first));
  return first;
}

static sg_status_t write_format(const sg_dump_t* dump, int format, FILE* file) {
  switch (format) {
    case FORMAT_JSON:
      return sg_dump_write_json(dump, file);
    case FORMAT_DOT:
      return sg_dump_write_dot(dump, file);
    default:
      return sg_dump_write_text(dump, file);
  }
}

static sg_status_t write_file(const sg_dump_t* dump, const dump_options_t* o) {
  if (o->output == NULL) return write_format(dump, o->format, stdout);
  sg_output_file_t file;
  SG_RETURN_IF_ERROR(sg_output_file_open(o->output, &file));
  return sg_output_file_finish(&file, write_format(dump, o->format, file.file));
}

static sg_status_t write_session(const sg_session_t* session,
                                 const dump_options_t* o,
                                 sg_dump_graph_t* graphs,
                                 sg_memory_region_t* regions,
                                 size_t region_count) {
  size_t count;
  sg_executor_regions(session->executor, region_count, regions, &count);
  for (size_t i = 0; i < session->shapes.shape_count; ++i) {
    graphs[i] =
        (sg_dump_graph_t){.shape = &session->shapes.shapes[i],
                          .nodes = sg_executor_nodes(session->executor, i,
                                                     /*piece=*/0)};
    if (graphs[i].nodes == NULL) {
      return sg_status_make(SG_STATUS_INTERNAL, "dump: shape %s has no graph",
                            graphs[i].shape->name);
    }
  }
  const sg_dump_t dump = {.model = session->model.name,
                          .target = session->target,
                          .graphs = graphs,
                          .graph_count = session->shapes.shape_count,
                          .regions = regions,
                          .region_count = region_count};
  return write_file(&dump, o);
}

static sg_status_t dump_session(sg_session_t* session,
                                const dump_options_t* o) {
  SG_RETURN_IF_ERROR(choose_shapes(&session->shapes, o->shape));
  SG_RETURN_IF_ERROR(record(session, o));
  size_t region_count;
  sg_executor_regions(session->executor, 0, NULL, &region_count);
  void* graphs = NULL;
  void* regions = NULL;
  sg_allocator_t allocator = sg_allocator_system();
  sg_status_t status =
      sg_allocate(allocator, "dump", session->shapes.shape_count,
                  sizeof(sg_dump_graph_t), &graphs);
  if (sg_status_is_ok(status)) {
    status = sg_allocate(allocator, "dump", region_count,
                         sizeof(sg_memory_region_t), &regions);
  }
  if (sg_status_is_ok(status)) {
    status = write_session(session, o, graphs, regions, region_count);
  }
  sg_release(allocator, graphs);
  sg_release(allocator, regions);
  return status;
}

int sg_command_dump(int argc, char** argv) {
  dump_options_t o = {.shapes = "default"};
  int exit_code;
  int positional_count;
  if (!sg_command_parse(&table, argc, argv, &o, &positional_count,
                        &exit_code)) {
    return exit_code;
  }
  sg_status_t status = sg_status_ok();
  if (o.format == FORMAT_HTML) {
    status = sg_status_make(SG_STATUS_UNSUPPORTED,
                            "dump: --format html is not available yet, "
                            "expected text, json or dot");
  }
  if (sg_status_is_ok(status) && o.output != NULL) {
    status = sg_output_file_check(o.output);
  }
  sg_session_t session = {0};
  if (sg_status_is_ok(status)) {
    status = sg_session_open(o.model, o.shapes, &session);
  }
  if (sg_status_is_ok(status)) status = dump_session(&session, &o);
  exit_code = sg_status_is_ok(status) ? sg_command_finish(SG_EXIT_DONE)
                                      : sg_command_fail(status);
  sg_session_close(&session);
  return exit_code;
}
