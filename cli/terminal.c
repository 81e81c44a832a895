// SPDX-License-Identifier: Apache-2.0

#define _POSIX_C_SOURCE 200809L

#include "cli/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  BAR_CELLS = 28,
  REDRAW_NS = 80 * 1000 * 1000,
};

static const int64_t plain_line_ns = 5000000000;

int64_t sg_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_set(const char* variable) {
  const char* value = getenv(variable);
  return value != NULL && value[0] != '\0';
}

static bool is_terminal(FILE* file) {
  const char* kind = getenv("TERM");
  return isatty(fileno(file)) && (kind == NULL || strcmp(kind, "dumb") != 0);
}

bool sg_terminal_wants_colours(FILE* file) {
  return is_terminal(file) && !is_set("NO_COLOR");
}

const char* sg_style_begin(bool colours, sg_style_t style) {
  if (!colours) return "";
  switch (style) {
    case SG_STYLE_PLAIN:
      return "";
    case SG_STYLE_STRONG:
      return "\033[1m";
    case SG_STYLE_GOOD:
      return "\033[32m";
    case SG_STYLE_BAD:
      return "\033[31m";
  }
  return "";
}

const char* sg_style_end(bool colours, sg_style_t style) {
  return colours && style != SG_STYLE_PLAIN ? "\033[0m" : "";
}

void sg_terminal_initialize(bool quiet, sg_terminal_t* out_terminal) {
  *out_terminal = (sg_terminal_t){
      .file = stderr,
      .quiet = quiet,
      .interactive = is_terminal(stderr),
      .colours = sg_terminal_wants_colours(stderr),
      .last_drawn_ns = sg_clock_ns(),
  };
}

static void draw_bar(sg_terminal_t* terminal, const char* label, double share,
                     const char* detail) {
  int filled = (int)(share * BAR_CELLS);
  fprintf(terminal->file, "\r\033[K%s [%s", label,
          sg_style_begin(terminal->colours, SG_STYLE_GOOD));
  for (int i = 0; i < BAR_CELLS; ++i) {
    fputc(i < filled ? '#' : '.', terminal->file);
  }
  fprintf(terminal->file, "%s] %3d%%  %s",
          sg_style_end(terminal->colours, SG_STYLE_GOOD), (int)(share * 100),
          detail);
  fflush(terminal->file);
  terminal->line_open = true;
}

void sg_terminal_progress(sg_terminal_t* terminal, const char* label,
                          int64_t done, int64_t total, const char* detail) {
  if (terminal->quiet) return;
  int64_t now_ns = sg_clock_ns();
  int64_t wait_ns = terminal->interactive ? REDRAW_NS : plain_line_ns;
  bool complete = done >= total;
  if (!complete && now_ns - terminal->last_drawn_ns < wait_ns) return;
  terminal->last_drawn_ns = now_ns;
  double share = total > 0 && !complete ? (double)done / (double)total : 1.0;
  if (!terminal->interactive) {
    fprintf(terminal->file, "%s: %d%%, %s\n", label, (int)(share * 100),
            detail);
    return;
  }
  draw_bar(terminal, label, share, detail);
  if (complete) {
    fputc('\n', terminal->file);
    terminal->line_open = false;
  }
}

void sg_terminal_line(sg_terminal_t* terminal, const char* format, ...) {
  if (terminal->quiet) return;
  sg_terminal_clear(terminal);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(terminal->file, format, arguments);
  va_end(arguments);
  fputc('\n', terminal->file);
}

void sg_terminal_clear(sg_terminal_t* terminal) {
  if (!terminal->line_open) return;
  fputs("\r\033[K", terminal->file);
  fflush(terminal->file);
  terminal->line_open = false;
}
