// SPDX-License-Identifier: Apache-2.0
//
// The seam between the runtime, which knows graphs, and the step programs,
// which know kernels. A program is asked to enqueue the work of a step for
// given capacities; whether its launches run at once or are captured into a
// graph is not its business.

#ifndef STEPGRAPH_RUNTIME_PROGRAM_H_
#define STEPGRAPH_RUNTIME_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/batch_layout.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/verify_layout.h"
#include "runtime/hip/launch.h"
#include "schemas/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a graph is recorded for. The whole key of a shape: no name, no address.
typedef struct sg_step_capacity_t {
  sg_phase_t phase;
  int32_t max_tokens;
  int32_t max_sequences;
} sg_step_capacity_t;

typedef enum sg_buffer_role_t {
  // Read, one row a token.
  SG_BUFFER_INPUT = 0,
  // Written, one row a token.
  SG_BUFFER_OUTPUT,
  // Read, the same for every step.
  SG_BUFFER_WEIGHT,
  // Read and written, one record a slot.
  SG_BUFFER_POOL,
} sg_buffer_role_t;

enum { SG_BUFFER_NAME_BYTES = 48 };

// A buffer that must be bound before a step can be recorded.
typedef struct sg_buffer_spec_t {
  // e.g. "layers.3.q".
  char name[SG_BUFFER_NAME_BYTES];
  sg_buffer_role_t role;
  // Element type of floating-point buffers.
  sg_dtype_t dtype;
  int32_t layer;
  // Distance between rows (INPUT, OUTPUT) or slots (POOL); 0 for weights.
  size_t stride_bytes;
  // How much of a row or slot is data.
  size_t row_bytes;
  // Size of the whole buffer.
  size_t bytes;
} sg_buffer_spec_t;

// A named part of the arena, for dumps.
typedef struct sg_arena_region_t {
  const char* name;
  size_t offset;
  size_t bytes;
} sg_arena_region_t;

// What becomes of the launches of a recording.
typedef enum sg_record_mode_t {
  // They run as they are enqueued.
  SG_RECORD_EAGER = 0,
  // They are captured into a graph.
  SG_RECORD_CAPTURE,
  // They run with an empty batch, so that what a first launch loads is loaded
  // before a capture meets it.
  SG_RECORD_WARM_UP,
} sg_record_mode_t;

// Everything that a recording may depend on. All addresses are the device's.
typedef struct sg_recording_t {
  hipStream_t stream;
  const sg_launch_trace_t* trace;
  const sg_target_t* target;
  sg_record_mode_t mode;
  // Which piece of the step, below the program's piece_count.
  int32_t piece;
  sg_step_capacity_t capacity;
  // One address a buffer spec, in their order.
  void* const* buffers;
  // arena_bytes of scratch, shared by all recordings of one executor.
  void* arena;
  // The ring of batches and the device's place in it.
  const void* ring;
  const sg_batch_entry_layout_t* ring_layout;
  int32_t ring_depth;
  sg_step_cursor_t* cursor;
  sg_step_mailbox_t* mailbox;
  // Slots of the bound pools.
  int32_t slot_count;
  // For record_snapshot and record_compare: what stands in for the outputs and
  // pools of |buffers| in the step that is compared with (verify_layout.h);
  // the other entries are NULL.
  void* const* shadow_buffers;
  int32_t shadow_slot_count;
  sg_mismatch_record_t* mismatches;
} sg_recording_t;

typedef struct sg_program_t {
  const char* name;
  void* self;
  // Hash of everything that recordings depend on besides addresses and
  // capacities.
  uint64_t fingerprint;
  const sg_buffer_spec_t* buffers;
  size_t buffer_count;
  // Zeroed by the executor before the first step.
  size_t arena_bytes;
  const sg_arena_region_t* arena_regions;
  size_t arena_region_count;
  // The largest step that the arena and the buffers hold.
  sg_shape_limits_t limits;
  // Rows of chunk_indices that a ring entry has room for; 0 unless the host
  // builds the tables.
  int32_t ring_chunk_capacity;
  int32_t slot_count;
  int32_t null_slot;

  // Pieces that a step is cut into, 1 for a step in one graph. The caller runs
  // what it likes between two pieces.
  int32_t piece_count;
  // Whether recordings hold launches that do not go through sg_launch_enqueue.
  // Such steps cannot be verified, and their graphs need not be chains.
  bool has_foreign_work;

  // Enqueues a piece of a step; piece 0 starts with batch ingest and chunk
  // metadata.
  sg_status_t (*record_piece)(void* self, const sg_recording_t* recording);
  // Enqueues what ends a step, behind its last piece.
  sg_status_t (*record_done)(void* self, const sg_recording_t* recording);
  // Enqueues the copy of the next step's slots to the shadow pools.
  sg_status_t (*record_snapshot)(void* self, const sg_recording_t* recording);
  // Enqueues the comparison of outputs and slots with their shadows.
  sg_status_t (*record_compare)(void* self, const sg_recording_t* recording);
  // Builds host tables of a batch; not called when ring_chunk_capacity is 0.
  int32_t (*build_tables)(void* self, const int32_t* query_lens,
                          const int32_t* computed_lens, int32_t sequence_count,
                          int32_t* out_chunk_indices,
                          int64_t* out_chunk_offsets);
} sg_program_t;

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_PROGRAM_H_
