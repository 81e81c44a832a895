// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/memory.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/pages.h"
#include "runtime/hip_host/stream.h"

// One allocation.
typedef struct region_t {
  uintptr_t base;
  // As asked for, and in whole pages.
  size_t bytes;
  size_t mapped_bytes;
  sg_host_device_t* device;
  // Memory of the host that the device can reach; memory of the device if not.
  bool is_pinned;
  unsigned flags;
} region_t;

// In ascending order of |base|.
static region_t* regions;
static size_t region_count;
static size_t region_capacity;

// Number of regions that begin at or before |address|.
static size_t count_up_to(uintptr_t address) {
  size_t low = 0;
  size_t high = region_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (regions[middle].base <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The region that holds |pointer|, or NULL.
static region_t* find_region(const void* pointer) {
  uintptr_t address = (uintptr_t)pointer;
  size_t count = count_up_to(address);
  if (count == 0) return NULL;
  region_t* region = &regions[count - 1];
  return address - region->base < region->bytes ? region : NULL;
}

static bool insert_region(region_t region) {
  if (region_count == region_capacity) {
    size_t capacity = region_capacity == 0 ? 64 : region_capacity * 2;
    region_t* grown = realloc(regions, capacity * sizeof(region_t));
    if (grown == NULL) return false;
    regions = grown;
    region_capacity = capacity;
  }
  size_t index = count_up_to(region.base);
  memmove(&regions[index + 1], &regions[index],
          (region_count - index) * sizeof(region_t));
  regions[index] = region;
  region_count++;
  return true;
}

static hipError_t allocate(void** out_pointer, size_t bytes, bool is_pinned,
                           unsigned flags) {
  if (out_pointer == NULL) return hipErrorInvalidValue;
  *out_pointer = NULL;
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_check_unsafe());
  if (bytes == 0) return hipSuccess;
  sg_host_device_t* device = sg_host_thread_device();
  if (device->fault != hipSuccess) return device->fault;
  size_t mapped_bytes = sg_host_pages_round(bytes);
  if (mapped_bytes == 0) return hipErrorOutOfMemory;
  size_t in_use_bytes = device->memory_in_use_bytes;
  if (!is_pinned &&
      (in_use_bytes > device->memory_limit_bytes ||
       mapped_bytes > device->memory_limit_bytes - in_use_bytes)) {
    return hipErrorOutOfMemory;
  }
  void* pointer = sg_host_pages_map(bytes);
  if (pointer == NULL) return hipErrorOutOfMemory;
  region_t region = {.base = (uintptr_t)pointer,
                     .bytes = bytes,
                     .mapped_bytes = mapped_bytes,
                     .device = device,
                     .is_pinned = is_pinned,
                     .flags = flags};
  if (!insert_region(region)) {
    sg_host_pages_unmap(pointer, bytes);
    return hipErrorOutOfMemory;
  }
  if (!is_pinned) device->memory_in_use_bytes += mapped_bytes;
  *out_pointer = pointer;
  return hipSuccess;
}

hipError_t hipMalloc(void** ptr, size_t size) {
  SG_HOST_CALL(hipMalloc);
  sg_host_lock();
  hipError_t error = allocate(ptr, size, /*is_pinned=*/false, /*flags=*/0);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// All pinned memory is mapped, portable and coherent, whatever |flags| say.
hipError_t hipHostMalloc(void** ptr, size_t size, unsigned int flags) {
  SG_HOST_CALL(hipHostMalloc);
  const unsigned known = hipHostMallocPortable | hipHostMallocMapped |
                         hipHostMallocWriteCombined | hipHostMallocNumaUser |
                         hipHostMallocCoherent | hipHostMallocNonCoherent;
  if ((flags & ~known) != 0) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  hipError_t error = allocate(ptr, size, /*is_pinned=*/true, flags);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// The region that begins at |pointer|, or NULL.
static region_t* find_allocation(const void* pointer, bool is_pinned) {
  region_t* region = find_region(pointer);
  if (region == NULL || region->base != (uintptr_t)pointer) return NULL;
  return region->is_pinned == is_pinned ? region : NULL;
}

static hipError_t release(void* pointer, bool is_pinned) {
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_check_unsafe());
  if (pointer == NULL) return hipSuccess;
  region_t* region = find_allocation(pointer, is_pinned);
  if (region == NULL) return hipErrorInvalidValue;
  // Work in flight may use the memory. While this waits the table may change.
  SG_HOST_RETURN_IF_ERROR(sg_host_wait_device(region->device));
  region = find_allocation(pointer, is_pinned);
  if (region == NULL) return hipErrorInvalidValue;
  if (!is_pinned) region->device->memory_in_use_bytes -= region->mapped_bytes;
  sg_host_pages_unmap(pointer, region->bytes);
  size_t index = (size_t)(region - regions);
  region_count--;
  memmove(region, region + 1, (region_count - index) * sizeof(region_t));
  return hipSuccess;
}

hipError_t hipFree(void* ptr) {
  SG_HOST_CALL(hipFree);
  sg_host_lock();
  hipError_t error = release(ptr, /*is_pinned=*/false);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipHostFree(void* ptr) {
  SG_HOST_CALL(hipHostFree);
  sg_host_lock();
  hipError_t error = release(ptr, /*is_pinned=*/true);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// Memory nodes and stream-ordered allocation are not there.
static hipError_t refuse_async(hipStream_t handle) {
  sg_host_lock();
  sg_host_stream_t* stream = sg_host_stream_find(handle);
  hipError_t error = hipErrorInvalidHandle;
  if (stream != NULL) error = sg_host_capture_refuse(stream);
  sg_host_unlock();
  return error == hipSuccess ? hipErrorNotSupported : error;
}

hipError_t hipMallocAsync(void** dev_ptr, size_t size, hipStream_t stream) {
  SG_HOST_CALL(hipMallocAsync);
  (void)size;
  if (dev_ptr == NULL) return sg_host_call_end(hipErrorInvalidValue);
  *dev_ptr = NULL;
  return sg_host_call_end(refuse_async(stream));
}

hipError_t hipFreeAsync(void* dev_ptr, hipStream_t stream) {
  SG_HOST_CALL(hipFreeAsync);
  (void)dev_ptr;
  return sg_host_call_end(refuse_async(stream));
}

hipError_t hipHostGetDevicePointer(void** devPtr, void* hstPtr,
                                   unsigned int flags) {
  SG_HOST_CALL(hipHostGetDevicePointer);
  if (devPtr == NULL || flags != 0) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  sg_host_lock();
  const region_t* region = find_region(hstPtr);
  bool is_pinned = region != NULL && region->is_pinned;
  sg_host_unlock();
  *devPtr = is_pinned ? hstPtr : NULL;
  return sg_host_call_end(is_pinned ? hipSuccess : hipErrorInvalidValue);
}

static void fill_attributes(const region_t* region, void* pointer,
                            hipPointerAttribute_t* out_attributes) {
  memset(out_attributes, 0, sizeof(*out_attributes));
  hipMemoryType type =
      region->is_pinned ? hipMemoryTypeHost : hipMemoryTypeDevice;
#if HIP_VERSION_MAJOR >= 6
  out_attributes->type = type;
#else
  out_attributes->memoryType = type;
#endif
  out_attributes->device = region->device->index;
  out_attributes->devicePointer = pointer;
  out_attributes->hostPointer = region->is_pinned ? pointer : NULL;
  out_attributes->allocationFlags = region->flags;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes,
                                   const void* ptr) {
  SG_HOST_CALL(hipPointerGetAttributes);
  if (attributes == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  const region_t* region = find_region(ptr);
  if (region != NULL)
    fill_attributes(region, (void*)(uintptr_t)ptr, attributes);
  sg_host_unlock();
  return sg_host_call_end(region != NULL ? hipSuccess : hipErrorInvalidValue);
}

// Whether |rows| rows at |pitch_bytes| of |width_bytes| from |pointer| lie
// within |region|.
static bool holds(const region_t* region, const void* pointer,
                  size_t pitch_bytes, size_t width_bytes, size_t rows) {
  if (rows == 0 || width_bytes == 0) return true;
  size_t left_bytes = region->base + region->bytes - (uintptr_t)pointer;
  if (width_bytes > left_bytes) return false;
  return rows == 1 || pitch_bytes <= (left_bytes - width_bytes) / (rows - 1);
}

// Whether a side of a copy is what its direction says. Pinned memory is both
// host's and device's.
static bool matches(const region_t* region, bool wants_device) {
  if (region == NULL) return !wants_device;
  return region->is_pinned || wants_device;
}

hipError_t sg_host_memory_check_copy(const sg_host_copy_t* copy,
                                     bool* out_is_pageable) {
  *out_is_pageable = false;
  if (copy->width_bytes == 0 || copy->height == 0) return hipSuccess;
  if (copy->target == NULL || copy->source == NULL) return hipErrorInvalidValue;
  if (copy->height > 1 && (copy->width_bytes > copy->target_pitch_bytes ||
                           copy->width_bytes > copy->source_pitch_bytes)) {
    return hipErrorInvalidPitchValue;
  }
  const region_t* target = find_region(copy->target);
  const region_t* source = find_region(copy->source);
  if (copy->kind != hipMemcpyDefault) {
    bool to_device = copy->kind == hipMemcpyHostToDevice ||
                     copy->kind == hipMemcpyDeviceToDevice;
    bool from_device = copy->kind == hipMemcpyDeviceToHost ||
                       copy->kind == hipMemcpyDeviceToDevice;
    if (!to_device && !from_device && copy->kind != hipMemcpyHostToHost) {
      return hipErrorInvalidMemcpyDirection;
    }
    if (!matches(target, to_device) || !matches(source, from_device)) {
      return hipErrorInvalidValue;
    }
  }
  if (target != NULL && !holds(target, copy->target, copy->target_pitch_bytes,
                               copy->width_bytes, copy->height)) {
    return hipErrorInvalidValue;
  }
  if (source != NULL && !holds(source, copy->source, copy->source_pitch_bytes,
                               copy->width_bytes, copy->height)) {
    return hipErrorInvalidValue;
  }
  *out_is_pageable = target == NULL || source == NULL;
  return hipSuccess;
}

hipError_t sg_host_memory_check_fill(const sg_host_fill_t* fill) {
  if (fill->width == 0 || fill->height == 0) return hipSuccess;
  const region_t* region = find_region(fill->target);
  if (region == NULL) return hipErrorInvalidValue;
  if (fill->width > SIZE_MAX / fill->element_bytes) return hipErrorInvalidValue;
  bool fits = holds(region, fill->target, fill->pitch_bytes,
                    fill->width * fill->element_bytes, fill->height);
  return fits ? hipSuccess : hipErrorInvalidValue;
}

bool sg_host_memory_is_pinned(const void* pointer) {
  const region_t* region = find_region(pointer);
  return region != NULL && region->is_pinned;
}
