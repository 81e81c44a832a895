// SPDX-License-Identifier: Apache-2.0
//
// The graphs of one executor by key. A key is made of values alone, by one
// function, for storing and for looking up.

#ifndef STEPGRAPH_RUNTIME_GRAPH_CACHE_H_
#define STEPGRAPH_RUNTIME_GRAPH_CACHE_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/program.h"
#include "runtime/recorder.h"
#include "runtime/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

// Without padding, so that keys compare as bytes.
typedef struct sg_graph_key_t {
  // What the program records besides addresses and capacities.
  uint64_t fingerprint;
  // Counts how often buffers were bound: a graph remembers every address.
  uint64_t binding;
  int32_t phase;
  int32_t max_tokens;
  int32_t max_sequences;
  int32_t reserved;
} sg_graph_key_t;

sg_graph_key_t sg_graph_key_make(uint64_t fingerprint, uint64_t binding,
                                 sg_step_capacity_t capacity);

typedef enum sg_graph_state_t {
  // Not captured yet.
  SG_GRAPH_ABSENT = 0,
  SG_GRAPH_READY,
  // The rest are final until buffers are bound anew: steps run eagerly.
  SG_GRAPH_CAPTURE_FAILED,
  SG_GRAPH_LAUNCH_FAILED,
  SG_GRAPH_OVER_BUDGET,
} sg_graph_state_t;

typedef struct sg_graph_entry_t {
  sg_graph_key_t key;
  sg_graph_state_t state;
  // One a piece of the step.
  sg_graph_t* pieces;
  // Steps that wanted this graph, whether or not it was there.
  uint64_t wanted_count;
  sg_shape_statistics_t statistics;
} sg_graph_entry_t;

// Used by one thread at a time.
typedef struct sg_graph_cache_t {
  sg_allocator_t allocator;
  sg_graph_entry_t* entries;
  size_t entry_count;
  size_t entry_capacity;
  // piece_count graphs an entry.
  sg_graph_t* graphs;
  int32_t piece_count;
} sg_graph_cache_t;

SG_MUST_USE sg_status_t sg_graph_cache_initialize(sg_allocator_t allocator,
                                                  size_t entry_capacity,
                                                  int32_t piece_count,
                                                  sg_graph_cache_t* out_cache);

// Destroys all graphs. Accepts NULL and a zeroed cache.
void sg_graph_cache_deinitialize(sg_graph_cache_t* cache);

// Destroys all graphs and forgets their keys.
void sg_graph_cache_clear(sg_graph_cache_t* cache);

// The entry of |key|, or NULL.
sg_graph_entry_t* sg_graph_cache_find(const sg_graph_cache_t* cache,
                                      const sg_graph_key_t* key);

// Adds an absent entry. SG_STATUS_OUT_OF_RANGE when the cache is full,
// SG_STATUS_FAILED_PRECONDITION when the key is there already.
SG_MUST_USE sg_status_t sg_graph_cache_add(sg_graph_cache_t* cache,
                                           const sg_graph_key_t* key);

// Destroys the graphs of |entry| and leaves it in |state|.
void sg_graph_cache_drop(const sg_graph_cache_t* cache, sg_graph_entry_t* entry,
                         sg_graph_state_t state);

// Device memory that the graphs take, as measured.
uint64_t sg_graph_cache_bytes(const sg_graph_cache_t* cache);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_GRAPH_CACHE_H_
