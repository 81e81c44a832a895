// SPDX-License-Identifier: Apache-2.0
//
// How the tool shows what it is doing, on stderr: a bar that is redrawn in
// place on a terminal, a line now and then anywhere else, nothing when quiet.

#ifndef STEPGRAPH_CLI_TERMINAL_H_
#define STEPGRAPH_CLI_TERMINAL_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_terminal_t {
  FILE* file;
  bool quiet;
  // |file| is a terminal that can go back to the start of a line.
  bool interactive;
  bool colours;
  // A bar is on the line that the cursor is in.
  bool line_open;
  int64_t last_drawn_ns;
} sg_terminal_t;

typedef enum sg_style_t {
  SG_STYLE_PLAIN = 0,
  SG_STYLE_STRONG,
  SG_STYLE_GOOD,
  SG_STYLE_BAD,
} sg_style_t;

// Whether |file| is a terminal on which colours are wanted: neither NO_COLOR is
// set, nor is TERM "dumb".
bool sg_terminal_wants_colours(FILE* file);

// The escape sequence of |style|, or "" without colours.
const char* sg_style_begin(bool colours, sg_style_t style);
const char* sg_style_end(bool colours, sg_style_t style);

void sg_terminal_initialize(bool quiet, sg_terminal_t* out_terminal);

// Shows that |done| of |total| are done. |detail| stands behind the bar. Draws
// at most some ten times a second, elsewhere every five seconds, and always
// when done is total.
void sg_terminal_progress(sg_terminal_t* terminal, const char* label,
                          int64_t done, int64_t total, const char* detail);

// A line of its own.
void sg_terminal_line(sg_terminal_t* terminal, const char* format, ...)
    SG_PRINTF_LIKE(2, 3);

// Takes an unfinished bar off the screen, before anything else is printed.
void sg_terminal_clear(sg_terminal_t* terminal);

// Monotonic time.
int64_t sg_clock_ns(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_CLI_TERMINAL_H_
