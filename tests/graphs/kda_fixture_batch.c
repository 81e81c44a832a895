// SPDX-License-Identifier: Apache-2.0
//
// Random batches that a server could form.

#include "tests/graphs/kda_fixture.h"

static int32_t random_below(kda_fixture_t* f, int32_t limit) {
  return (int32_t)(kda_fixture_random(f) % (uint64_t)limit);
}

static int32_t random_slot(kda_fixture_t* f, const kda_batch_t* b, int32_t n) {
  int32_t kind = random_below(f, 12);
  if (kind == 0) return -1;
  if (kind == 1) return KDA_NULL_SLOT;
  for (;;) {
    int32_t slot = random_below(f, KDA_SLOTS);
    bool taken = slot == KDA_NULL_SLOT;
    for (int32_t i = 0; i < n; ++i) taken = taken || b->slots[i] == slot;
    if (!taken) return slot;
  }
}

// A sequence to decode must have a past; others may start anew.
static int32_t random_computed(kda_fixture_t* f, int32_t slot, bool decode) {
  if (slot < 0 || slot == KDA_NULL_SLOT) return decode ? 1 : 0;
  if (!decode && random_below(f, 3) == 0) return 0;
  return f->computed[slot];
}

void kda_fixture_random_batch(kda_fixture_t* f, kda_batch_t* b) {
  static const int32_t lengths[] = {0,  1,  2,  15, 16, 17,
                                    31, 40, 63, 64, 65, 90};
  const int32_t length_count = sizeof(lengths) / sizeof(lengths[0]);
  int32_t wanted_decodes = random_below(f, KDA_MAX_SEQUENCES + 1);
  int32_t others = random_below(f, KDA_MAX_SEQUENCES - wanted_decodes + 1);
  int32_t style = random_below(f, 4);
  if (style == 0) others = 0;
  if (style == 1) wanted_decodes = 0;
  int32_t room = KDA_MAX_TOKENS - wanted_decodes;
  int32_t n = 0;
  for (int32_t i = 0; i < wanted_decodes + others; ++i) {
    bool decode = i < wanted_decodes;
    int32_t slot = random_slot(f, b, n);
    int32_t computed = random_computed(f, slot, decode);
    if (decode && computed == 0) continue;
    int32_t length = decode ? 1 : lengths[random_below(f, length_count)];
    if (!decode && length > room) length = room;
    if (!decode) room -= length;
    b->query_lens[n] = length;
    b->computed_lens[n] = computed;
    b->slots[n] = slot;
    if (slot >= 0 && length > 0) f->computed[slot] = computed + length;
    ++n;
  }
  b->batch = (sg_batch_t){n, b->query_lens, b->computed_lens, b->slots};
}
