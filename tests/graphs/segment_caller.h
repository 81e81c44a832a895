// SPDX-License-Identifier: Apache-2.0
//
// A step of a caller's own around KDA layers, any mistake in whose order shows:
// the q of each layer is NaN until copies of the caller's bring it, on two
// streams, and what is compared is a copy of o that was taken behind the layer.
// Between the two layers a toy layer runs on the step's tables.

#ifndef STEPGRAPH_TESTS_GRAPHS_SEGMENT_CALLER_H_
#define STEPGRAPH_TESTS_GRAPHS_SEGMENT_CALLER_H_

#include "tests/graphs/kda_fixture.h"

enum {
  CALLER_PIECES = 3,
  CALLER_SEEN = 128,
  // Nodes around a layer, fill and copies, and those of the toy part.
  CALLER_LAYER_NODES = 4,
  CALLER_TOY_NODES = 2,
};

// What the caller does wrong at the end of a step, in the mode |faulty_mode|.
typedef enum caller_fault_t {
  CALLER_NO_FAULT = 0,
  // Gives up; with the second stream still in the capture where there is one.
  CALLER_FAILS,
  // Forgets to join the second stream.
  CALLER_LEAVES_A_FORK,
  CALLER_ALLOCATES,
  CALLER_SYNCHRONISES,
  CALLER_QUERIES,
  // Made by some runtimes and refused by others.
  CALLER_ADDS_A_HOST_NODE,
} caller_fault_t;

// What one call was told.
typedef struct caller_seen_t {
  sg_record_mode_t mode;
  int32_t piece;
  sg_step_capacity_t capacity;
} caller_seen_t;

typedef struct segment_caller_t {
  kda_fixture_t* fixture;
  caller_fault_t fault;
  sg_record_mode_t faulty_mode;
  // Where q comes from and where o goes to.
  void* source[KDA_MAX_LAYERS];
  void* kept[KDA_MAX_LAYERS];
  hipStream_t side;
  hipEvent_t fork, join;
  // The toy layer's memory, and what its model says.
  uint64_t* x;
  uint64_t* state;
  uint64_t* o;
  // How often the toy part ran on the device.
  uint64_t* runs;
  uint64_t host_x[KDA_MAX_TOKENS];
  uint64_t model_state[KDA_SLOTS];
  uint64_t model_o[KDA_MAX_TOKENS];
  // The calls so far.
  caller_seen_t seen[CALLER_SEEN];
  int seen_count;
  // What the runtime said of the graph at the end of each capture, by piece.
  size_t node_count[CALLER_PIECES];
  size_t edge_count[CALLER_PIECES];
  // How layers -1 and 2, which are not there, were refused.
  sg_status_t bad_layers[2];
} segment_caller_t;

// Sets up |fixture| with the caller's step in |piece_count| pieces, 1 or 3,
// and captures if |captured|.
void segment_caller_set_up(segment_caller_t* caller, kda_fixture_t* fixture,
                           int32_t piece_count, bool always_eager);
void segment_caller_tear_down(segment_caller_t* caller);

// Runs |batch| with new inputs on |caller| and on |plain|, whose step has no
// caller and is held against the model; the bits are the same. In pieces with
// work of the caller's between if |by_piece|.
void segment_caller_step(segment_caller_t* caller, kda_fixture_t* plain,
                         bool by_piece, sg_step_report_t* out_report);

#endif  // STEPGRAPH_TESTS_GRAPHS_SEGMENT_CALLER_H_
