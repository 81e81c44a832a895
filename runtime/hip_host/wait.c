// SPDX-License-Identifier: Apache-2.0
//
// Waiting of the host for the device, by a short spin and then by sleeping.

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/runtime.h"
#include "runtime/hip_host/scheduler.h"
#include "runtime/hip_host/stream.h"

enum {
  // About 20 microseconds, as long as a sleep and its waking take.
  SPIN_ROUNDS = 100,
  PAUSES_PER_ROUND = 8,
};

// What is waited for: that |stream| has finished |ticket|; or, without one,
// that no stream of |device| (only the blocking ones of it, if so said) has a
// command up to |sequence|.
typedef struct goal_t {
  const sg_host_stream_t* stream;
  uint64_t ticket;
  const sg_host_device_t* device;
  bool blocking_only;
  uint64_t sequence;
} goal_t;

static bool is_reached(const goal_t* goal) {
  if (goal->stream != NULL) return goal->stream->completed >= goal->ticket;
  const sg_host_stream_t* first = sg_host_runtime.active;
  const sg_host_stream_t* stream = first;
  if (stream == NULL) return true;
  do {
    if (stream->device == goal->device &&
        (stream->is_blocking || !goal->blocking_only) &&
        stream->first->sequence <= goal->sequence) {
      return false;
    }
    stream = stream->next_active;
  } while (stream != first);
  return true;
}

static void wait_for(const goal_t* goal) {
  for (int round = 0; round < SPIN_ROUNDS; ++round) {
    if (is_reached(goal)) return;
    sg_host_unlock();
    for (int i = 0; i < PAUSES_PER_ROUND; ++i) sg_host_pause();
    sg_host_lock();
  }
  sg_host_runtime.waiters++;
  while (!is_reached(goal)) {
    pthread_cond_wait(&sg_host_runtime.progress, &sg_host_runtime.lock);
  }
  sg_host_runtime.waiters--;
}

// A null stream has finished when all that it is ordered with has.
static goal_t goal_of_stream(const sg_host_stream_t* stream) {
  if (stream->is_null) {
    return (goal_t){.device = stream->device,
                    .blocking_only = true,
                    .sequence = sg_host_runtime.sequence};
  }
  return (goal_t){.stream = stream, .ticket = stream->submitted};
}

bool sg_host_stream_is_idle(const sg_host_stream_t* stream) {
  goal_t goal = goal_of_stream(stream);
  return is_reached(&goal);
}

hipError_t sg_host_wait_ticket(sg_host_stream_t* stream, uint64_t ticket) {
  goal_t goal = {.stream = stream, .ticket = ticket};
  // A host function that waited would wait for itself.
  if (sg_host_scheduler_is_worker()) return hipErrorNotSupported;
  sg_host_stream_retain(stream);
  wait_for(&goal);
  hipError_t fault = stream->device->fault;
  sg_host_stream_release(stream);
  return fault;
}

hipError_t sg_host_wait_stream(sg_host_stream_t* stream) {
  goal_t goal = goal_of_stream(stream);
  if (sg_host_scheduler_is_worker()) return hipErrorNotSupported;
  sg_host_stream_retain(stream);
  wait_for(&goal);
  hipError_t fault = stream->device->fault;
  sg_host_stream_release(stream);
  return fault;
}

hipError_t sg_host_wait_device(sg_host_device_t* device) {
  goal_t goal = {.device = device, .sequence = sg_host_runtime.sequence};
  if (sg_host_scheduler_is_worker()) return hipErrorNotSupported;
  wait_for(&goal);
  return device->fault;
}
