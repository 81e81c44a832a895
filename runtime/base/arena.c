// SPDX-License-Identifier: Apache-2.0

#include "runtime/base/arena.h"

#include "runtime/base/checked.h"

sg_status_t sg_arena_reserve(sg_arena_layout_t* layout, const char* what,
                             size_t count, size_t element_bytes,
                             size_t* out_offset) {
  *out_offset = 0;
  size_t bytes, end, aligned_end;
  if (!sg_checked_mul(count, element_bytes, &bytes) ||
      !sg_checked_add(layout->total_bytes, bytes, &end) ||
      !sg_checked_align(end, SG_ARENA_ALIGNMENT_BYTES, &aligned_end)) {
    return sg_status_make(
        SG_STATUS_OUT_OF_MEMORY,
        "%s: %zu elements of %zu bytes after %zu bytes overflow", what, count,
        element_bytes, layout->total_bytes);
  }
  *out_offset = layout->total_bytes;
  layout->total_bytes = aligned_end;
  return sg_status_ok();
}
