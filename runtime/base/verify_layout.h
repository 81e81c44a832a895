// SPDX-License-Identifier: Apache-2.0
//
// How a step is verified. State is updated in place, so a step cannot simply
// run twice. A verified step therefore takes two entries of the ring: the first
// holds the batch; the second holds the same batch with its slots renumbered to
// those of a small shadow pool, and the original slots as source_slots. Then
//
//   snapshot   shadow slot <- pool slot, for every slot of the batch
//   step       the replay, on the bound buffers
//   step       eagerly at exact size, on shadow outputs and shadow pools
//   compare    outputs row by row and pools slot by slot, bit for bit
//
// all on the device, without the host waiting.

#ifndef STEPGRAPH_RUNTIME_BASE_VERIFY_LAYOUT_H_
#define STEPGRAPH_RUNTIME_BASE_VERIFY_LAYOUT_H_

#include <stdint.h>

// In mapped pinned memory, written by the device, zeroed by the host once.
typedef struct sg_mismatch_record_t {
  // Rows of outputs and slots of pools that differed, of all verified steps.
  uint64_t mismatched_rows;
  // One of the first differences: its step (0 while there is none), the index
  // of the buffer among the program's, and its row or slot.
  uint64_t step;
  int32_t buffer;
  int32_t row;
} sg_mismatch_record_t;

#endif  // STEPGRAPH_RUNTIME_BASE_VERIFY_LAYOUT_H_
