// SPDX-License-Identifier: Apache-2.0
//
// The layer between device code and the vendors: everything that a .hip file
// uses and that is not plain C++. A wave is the set of threads that run in
// lock step, SG_WAVE of them. Functions that exchange values are called by all
// threads of the wave or block they speak of.

#ifndef STEPGRAPH_KERNELS_COMMON_DEVICE_H_
#define STEPGRAPH_KERNELS_COMMON_DEVICE_H_

#if defined(__HIP__)
#include "kernels/common/device_amd.h"
#elif defined(__CUDACC__)
#include "kernels/common/device_nvidia.h"
#else
#error "device code is compiled by clang -x hip or by nvcc"
#endif

enum {
  SG_BLOCK_THREADS_MAX = 1024,
  // Waves of the largest block.
  SG_BLOCK_WAVES_MAX = SG_BLOCK_THREADS_MAX / SG_WAVE,
};

SG_DEVICE int32_t sg_wave(void) { return sg_thread() / SG_WAVE; }
SG_DEVICE int32_t sg_block_waves(void) { return sg_block_threads() / SG_WAVE; }

SG_DEVICE float sg_exchange_float(float value, int32_t mask) {
  return sg_float_of(sg_exchange(sg_bits_of(value), mask));
}

SG_DEVICE uint64_t sg_exchange_word(uint64_t value, int32_t mask) {
  const uint64_t high = sg_exchange((uint32_t)(value >> 32), mask);
  return high << 32 | sg_exchange((uint32_t)value, mask);
}

// Sum over groups of |width| neighbouring lanes, a power of two; every lane
// gets it.
SG_DEVICE float sg_group_sum(float value, int32_t width) {
#pragma unroll
  for (int32_t mask = 1; mask < width; mask *= 2) {
    value += sg_exchange_float(value, mask);
  }
  return value;
}

// One halving of sg_wave_sum_32. A template, so that the array stays in
// registers.
template <int32_t MASK>
SG_DEVICE void sg_wave_fold(float values[32]) {
  const bool upper = (sg_lane() & MASK) != 0;
#pragma unroll
  for (int32_t i = 0; i < MASK; ++i) {
    const float kept = upper ? values[i + MASK] : values[i];
    const float given = upper ? values[i] : values[i + MASK];
    values[i] = kept + sg_exchange_float(given, MASK);
  }
}

// Sums of 32 values over a wave at the price of one: lane l gets, in
// values[0], the sum of values[l mod 32]. values is overwritten.
SG_DEVICE void sg_wave_sum_32(float values[32]) {
  sg_wave_fold<16>(values);
  sg_wave_fold<8>(values);
  sg_wave_fold<4>(values);
  sg_wave_fold<2>(values);
  sg_wave_fold<1>(values);
  if (SG_WAVE == 64) values[0] += sg_exchange_float(values[0], 32);
}

// The least |value| of a block; every thread gets it. |scratch| is shared, of
// SG_BLOCK_WAVES_MAX words, and free again after the next barrier.
SG_DEVICE uint64_t sg_block_min(uint64_t value, uint64_t* scratch) {
#pragma unroll
  for (int32_t mask = 1; mask < SG_WAVE; mask *= 2) {
    const uint64_t other = sg_exchange_word(value, mask);
    value = other < value ? other : value;
  }
  if (sg_lane() == 0) scratch[sg_wave()] = value;
  sg_block_barrier();
  for (int32_t i = 0; i < sg_block_waves(); ++i) {
    value = scratch[i] < value ? scratch[i] : value;
  }
  return value;
}

// Sum of the values of all threads before this one, and of the whole block in
// |out_total|. |scratch| as in sg_block_min.
SG_DEVICE uint64_t sg_block_scan(uint64_t value, uint64_t* scratch,
                                 uint64_t* out_total) {
  uint64_t sum = value;
#pragma unroll
  for (int32_t distance = 1; distance < SG_WAVE; distance *= 2) {
    const uint64_t high = sg_from_below((uint32_t)(sum >> 32), distance);
    const uint64_t below = high << 32 | sg_from_below((uint32_t)sum, distance);
    sum += sg_lane() >= distance ? below : 0;
  }
  if (sg_lane() == SG_WAVE - 1) scratch[sg_wave()] = sum;
  sg_block_barrier();
  uint64_t total = 0;
  uint64_t before = 0;
  for (int32_t i = 0; i < sg_block_waves(); ++i) {
    before += i < sg_wave() ? scratch[i] : 0;
    total += scratch[i];
  }
  *out_total = total;
  return before + sum - value;
}

// Sixteen bytes at an address that is a multiple of sixteen.
SG_DEVICE sg_float4_t sg_load_16(const void* address) {
  return *(const sg_float4_t*)address;
}
SG_DEVICE void sg_store_16(void* address, sg_float4_t value) {
  *(sg_float4_t*)address = value;
}

SG_DEVICE bool sg_is_multiple_of_16(uint64_t value) {
  return (value & 15u) == 0;
}

// The block sets |bytes| bytes, a multiple of 2, to zero.
SG_DEVICE void sg_block_zero(void* target, int64_t bytes) {
  char* address = (char*)target;
  if (sg_is_multiple_of_16((uint64_t)address | (uint64_t)bytes)) {
    const sg_float4_t zero = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t i = sg_thread() * 16; i < bytes;
         i += sg_block_threads() * 16) {
      sg_store_16(address + i, zero);
    }
  } else {
    for (int64_t i = sg_thread() * 2; i < bytes; i += sg_block_threads() * 2) {
      *(uint16_t*)(address + i) = 0;
    }
  }
}

// The host's side of a kernel: its address as hipLaunchKernel takes it.
template <typename kernel_t>
static const void* sg_kernel_handle(kernel_t* kernel) {
  return (const void*)kernel;
}

// The same for a kernel with |bytes| of dynamic shared memory.
template <typename kernel_t>
static const void* sg_kernel_handle_shared(kernel_t* kernel, int32_t bytes) {
  sg_allow_shared(kernel, bytes);
  return (const void*)kernel;
}

#endif  // STEPGRAPH_KERNELS_COMMON_DEVICE_H_
