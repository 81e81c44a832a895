// SPDX-License-Identifier: Apache-2.0
//
// Commands, which streams queue, and the pool they come from. The pool is
// reserved at once and touched as it is used, so that enqueueing allocates
// nothing.

#ifndef STEPGRAPH_RUNTIME_HIP_HOST_COMMAND_H_
#define STEPGRAPH_RUNTIME_HIP_HOST_COMMAND_H_

#include <stdalign.h>
#include <stdbool.h>

#include "runtime/hip_host/runtime.h"

typedef enum sg_host_command_kind_t {
  SG_HOST_COMMAND_OPERATION = 0,
  // One launch of an executable graph.
  SG_HOST_COMMAND_GRAPH,
  // Marks an event.
  SG_HOST_COMMAND_RECORD,
  // Holds the stream until another stream has finished a command.
  SG_HOST_COMMAND_WAIT,
  // Breaks the device.
  SG_HOST_COMMAND_FAULT,
} sg_host_command_kind_t;

struct sg_host_command_t {
  sg_host_command_kind_t kind;
  // Position among the commands of all streams, which null streams go by.
  uint64_t sequence;
  uint64_t ticket;
  sg_host_command_t* next;
  union {
    sg_host_operation_t operation;
    // Launches of one executable graph run in order of |launch|, from 1.
    struct {
      sg_host_exec_t* exec;
      uint64_t launch;
    } graph;
    struct {
      sg_host_event_t* event;
    } record;
    struct {
      sg_host_stream_t* stream;
      uint64_t ticket;
    } wait;
    struct {
      hipError_t error;
    } fault;
  };
  // Where the params of an operation are kept.
  alignas(64) unsigned char params[SG_HOST_PARAMS_CAPACITY_BYTES];
};

// Takes a command out of the pool, which grows when it is empty; NULL if
// memory is exhausted. Needs the lock.
sg_host_command_t* sg_host_command_acquire(void);
void sg_host_command_release(sg_host_command_t* command);

#endif  // STEPGRAPH_RUNTIME_HIP_HOST_COMMAND_H_
