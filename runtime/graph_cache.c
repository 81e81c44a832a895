// SPDX-License-Identifier: Apache-2.0

#include "runtime/graph_cache.h"

#include <string.h>

_Static_assert(sizeof(sg_graph_key_t) == 32, "keys compare as bytes");

sg_graph_key_t sg_graph_key_make(uint64_t fingerprint, uint64_t binding,
                                 sg_step_capacity_t capacity) {
  return (sg_graph_key_t){.fingerprint = fingerprint,
                          .binding = binding,
                          .phase = (int32_t)capacity.phase,
                          .max_tokens = capacity.max_tokens,
                          .max_sequences = capacity.max_sequences};
}

sg_status_t sg_graph_cache_initialize(sg_allocator_t allocator,
                                      size_t entry_capacity,
                                      int32_t piece_count,
                                      sg_graph_cache_t* out_cache) {
  *out_cache = (sg_graph_cache_t){0};
  void* entries;
  SG_RETURN_IF_ERROR(sg_allocate(allocator, "graph cache", entry_capacity,
                                 sizeof(sg_graph_entry_t), &entries));
  *out_cache = (sg_graph_cache_t){.allocator = allocator,
                                  .entries = entries,
                                  .entry_capacity = entry_capacity,
                                  .piece_count = piece_count};
  void* graphs;
  sg_status_t status =
      sg_allocate(allocator, "graphs", entry_capacity,
                  (size_t)piece_count * sizeof(sg_graph_t), &graphs);
  out_cache->graphs = graphs;
  if (!sg_status_is_ok(status)) sg_graph_cache_deinitialize(out_cache);
  return status;
}

void sg_graph_cache_drop(const sg_graph_cache_t* cache, sg_graph_entry_t* entry,
                         sg_graph_state_t state) {
  for (int32_t piece = 0; piece < cache->piece_count; ++piece) {
    sg_graph_deinitialize(&entry->pieces[piece]);
  }
  entry->state = state;
  entry->statistics.captured = false;
}

void sg_graph_cache_clear(sg_graph_cache_t* cache) {
  for (size_t i = 0; i < cache->entry_count; ++i) {
    sg_graph_cache_drop(cache, &cache->entries[i], SG_GRAPH_ABSENT);
  }
  cache->entry_count = 0;
}

void sg_graph_cache_deinitialize(sg_graph_cache_t* cache) {
  if (cache == NULL) return;
  sg_graph_cache_clear(cache);
  sg_release(cache->allocator, cache->graphs);
  sg_release(cache->allocator, cache->entries);
  *cache = (sg_graph_cache_t){0};
}

sg_graph_entry_t* sg_graph_cache_find(const sg_graph_cache_t* cache,
                                      const sg_graph_key_t* key) {
  for (size_t i = 0; i < cache->entry_count; ++i) {
    if (memcmp(&cache->entries[i].key, key, sizeof(*key)) == 0) {
      return &cache->entries[i];
    }
  }
  return NULL;
}

sg_status_t sg_graph_cache_add(sg_graph_cache_t* cache,
                               const sg_graph_key_t* key) {
  if (sg_graph_cache_find(cache, key) != NULL) {
    return sg_status_make(
        SG_STATUS_FAILED_PRECONDITION,
        "graph cache: a %s shape of %d tokens and %d sequences is there",
        sg_phase_name((sg_phase_t)key->phase), key->max_tokens,
        key->max_sequences);
  }
  if (cache->entry_count == cache->entry_capacity) {
    return sg_status_make(SG_STATUS_OUT_OF_RANGE,
                          "graph cache: %zu entries, no room for more",
                          cache->entry_count);
  }
  size_t index = cache->entry_count++;
  cache->entries[index] = (sg_graph_entry_t){
      .key = *key,
      .pieces = cache->graphs + index * (size_t)cache->piece_count};
  return sg_status_ok();
}

uint64_t sg_graph_cache_bytes(const sg_graph_cache_t* cache) {
  uint64_t total = 0;
  for (size_t i = 0; i < cache->entry_count; ++i) {
    const sg_graph_entry_t* entry = &cache->entries[i];
    if (entry->state == SG_GRAPH_READY && entry->statistics.graph_bytes > 0) {
      total += (uint64_t)entry->statistics.graph_bytes;
    }
  }
  return total;
}
