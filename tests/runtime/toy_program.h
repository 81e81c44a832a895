// SPDX-License-Identifier: Apache-2.0
//
// A step program around the toy layer, and a model of it in plain C that tests
// compare with.

#ifndef STEPGRAPH_TESTS_RUNTIME_TOY_PROGRAM_H_
#define STEPGRAPH_TESTS_RUNTIME_TOY_PROGRAM_H_

#include "runtime/executor.h"
#include "runtime/program.h"
#include "tests/runtime/toy_kernel.h"

enum { TOY_CHUNK_SIZE = 16 };

// The program's buffers.
enum { TOY_X = 0, TOY_STATE, TOY_O, TOY_BUFFER_COUNT };

typedef struct toy_program_t {
  sg_program_t program;
  sg_buffer_spec_t specs[TOY_BUFFER_COUNT];
  sg_arena_region_t regions[7];
  // A record_step call with this number (from 1) fails; 0 for none.
  int32_t fail_record;
  int32_t record_count;
  // How often a step applies the layer; 1 at first. A program with several
  // pieces has one layer a piece, and only as many layers as pieces.
  int32_t layers;
  // A launch that does not go through sg_launch_enqueue, and what it writes to.
  uint64_t* foreign_counter;
  // What the last recording was told.
  sg_record_mode_t last_mode;
} toy_program_t;

// Cuts the program into |piece_count| pieces, one layer each; with foreign work
// where |foreign_counter|, in device memory, is not NULL.
void toy_program_cut(toy_program_t* toy, int32_t piece_count,
                     uint64_t* foreign_counter);

void toy_program_initialize(toy_program_t* toy, sg_shape_limits_t limits,
                            int32_t slot_count, int32_t null_slot,
                            sg_table_source_t tables);

// What a batch does to |state| [slots] and |o|, by the definition of the layer.
void toy_model_step(const sg_batch_t* batch, int32_t null_slot,
                    const uint64_t* x, uint64_t* state, uint64_t* o);

#endif  // STEPGRAPH_TESTS_RUNTIME_TOY_PROGRAM_H_
