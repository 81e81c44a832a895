// SPDX-License-Identifier: Apache-2.0
//
// A context: the device, the memory and the reporting that executors share.
//
// Threads: a context may be used by any number of threads. It is counted:
// created with one reference, and each executor holds one.

#ifndef STEPGRAPH_RUNTIME_CONTEXT_H_
#define STEPGRAPH_RUNTIME_CONTEXT_H_

#include <stdbool.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"
#include "runtime/hip/target.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_log_level_t {
  // A graph was captured or evicted.
  SG_LOG_INFO = 0,
  // Something did not go as configured, and the step is right all the same: a
  // capture failed, a shape runs eagerly.
  SG_LOG_WARNING,
  // A step failed, or the device is lost.
  SG_LOG_ERROR,
} sg_log_level_t;

// Called with one line without a newline, from the thread that met the event:
// that of a run call, or the capture thread. Must not call the executor.
typedef void (*sg_log_function_t)(void* self, sg_log_level_t level,
                                  const char* message);

typedef struct sg_context_options_t {
  sg_allocator_t allocator;
  // HIP device. Entry points set it and restore the thread's own at their end.
  int device;
  // What launches are configured for; NULL for the device's own. With another
  // one executors record graphs to look at and run nothing. The host flavour
  // takes every target, a GPU's those of its vendor.
  const sg_target_t* target;
  // May be NULL.
  sg_log_function_t log;
  void* log_self;
} sg_context_options_t;

// The system allocator, device 0, its own target, no log.
void sg_context_options_initialize(sg_context_options_t* out_options);

typedef struct sg_context_t sg_context_t;

// SG_STATUS_UNSUPPORTED when there is no device, no such device, no kernel for
// its architecture, or a target of another vendor.
SG_MUST_USE sg_status_t sg_context_create(const sg_context_options_t* options,
                                          sg_context_t** out_context);

void sg_context_retain(sg_context_t* context);

// Accepts NULL.
void sg_context_release(sg_context_t* context);

const sg_context_options_t* sg_context_options(const sg_context_t* context);

// What launches are configured for, and whether that is the device's own.
const sg_target_t* sg_context_target(const sg_context_t* context);
bool sg_context_runs_here(const sg_context_t* context);

// Formats a line for the log; nothing where there is none.
void sg_context_log(const sg_context_t* context, sg_log_level_t level,
                    const char* format, ...) SG_PRINTF_LIKE(3, 4);

// Sets a device for the length of a call.
typedef struct sg_device_scope_t {
  int previous;
  bool changed;
} sg_device_scope_t;

SG_MUST_USE sg_status_t sg_device_scope_enter(int device,
                                              sg_device_scope_t* out_scope);

// Restores the thread's own. Accepts a scope that was not entered.
void sg_device_scope_leave(const sg_device_scope_t* scope);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_CONTEXT_H_
