// SPDX-License-Identifier: Apache-2.0
//
// One batch for the KDA kernels and everything that a test may vary about it.

#ifndef STEPGRAPH_TESTS_KERNELS_KDA_CASE_H_
#define STEPGRAPH_TESTS_KERNELS_KDA_CASE_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/common/host_isa.h"
#include "runtime/base/kda_geometry.h"

enum { KDA_CASE_SEQUENCES = 12 };

typedef enum kda_inputs_kind_t {
  // Normal numbers throughout; log decays of a few units.
  KDA_INPUTS_SOFT = 0,
  // Keys that nearly repeat, beta near 1, gates from nothing to saturation,
  // with softplus a tenth of them hard resets of -1000: what the reference
  // calls hard.
  KDA_INPUTS_HARD,
  // Log decays of -1e-4: memory over thousands of tokens.
  KDA_INPUTS_WEAK_GATES,
  // Every log decay -1000.
  KDA_INPUTS_RESETS,
  // One key for all tokens, beta 1, hardly any decay.
  KDA_INPUTS_IDENTICAL_KEYS,
  // Keys that differ by 1e-3, beta 0.9997, hardly any decay.
  KDA_INPUTS_NEAR_KEYS,
  // q and k are zero at every third token.
  KDA_INPUTS_ZERO_KEYS,
  // q and k so small that the epsilon of the L2 norm weighs as much as they do.
  KDA_INPUTS_TINY_KEYS,
  // A_log of 100.
  KDA_INPUTS_HUGE_A_LOG,
  // Every fifth raw gate is minus infinity, which means no decay.
  KDA_INPUTS_MINUS_INFINITY,
} kda_inputs_kind_t;

typedef struct kda_case_t {
  sg_kda_geometry_t geometry;
  int32_t sequence_count;
  int32_t lens[KDA_CASE_SEQUENCES];
  int32_t computed[KDA_CASE_SEQUENCES];
  int32_t slots[KDA_CASE_SEQUENCES];
  int32_t slot_count;
  int32_t null_slot;
  // Capacity beyond what the batch needs.
  int32_t spare_tokens;
  int32_t spare_sequences;
  // Elements between rows, and between slots, beyond the dense ones.
  int32_t row_padding;
  int32_t slot_padding;
  bool has_bias;
  bool zero_tail;
  // With an error all tables but the counts are out of range.
  int32_t error_code;
  // Whether fresh sequences of one token count as decodes too.
  bool fresh_decodes;
  kda_inputs_kind_t inputs;
  uint64_t seed;
  sg_host_isa_t isa;
  // Seed of the order that blocks run in; 0 for ascending.
  uint64_t block_order;
} kda_case_t;

// A case of |count| fresh or resumed sequences of the given lengths: sequence i
// has slot i + 1 of |count| + 2, and is fresh where i is odd. 2 heads, K = V =
// 64, chunks of 64, softplus, sigmoid, fp32, the best instruction set.
kda_case_t kda_case_of(int32_t count, const int32_t* lens);

// The prefix of decodes and the number of tokens.
int32_t kda_case_decodes(const kda_case_t* test);
int32_t kda_case_tokens(const kda_case_t* test);

// Whether the sequence has tokens and a slot.
bool kda_case_is_live(const kda_case_t* test, int32_t sequence);

#endif  // STEPGRAPH_TESTS_KERNELS_KDA_CASE_H_
