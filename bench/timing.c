// SPDX-License-Identifier: Apache-2.0

// Of POSIX: nanosleep and the monotonic clock.
#define _POSIX_C_SOURCE 200809L

#include "bench/timing.h"

#include <stddef.h>
#include <time.h>

double timing_now_ms(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

void timing_rest(void) {
  const struct timespec pause = {.tv_nsec = 20000000};
  (void)nanosleep(&pause, NULL);
}
