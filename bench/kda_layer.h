// SPDX-License-Identifier: Apache-2.0
//
// One KDA layer of a benchmark: the op of one batch, its tensors in device
// memory filled with random numbers, and a stream to run it on.
//
// K = V = 128, bf16, L2 norm, sigmoid betas, a lower bound of -5 on the gates
// (Kimi-K3's); every sequence continues from a state.

#ifndef STEPGRAPH_BENCH_KDA_LAYER_H_
#define STEPGRAPH_BENCH_KDA_LAYER_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/common/kda_args.h"
#include "runtime/base/status.h"
#include "runtime/hip/launch.h"

enum { BENCH_DIM = 128 };

typedef struct bench_case_t {
  const char* name;
  int32_t heads;
  int32_t sequences;
  // Of each sequence. With 1 the sequences are decodes.
  int32_t tokens;
  // Of sequences of different lengths, instead of |tokens|; else NULL.
  const int32_t* lens;
  // What the capacities that the op is enqueued for have beyond the batch.
  int32_t spare_tokens;
  int32_t spare_sequences;
} bench_case_t;

// For tables of cases with sequences of the same length.
#define BENCH_CASE(name_, heads_, sequences_, tokens_)       \
  {                                                          \
    .name = (name_), .heads = (heads_), .tokens = (tokens_), \
    .sequences = (sequences_)                                \
  }

int32_t bench_case_tokens_of(const bench_case_t* shape, int32_t sequence);
// Of all sequences before |sequence|.
int32_t bench_case_tokens_before(const bench_case_t* shape, int32_t sequence);
int32_t bench_case_tokens(const bench_case_t* shape);
bool bench_case_is_decode(const bench_case_t* shape);

// What stands in device memory. Tensors come first, in the order that they are
// filled with seeds in.
typedef enum bench_buffer_t {
  BENCH_Q = 0,
  BENCH_K,
  BENCH_V,
  BENCH_RAW_G,
  BENCH_RAW_BETA,
  BENCH_A_LOG,
  BENCH_DT_BIAS,
  BENCH_STATE,
  BENCH_O,
  BENCH_COUNTS,
  BENCH_QUERY_START_LOC,
  BENCH_COMPUTED_LENS,
  BENCH_SLOTS,
  BENCH_CHUNK_INDICES,
  BENCH_CHUNK_OFFSETS,
  BENCH_WORKSPACE,
  BENCH_BUFFER_COUNT,
} bench_buffer_t;

typedef struct kda_layer_t {
  bench_case_t shape;
  sg_kda_geometry_t geometry;
  sg_enqueue_t where;
  sg_kda_args_t args;
  void* buffers[BENCH_BUFFER_COUNT];
  size_t bytes[BENCH_BUFFER_COUNT];
} kda_layer_t;

// To be deinitialized even after a failure.
SG_MUST_USE sg_status_t kda_layer_initialize(const bench_case_t* shape,
                                             kda_layer_t* out_layer);
void kda_layer_deinitialize(kda_layer_t* layer);

// Puts the op on the layer's stream.
SG_MUST_USE sg_status_t kda_layer_enqueue(const kda_layer_t* layer);
// Runs the op once and waits for it.
SG_MUST_USE sg_status_t kda_layer_run(const kda_layer_t* layer);

// Runs the op once on fresh tensors and compares what the first and the last
// head of the first and the last sequence make of up to 256 tokens, and the
// states after no more than those, with the recurrence in double precision.
// SG_STATUS_MISMATCH with the errors where they are too large. To be called
// before any other run.
SG_MUST_USE sg_status_t kda_layer_check(const kda_layer_t* layer);

#endif  // STEPGRAPH_BENCH_KDA_LAYER_H_
