// SPDX-License-Identifier: Apache-2.0

// For sysconf's number of CPUs.
#define _DEFAULT_SOURCE

#include "runtime/hip_host/scheduler.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/hip_host/graph.h"
#include "runtime/hip_host/hip_host.h"
#include "runtime/hip_host/runtime.h"
#include "runtime/hip_host/share.h"
#include "runtime/hip_host/stream.h"

enum {
  MAX_WORKERS = 256,
  // How long a worker without work looks for some before it sleeps: longer
  // than the pause between two launches of a busy program.
  IDLE_SPINS = 2000,
};

static int worker_count;
static pthread_t threads[MAX_WORKERS];
static bool is_running;
static bool is_stopping;
static _Thread_local bool is_worker;

// Workers that sleep are woken by |work|.
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static _Atomic int sleeping;
static _Atomic int spinning;
// Moves on when there may be a stream to execute.
static _Atomic uint64_t work_epoch;

bool sg_host_scheduler_is_worker(void) { return is_worker; }

void sg_host_scheduler_notify(void) {
  work_epoch++;
  if (sleeping > 0 && spinning == 0) pthread_cond_signal(&work);
}

void sg_host_scheduler_wake(uint32_t wanted) {
  uint32_t awake = (uint32_t)spinning;
  if (sleeping == 0 || wanted <= awake) return;
  // The lock keeps a worker that is about to sleep from missing the signal.
  sg_host_lock();
  uint32_t count = wanted - awake;
  if (count > (uint32_t)sleeping) count = (uint32_t)sleeping;
  for (uint32_t i = 0; i < count; ++i) pthread_cond_signal(&work);
  sg_host_unlock();
}

static sg_host_stream_t* find_ready(void) {
  sg_host_stream_t* first = sg_host_runtime.active;
  sg_host_stream_t* stream = first;
  if (stream == NULL) return NULL;
  do {
    if (sg_host_stream_is_ready(stream)) return stream;
    stream = stream->next_active;
  } while (stream != first);
  return NULL;
}

// Takes a stream whose head this worker is to execute. The search of the next
// one starts behind it, so that busy streams take turns.
static sg_host_stream_t* claim(void) {
  sg_host_stream_t* stream = find_ready();
  if (stream == NULL) return NULL;
  stream->is_running = true;
  sg_host_runtime.active = stream->next_active;
  if (find_ready() != NULL) sg_host_scheduler_notify();
  return stream;
}

static void execute_graph(const sg_host_exec_t* exec,
                          sg_host_scratch_t* scratch) {
  for (size_t i = 0; i < exec->operation_count; ++i) {
    sg_host_operation_run(&exec->operations[i], scratch);
  }
}

static void execute(const sg_host_command_t* command,
                    sg_host_scratch_t* scratch) {
  if (command->kind == SG_HOST_COMMAND_OPERATION) {
    sg_host_operation_run(&command->operation, scratch);
  } else if (command->kind == SG_HOST_COMMAND_GRAPH) {
    execute_graph(command->graph.exec, scratch);
  }
}

// Executes the head of |stream|. Needs the lock and gives it up meanwhile.
static void run_head(sg_host_stream_t* stream, sg_host_scratch_t* scratch) {
  const sg_host_command_t* command = stream->first;
  bool has_work = command->kind == SG_HOST_COMMAND_OPERATION ||
                  command->kind == SG_HOST_COMMAND_GRAPH;
  // A broken device runs nothing, but its queues still empty.
  if (has_work && stream->device->fault == hipSuccess) {
    sg_host_unlock();
    execute(command, scratch);
    sg_host_lock();
  }
  sg_host_stream_finish(stream);
}

// Runs blocks of another worker's kernel, which may take long: meanwhile this
// worker is not one that looks for work. Either a new command is seen here, or
// whoever enqueued it sees that nobody is looking and wakes another.
static bool help(uint64_t epoch, sg_host_scratch_t* scratch) {
  spinning--;
  bool helped = work_epoch == epoch && sg_host_share_help(scratch);
  spinning++;
  return helped;
}

// Waits for work: spins, helping with blocks of others, and then sleeps. Needs
// the lock and gives it up meanwhile.
static void idle(sg_host_scratch_t* scratch) {
  uint64_t epoch = work_epoch;
  spinning++;
  sg_host_unlock();
  for (int i = 0; i < IDLE_SPINS && work_epoch == epoch; ++i) {
    if (sg_host_share_is_open() && help(epoch, scratch)) i = 0;
    sg_host_pause();
  }
  sg_host_lock();
  spinning--;
  sleeping++;
  // Counted as sleeping first: whoever shares blocks from now on sees a sleeper
  // and wakes it, whoever did before is seen here.
  if (work_epoch == epoch && !sg_host_share_is_open() && !is_stopping) {
    pthread_cond_wait(&work, &sg_host_runtime.lock);
  }
  sleeping--;
}

static void* worker_main(void* argument) {
  sg_host_scratch_t* scratch = argument;
  is_worker = true;
  sg_host_lock();
  while (!is_stopping) {
    sg_host_stream_t* stream = claim();
    if (stream != NULL) {
      run_head(stream, scratch);
    } else {
      idle(scratch);
    }
  }
  sg_host_unlock();
  return NULL;
}

// Ends the workers after the commands that they are executing. Needs the lock
// and gives it up meanwhile.
static void stop(void) {
  if (!is_running) return;
  is_stopping = true;
  work_epoch++;
  pthread_cond_broadcast(&work);
  sg_host_unlock();
  for (int i = 0; i < worker_count; ++i) pthread_join(threads[i], NULL);
  sg_host_lock();
  sg_host_share_deinitialize();
  is_running = false;
  is_stopping = false;
}

static void stop_at_exit(void) {
  // A host function that calls exit() cannot wait for its own thread.
  if (is_worker) return;
  sg_host_lock();
  stop();
  sg_host_unlock();
}

static int default_worker_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  if (count < 2) return 2;
  return count > MAX_WORKERS ? MAX_WORKERS : (int)count;
}

hipError_t sg_host_scheduler_start(void) {
  static bool is_exit_registered;
  if (is_running) return hipSuccess;
  if (!is_exit_registered) is_exit_registered = atexit(stop_at_exit) == 0;
  if (worker_count == 0) worker_count = default_worker_count();
  if (!sg_host_share_initialize(worker_count)) return hipErrorOutOfMemory;
  is_running = true;
  for (int i = 0; i < worker_count; ++i) {
    if (pthread_create(&threads[i], NULL, worker_main,
                       sg_host_share_scratch(i)) != 0) {
      worker_count = i;
      if (i > 0) break;
      is_running = false;
      sg_host_share_deinitialize();
      return hipErrorOutOfMemory;
    }
  }
  return hipSuccess;
}

hipError_t sg_hip_host_set_worker_count(int count) {
  if (count < 1 || count > MAX_WORKERS) return hipErrorInvalidValue;
  sg_host_lock();
  for (int i = 0; i < SG_HOST_MAX_DEVICES; ++i) {
    (void)sg_host_wait_device(&sg_host_runtime.devices[i]);
  }
  stop();
  worker_count = count;
  sg_host_unlock();
  return hipSuccess;
}
