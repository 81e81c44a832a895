// SPDX-License-Identifier: Apache-2.0
//
// What kda_chunk_prepare leaves for kda_chunk_scan on GPUs: a panel for every
// block of 16 tokens and value head, in the very order in which the scan's
// matrix operands want it. For host and device code.
//
// With A, Q of KDA_SPEC's section 2 (arXiv 2510.26692) within the block, G the
// running sum of base-2 log decays from the block's first token, L its last
// row, E(x) = 2^x and k^, q^ the normalised rows (q^ scaled as well), a panel
// is a row of packed tiles of 16 x 16 elements,
//
//   k_read   [key tiles]  (r, c)  k^[r, c] E(G[r, c])
//   q_read   [key tiles]  (r, c)  q^[r, c] E(G[r, c])
//   k_write  [key tiles]  (c, r)  k^[r, c] E(G[L, c] - G[r, c])
//   solve    [1]          (r, s)  ((I + A)^-1)[r, s] beta_s
//   output   [1]          (r, s)  Q[r, s]
//
// and then decay, fp32 [16 key tiles]: E(G[L, c]). Rows beyond the block's
// tokens and channels beyond key_dim are zero, decays of the latter are one.
// Channels are padded to the class of key_dim.
//
// Elements are fp16 or fp32: fp16 for activations in bf16 whose q and k are
// normalised, and for scales between its smallest numbers and 1. All elements
// are then at most 1 in magnitude, those of solve 2. All but those of solve are
// multiplied by SG_KDA_PANEL_FACTOR, so that decays down to 2^-20 or so leave
// them normal numbers.

#ifndef STEPGRAPH_KERNELS_KDA_CHUNK_PANEL_H_
#define STEPGRAPH_KERNELS_KDA_CHUNK_PANEL_H_

#include <stdint.h>

enum {
  SG_KDA_TILE = 16,
  SG_KDA_TILE_ELEMENTS = SG_KDA_TILE * SG_KDA_TILE,
};

// Key tiles of a class of key_dim: 4, 8 or 16.
#define SG_KDA_KEY_TILES(key_class) (4 << (key_class))

#define SG_KDA_PANEL_FACTOR(element_bytes) \
  ((element_bytes) == 2 ? 0x1p14f : 1.0f)
// Least scale, of at most 1, with elements of fp16.
#define SG_KDA_PANEL_SCALE_MIN 0x1p-12f

#define SG_KDA_PANEL_TILES(key_tiles) (3 * (key_tiles) + 2)
#define SG_KDA_PANEL_DECAY_OFFSET(key_tiles, element_bytes) \
  (SG_KDA_PANEL_TILES(key_tiles) * SG_KDA_TILE_ELEMENTS * (element_bytes))
#define SG_KDA_PANEL_BYTES(key_tiles, element_bytes)     \
  (SG_KDA_PANEL_DECAY_OFFSET(key_tiles, element_bytes) + \
   (key_tiles)*SG_KDA_TILE * (int32_t)sizeof(float))

// Shared memory of a block of prepare, which has a thread a channel in
// |waves| waves: operands of the scores or the panel, whichever is larger;
// sums of each wave; scores; and small things.
#define SG_KDA_PREPARE_REGION_BYTES(key_tiles, element_bytes)            \
  (SG_KDA_PANEL_BYTES(key_tiles, element_bytes) > 3 * 1024 * (key_tiles) \
       ? SG_KDA_PANEL_BYTES(key_tiles, element_bytes)                    \
       : 3 * 1024 * (key_tiles))
#define SG_KDA_PREPARE_SHARED_BYTES(key_tiles, element_bytes, waves) \
  (SG_KDA_PREPARE_REGION_BYTES(key_tiles, element_bytes) +           \
   (waves) * (2048 + 128) + 2048 + 256)

#endif  // STEPGRAPH_KERNELS_KDA_CHUNK_PANEL_H_
