// SPDX-License-Identifier: Apache-2.0

// For MAP_ANONYMOUS and MAP_NORESERVE.
#define _DEFAULT_SOURCE

#include "runtime/hip_host/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// Mappings from here on are asked to be of large pages. 8 MiB in small ones is
// what processors remember of late; tensors come by the handful.
#define LARGE_BYTES ((size_t)32 << 20)

size_t sg_host_pages_round(size_t bytes) {
  size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  if (bytes > SIZE_MAX - 2 * page_bytes) return 0;
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

void* sg_host_pages_map(size_t bytes) {
  size_t used_bytes = sg_host_pages_round(bytes);
  size_t guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
  if (used_bytes == 0) return NULL;
  char* address =
      mmap(NULL, used_bytes + guard_bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
  if (address == MAP_FAILED) return NULL;
  if (mprotect(address + used_bytes, guard_bytes, PROT_NONE) != 0) {
    munmap(address, used_bytes + guard_bytes);
    return NULL;
  }
#if defined(MADV_HUGEPAGE)
  // Kernels go through tensors whose rows are pages apart. Where those are more
  // than the processor remembers, looking them up takes a tenth of a kernel's
  // time. Advice only: what becomes of it is the system's affair.
  if (used_bytes >= LARGE_BYTES) {
    (void)madvise(address, used_bytes, MADV_HUGEPAGE);
  }
#endif
  return address;
}

void sg_host_pages_unmap(void* address, size_t bytes) {
  size_t guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
  munmap(address, sg_host_pages_round(bytes) + guard_bytes);
}
