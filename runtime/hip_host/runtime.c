// SPDX-License-Identifier: Apache-2.0

// For clock_gettime and sysconf's numbers.
#define _DEFAULT_SOURCE

#include "runtime/hip_host/runtime.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/hip_host/hip_host.h"

sg_host_runtime_t sg_host_runtime = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .progress = PTHREAD_COND_INITIALIZER,
    .strict = true,
    .device_count = 1,
};

static pthread_once_t set_up_once = PTHREAD_ONCE_INIT;

static void set_up(void) {
  size_t machine_bytes =
      (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < SG_HOST_MAX_DEVICES; ++i) {
    sg_host_device_t* device = &sg_host_runtime.devices[i];
    device->index = i;
    device->memory_limit_bytes = machine_bytes;
    device->null_stream = (sg_host_stream_t){.device = device,
                                             .is_null = true,
                                             .is_blocking = true,
                                             .references = 1};
  }
}

void sg_host_lock(void) {
  pthread_once(&set_up_once, set_up);
  pthread_mutex_lock(&sg_host_runtime.lock);
}

void sg_host_unlock(void) { pthread_mutex_unlock(&sg_host_runtime.lock); }

uint64_t sg_host_thread_id(void) {
  static _Atomic uint64_t newest_id;
  static _Thread_local uint64_t id;
  if (id == 0) id = ++newest_id;
  return id;
}

hipStreamCaptureMode* sg_host_thread_capture_mode(void) {
  static _Thread_local hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  return &mode;
}

uint64_t sg_host_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool sg_host_nodes_add(sg_host_nodes_t* nodes, sg_host_node_t* node) {
  for (size_t i = 0; i < nodes->count; ++i) {
    if (nodes->items[i] == node) return true;
  }
  return sg_host_nodes_append(nodes, node);
}

bool sg_host_nodes_append(sg_host_nodes_t* nodes, sg_host_node_t* node) {
  if (nodes->count == nodes->capacity) {
    size_t capacity = nodes->capacity == 0 ? 4 : nodes->capacity * 2;
    sg_host_node_t** items =
        realloc(nodes->items, capacity * sizeof(sg_host_node_t*));
    if (items == NULL) return false;
    nodes->items = items;
    nodes->capacity = capacity;
  }
  nodes->items[nodes->count++] = node;
  return true;
}

void sg_host_nodes_clear(sg_host_nodes_t* nodes) {
  free(nodes->items);
  *nodes = (sg_host_nodes_t){0};
}

void sg_hip_host_set_strict(bool strict) {
  sg_host_lock();
  sg_host_runtime.strict = strict;
  sg_host_unlock();
}

void sg_hip_host_set_poison(bool poison) { sg_host_runtime.poison = poison; }
