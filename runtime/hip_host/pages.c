// SPDX-License-Identifier: Apache-2.0

// For MAP_ANONYMOUS and MAP_NORESERVE.
#define _DEFAULT_SOURCE

#include "runtime/hip_host/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

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
  return address;
}

void sg_host_pages_unmap(void* address, size_t bytes) {
  size_t guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
  munmap(address, sg_host_pages_round(bytes) + guard_bytes);
}
