// SPDX-License-Identifier: Apache-2.0
//
// cmocka with the includes that it wants, and checks of statuses and HIP calls
// that show the message when they fail.

#ifndef STEPGRAPH_TESTS_CHECK_H_
#define STEPGRAPH_TESTS_CHECK_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/status.h"

#define assert_ok(expression)                                          \
  do {                                                                 \
    sg_status_t assert_ok_ = (expression);                             \
    if (!sg_status_is_ok(assert_ok_)) {                                \
      fail_msg("%s: %s (%s:%d)", sg_status_code_name(assert_ok_.code), \
               assert_ok_.message, assert_ok_.file, assert_ok_.line);  \
    }                                                                  \
  } while (0)

#define assert_code(expression, expected)                                     \
  do {                                                                        \
    sg_status_t assert_code_ = (expression);                                  \
    if (assert_code_.code != (expected)) {                                    \
      fail_msg("expected %s, found %s: %s", sg_status_code_name(expected),    \
               sg_status_code_name(assert_code_.code), assert_code_.message); \
    }                                                                         \
  } while (0)

#define assert_hip(expression) assert_int_equal((expression), hipSuccess)

#endif  // STEPGRAPH_TESTS_CHECK_H_
