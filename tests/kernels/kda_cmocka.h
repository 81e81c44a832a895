// SPDX-License-Identifier: Apache-2.0
//
// cmocka with what it needs before it, and assertions on statuses.

#ifndef STEPGRAPH_TESTS_KERNELS_KDA_CMOCKA_H_
#define STEPGRAPH_TESTS_KERNELS_KDA_CMOCKA_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/status.h"

static inline void assert_ok(sg_status_t status) {
  if (!sg_status_is_ok(status)) fail_msg("%s", status.message);
}

#endif  // STEPGRAPH_TESTS_KERNELS_KDA_CMOCKA_H_
