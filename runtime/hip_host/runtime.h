// SPDX-License-Identifier: Apache-2.0
//
// The state of the runtime: one lock, the devices, the objects that live on
// them. Everything that a HIP call reads or changes is behind the one lock;
// workers hold it between commands only, never while they execute one.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_RUNTIME_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_RUNTIME_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/hip/hip.h"
#include "runtime/hip_host/operation.h"

enum { SG_HOST_MAX_DEVICES = 16 };

typedef struct sg_host_capture_t sg_host_capture_t;
typedef struct sg_host_command_t sg_host_command_t;
typedef struct sg_host_device_t sg_host_device_t;
typedef struct sg_host_event_t sg_host_event_t;
typedef struct sg_host_exec_t sg_host_exec_t;
typedef struct sg_host_node_t sg_host_node_t;
typedef struct sg_host_stream_t sg_host_stream_t;

// A growing set of nodes: what the next captured operation depends on.
typedef struct sg_host_nodes_t {
  sg_host_node_t** items;
  size_t count;
  size_t capacity;
} sg_host_nodes_t;

// An in-order queue of commands. A command's ticket is its number within the
// stream, from 1.
struct sg_host_stream_t {
  void* handle;
  sg_host_device_t* device;
  // The device's legacy null stream.
  bool is_null;
  // Ordered with the null stream: it is that itself or was created without
  // hipStreamNonBlocking.
  bool is_blocking;
  // Held by the handle, by queued commands, by events recorded here and by
  // waits for them. The null stream's never reaches 0.
  uint32_t references;

  sg_host_command_t* first;
  sg_host_command_t* last;
  // A worker executes |first|.
  bool is_running;
  // Tickets of the newest command and of the newest finished one.
  uint64_t submitted;
  uint64_t completed;

  // Ring of the streams that have commands.
  sg_host_stream_t* next_active;
  sg_host_stream_t* previous_active;
  // List of all streams.
  sg_host_stream_t* next;
  sg_host_stream_t* previous;

  // The capture that this stream takes part in, or NULL.
  sg_host_capture_t* capture;
  sg_host_nodes_t dependencies;
};

struct sg_host_device_t {
  int index;
  size_t memory_limit_bytes;
  size_t memory_in_use_bytes;
  // Not hipSuccess once the device is broken.
  hipError_t fault;
  sg_host_stream_t null_stream;
};

typedef struct sg_host_runtime_t {
  pthread_mutex_t lock;
  // Signalled when a command finishes while someone waits.
  pthread_cond_t progress;
  uint32_t waiters;
  bool strict;
  _Atomic bool poison;
  int device_count;
  sg_host_device_t devices[SG_HOST_MAX_DEVICES];
  sg_host_stream_t* streams;
  // One of the streams that have commands, or NULL: the next to be looked at.
  sg_host_stream_t* active;
  // Number of the newest command of all streams.
  uint64_t sequence;
  sg_host_capture_t* captures;
} sg_host_runtime_t;

extern sg_host_runtime_t sg_host_runtime;

// Takes and releases the runtime's lock. The first taking sets the runtime up.
void sg_host_lock(void);
void sg_host_unlock(void);

// --- The calling thread ---

// A number of the thread that is never used again.
uint64_t sg_host_thread_id(void);
hipStreamCaptureMode* sg_host_thread_capture_mode(void);
sg_host_device_t* sg_host_thread_device(void);

// --- Time ---

// Nanoseconds of a clock that only goes forward.
uint64_t sg_host_now_ns(void);

// Tells the CPU that the thread is spinning.
static inline void sg_host_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// --- Growing sets of nodes ---

// Appends |node|; _add only if it is not there. False if memory is exhausted.
bool sg_host_nodes_append(sg_host_nodes_t* nodes, sg_host_node_t* node);
bool sg_host_nodes_add(sg_host_nodes_t* nodes, sg_host_node_t* node);
void sg_host_nodes_clear(sg_host_nodes_t* nodes);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_RUNTIME_H_
