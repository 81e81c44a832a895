// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/handle.h"

#include <stdbool.h>
#include <stdlib.h>

// A handle's bits: generation from 32 up, index + 1 below. Generations start at
// 1, so that no handle is a small number.
enum { GENERATION_SHIFT = 32 };

_Static_assert(sizeof(void*) == 8, "a handle needs 64 bits");

typedef struct slot_t {
  // NULL while the slot is free.
  void* object;
  sg_host_type_t type;
  uint32_t generation;
  // Next free slot + 1 while the slot is free.
  uint32_t next_free;
} slot_t;

static slot_t* slots;
static uint32_t slot_count;
// First free slot + 1, or 0.
static uint32_t first_free;

static bool grow(void) {
  uint32_t count = slot_count == 0 ? 256 : slot_count * 2;
  slot_t* grown = realloc(slots, count * sizeof(slot_t));
  if (grown == NULL) return false;
  for (uint32_t i = count; i > slot_count; --i) {
    grown[i - 1] = (slot_t){.next_free = first_free};
    first_free = i;
  }
  slots = grown;
  slot_count = count;
  return true;
}

static slot_t* find_slot(uintptr_t value) {
  uint32_t index = (uint32_t)value;
  if (index == 0 || index > slot_count) return NULL;
  slot_t* slot = &slots[index - 1];
  bool same = slot->object != NULL &&
              slot->generation == (uint32_t)(value >> GENERATION_SHIFT);
  return same ? slot : NULL;
}

void* sg_host_handle_create(sg_host_type_t type, void* object) {
  if (first_free == 0 && !grow()) return NULL;
  uint32_t index = first_free;
  slot_t* slot = &slots[index - 1];
  first_free = slot->next_free;
  slot->object = object;
  slot->type = type;
  if (++slot->generation == 0) slot->generation = 1;
  uintptr_t value = (uintptr_t)slot->generation << GENERATION_SHIFT | index;
  return (void*)value;
}

void* sg_host_handle_find(sg_host_type_t type, const void* handle) {
  slot_t* slot = find_slot((uintptr_t)handle);
  return slot != NULL && slot->type == type ? slot->object : NULL;
}

void sg_host_handle_destroy(const void* handle) {
  slot_t* slot = find_slot((uintptr_t)handle);
  if (slot == NULL) return;
  slot->object = NULL;
  slot->next_free = first_free;
  first_free = (uint32_t)(uintptr_t)handle;
}
