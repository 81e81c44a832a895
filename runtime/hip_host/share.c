// SPDX-License-Identifier: Apache-2.0

// For sched_yield and nanosleep.
#define _DEFAULT_SOURCE

#include "runtime/hip_host/share.h"

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/hip_host/pages.h"
#include "runtime/hip_host/runtime.h"
#include "runtime/hip_host/scheduler.h"

// A kernel whose blocks are given away. The leader fills in |launch| while the
// share is closed and no visitor is inside, opens it, and takes blocks itself
// until all are taken. Whoever takes the last block closes the share. When the
// visitors have left, every block is done. A visitor enters before it looks
// whether the share is open.
typedef struct share_t {
  const sg_host_kernel_launch_t* launch;
  _Atomic uint32_t next_block;
  _Atomic bool is_open;
  _Atomic uint32_t visitors;
} share_t;

struct sg_host_scratch_t {
  alignas(64) share_t share;
  // SG_HOST_SHARED_BYTES bytes with an inaccessible page behind them.
  unsigned char* shared;
};

static sg_host_scratch_t* scratches;
static int scratch_count;
static _Atomic uint32_t open_count;

bool sg_host_share_initialize(int count) {
  scratches = aligned_alloc(alignof(sg_host_scratch_t),
                            (size_t)count * sizeof(*scratches));
  if (scratches == NULL) return false;
  memset(scratches, 0, (size_t)count * sizeof(*scratches));
  for (scratch_count = 0; scratch_count < count; ++scratch_count) {
    unsigned char* shared = sg_host_pages_map(SG_HOST_SHARED_BYTES);
    if (shared == NULL) {
      sg_host_share_deinitialize();
      return false;
    }
    scratches[scratch_count].shared = shared;
  }
  return true;
}

void sg_host_share_deinitialize(void) {
  for (int i = 0; i < scratch_count; ++i) {
    sg_host_pages_unmap(scratches[i].shared, SG_HOST_SHARED_BYTES);
  }
  free(scratches);
  scratches = NULL;
  scratch_count = 0;
}

sg_host_scratch_t* sg_host_share_scratch(int worker) {
  return &scratches[worker];
}

static void run_block(const sg_host_kernel_launch_t* launch, uint32_t index,
                      const sg_host_scratch_t* scratch) {
  // Against the end, so that a block that uses more than it asked for faults.
  size_t aligned_bytes = ((size_t)launch->shared_bytes + 63) / 64 * 64;
  sg_host_block_t block = {
      .index = index,
      .grid = launch->grid,
      .threads = launch->block[0] * launch->block[1] * launch->block[2],
      .workers = (uint32_t)scratch_count,
      .shared = scratch->shared + SG_HOST_SHARED_BYTES - aligned_bytes,
      .shared_bytes = launch->shared_bytes};
  if (sg_host_runtime.poison) memset(block.shared, 0xFF, aligned_bytes);
  launch->kernel->run_block(launch->params, &block);
}

static bool take_blocks(share_t* share, const sg_host_scratch_t* scratch) {
  const sg_host_kernel_launch_t* launch = share->launch;
  bool took = false;
  for (;;) {
    uint32_t index =
        atomic_fetch_add_explicit(&share->next_block, 1, memory_order_relaxed);
    if (index >= launch->grid) return took;
    if (index == launch->grid - 1) {
      share->is_open = false;
      open_count--;
    }
    run_block(launch, index, scratch);
    took = true;
  }
}

// One more round of waiting for another worker, which may be in the middle of
// a long block or without a CPU.
static void back_off(uint32_t round) {
  if (round < 1000) {
    sg_host_pause();
  } else if (round < 1100) {
    sched_yield();
  } else {
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  }
}

static void run_kernel(const sg_host_kernel_launch_t* launch,
                       sg_host_scratch_t* scratch) {
  if (launch->grid == 1 || scratch_count == 1) {
    for (uint32_t i = 0; i < launch->grid; ++i) run_block(launch, i, scratch);
    return;
  }
  share_t* share = &scratch->share;
  share->launch = launch;
  share->next_block = 0;
  open_count++;
  share->is_open = true;
  sg_host_scheduler_wake(launch->grid - 1);
  take_blocks(share, scratch);
  for (uint32_t round = 0; share->visitors > 0; ++round) back_off(round);
}

bool sg_host_share_help(sg_host_scratch_t* scratch) {
  bool helped = false;
  for (int i = 0; i < scratch_count; ++i) {
    share_t* share = &scratches[i].share;
    if (!share->is_open) continue;
    share->visitors++;
    if (share->is_open && take_blocks(share, scratch)) helped = true;
    share->visitors--;
  }
  return helped;
}

bool sg_host_share_is_open(void) { return open_count > 0; }

static void run_copy(const sg_host_copy_t* copy) {
  unsigned char* target = copy->target;
  const unsigned char* source = copy->source;
  for (size_t row = 0; row < copy->height; ++row) {
    memmove(target, source, copy->width_bytes);
    target += copy->target_pitch_bytes;
    source += copy->source_pitch_bytes;
  }
}

static void fill_row(unsigned char* target, const sg_host_fill_t* fill) {
  // Filling nothing is legal, even at NULL, which memset does not take.
  if (fill->width == 0) return;
  if (fill->element_bytes == 1) {
    memset(target, (int)(fill->value & 0xFF), fill->width);
    return;
  }
  if (fill->element_bytes == 2) {
    uint16_t value = (uint16_t)fill->value;
    for (size_t i = 0; i < fill->width; ++i) {
      memcpy(target + i * sizeof(value), &value, sizeof(value));
    }
    return;
  }
  for (size_t i = 0; i < fill->width; ++i) {
    memcpy(target + i * sizeof(fill->value), &fill->value, sizeof(fill->value));
  }
}

static void run_fill(const sg_host_fill_t* fill) {
  unsigned char* target = fill->target;
  for (size_t row = 0; row < fill->height; ++row) {
    fill_row(target, fill);
    target += fill->pitch_bytes;
  }
}

void sg_host_operation_run(const sg_host_operation_t* operation,
                           sg_host_scratch_t* scratch) {
  switch (operation->kind) {
    case SG_HOST_OPERATION_EMPTY:
      break;
    case SG_HOST_OPERATION_KERNEL:
      run_kernel(&operation->launch, scratch);
      break;
    case SG_HOST_OPERATION_COPY:
      run_copy(&operation->copy);
      break;
    case SG_HOST_OPERATION_FILL:
      run_fill(&operation->fill);
      break;
    case SG_HOST_OPERATION_CALL:
      operation->call.function(operation->call.data);
      break;
  }
}
