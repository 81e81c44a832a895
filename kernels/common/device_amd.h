// SPDX-License-Identifier: Apache-2.0
//
// What differs on AMD's CDNA: ids, barriers, shuffles, memory orders, matrix
// instructions. Included by device.h alone. Needs neither the device half of
// HIP's own header nor a device library: both lag behind the compilers.

#ifndef STEPGRAPH_KERNELS_COMMON_DEVICE_AMD_H_
#define STEPGRAPH_KERNELS_COMMON_DEVICE_AMD_H_

#include <hip/hip_runtime_api.h>
#include <stdint.h>

#define SG_DEVICE \
  static __attribute__((device)) inline __attribute__((always_inline))
// Threads a block are always exactly |threads|; |blocks| shall fit a compute
// unit at a time.
#define SG_LAUNCH_BOUNDS(threads, blocks)                       \
  __attribute__((amdgpu_flat_work_group_size(threads, threads), \
                 amdgpu_waves_per_eu(((threads) / 64 * (blocks) + 3) / 4)))
#define SG_DEVICE_MEMBER \
  __attribute__((device)) inline __attribute__((always_inline))
#define SG_SHARED __attribute__((shared))

enum { SG_WAVE = 64 };

SG_DEVICE int32_t sg_thread(void) {
  return (int32_t)__builtin_amdgcn_workitem_id_x();
}
SG_DEVICE uint32_t sg_block(void) { return __builtin_amdgcn_workgroup_id_x(); }
SG_DEVICE int32_t sg_block_threads(void) {
  return (int32_t)__builtin_amdgcn_workgroup_size_x();
}
// The first word behind the kernel's arguments, since code object version 5.
SG_DEVICE uint32_t sg_grid(void) {
  return *(const __attribute__((address_space(4)))
           uint32_t*)__builtin_amdgcn_implicitarg_ptr();
}
SG_DEVICE int32_t sg_lane(void) {
  return (int32_t)__builtin_amdgcn_mbcnt_hi(~0u,
                                            __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}

// Threads of a block meet, and see each other's writes to any memory.
SG_DEVICE void sg_block_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

SG_DEVICE uint32_t sg_bits_of(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
SG_DEVICE float sg_float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// The value of the lane whose number differs by |mask|.
SG_DEVICE uint32_t sg_exchange(uint32_t value, int32_t mask) {
  return (uint32_t)__builtin_amdgcn_ds_bpermute((sg_lane() ^ mask) << 2,
                                                (int32_t)value);
}
// The value of the lane |distance| below; below lane 0, of any lane.
SG_DEVICE uint32_t sg_from_below(uint32_t value, int32_t distance) {
  return (uint32_t)__builtin_amdgcn_ds_bpermute(
      ((sg_lane() - distance) & 63) << 2, (int32_t)value);
}

// Whether |condition| holds in any lane of the wave.
SG_DEVICE bool sg_wave_any(bool condition) {
  return __builtin_amdgcn_ballot_w64(condition) != 0;
}

// Threads of a block meet; whether |condition| holds in any of them. |scratch|
// as in sg_block_min.
SG_DEVICE bool sg_block_any(bool condition, uint64_t* scratch) {
  const bool in_wave = sg_wave_any(condition);
  if (sg_lane() == 0) scratch[sg_thread() / SG_WAVE] = in_wave ? 1 : 0;
  sg_block_barrier();
  bool any = false;
  for (int32_t i = 0; i < sg_block_threads() / SG_WAVE; ++i) {
    any |= scratch[i] != 0;
  }
  return any;
}

// 2^x with an error below 1.5 units in the last place; 0 where the result
// would be below 2^-126.
SG_DEVICE float sg_exp2(float x) {
  return x < -126.0f ? 0.0f : __builtin_amdgcn_exp2f(x);
}
// 1 / x and 1 / sqrt(x), errors below 1 unit in the last place.
SG_DEVICE float sg_reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }
SG_DEVICE float sg_reciprocal_root(float x) { return __builtin_amdgcn_rsqf(x); }

// The larger magnitude; not a number where one of them is none.
SG_DEVICE float sg_larger(float a, float b) {
  const uint32_t left = sg_bits_of(a) & 0x7fffffffu;
  const uint32_t right = sg_bits_of(b) & 0x7fffffffu;
  return sg_float_of(left > right ? left : right);
}

// Round to nearest even.
SG_DEVICE uint16_t sg_bf16_of(float value) {
  return __builtin_bit_cast(uint16_t, (__bf16)value);
}
SG_DEVICE uint32_t sg_bf16_pair_of(float low, float high) {
  return (uint32_t)sg_bf16_of(high) << 16 | sg_bf16_of(low);
}
SG_DEVICE uint16_t sg_fp16_of(float value) {
  return __builtin_bit_cast(uint16_t, (_Float16)value);
}
SG_DEVICE uint32_t sg_fp16_pair_of(float low, float high) {
  return (uint32_t)sg_fp16_of(high) << 16 | sg_fp16_of(low);
}
// The larger magnitudes of two pairs of fp16, whose signs are undefined; those
// that are not numbers are larger than all others.
SG_DEVICE uint32_t sg_fp16_pair_max(uint32_t a, uint32_t b) {
  typedef uint16_t pair_t __attribute__((ext_vector_type(2)));
  const uint32_t magnitudes = 0x7fff7fffu;
  return __builtin_bit_cast(
      uint32_t,
      __builtin_elementwise_max(__builtin_bit_cast(pair_t, a & magnitudes),
                                __builtin_bit_cast(pair_t, b & magnitudes)));
}
SG_DEVICE float sg_float_of_fp16(uint16_t bits) {
  return (float)__builtin_bit_cast(_Float16, bits);
}

// Words that the host writes or reads at the same time.
SG_DEVICE uint64_t sg_system_load(const uint64_t* word) {
  return __hip_atomic_load(word, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
// The same without order, for 32 or 64 bits. A pointer that was itself read
// from memory might point to LDS for all that the compiler knows.
template <typename word_t>
SG_DEVICE word_t sg_system_peek(const word_t* word) {
  return __hip_atomic_load(
      (const __attribute__((address_space(1))) word_t*)word, __ATOMIC_RELAXED,
      __HIP_MEMORY_SCOPE_SYSTEM);
}
SG_DEVICE void sg_system_store(uint64_t* word, uint64_t value) {
  __hip_atomic_store(word, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
SG_DEVICE uint64_t sg_system_add(uint64_t* word, uint64_t value) {
  return __hip_atomic_fetch_add(word, value, __ATOMIC_RELAXED,
                                __HIP_MEMORY_SCOPE_SYSTEM);
}
// *word = max(*word, value); returns what was there.
SG_DEVICE uint64_t sg_atomic_max(uint64_t* word, uint64_t value) {
  return __hip_atomic_fetch_max(word, value, __ATOMIC_RELAXED,
                                __HIP_MEMORY_SCOPE_AGENT);
}

// Memory that is read or written once: it need not stay in caches.
typedef float sg_float4_t __attribute__((ext_vector_type(4)));
SG_DEVICE sg_float4_t sg_load_16_once(const void* address) {
  return __builtin_nontemporal_load((const sg_float4_t*)address);
}
SG_DEVICE void sg_store_16_once(void* address, sg_float4_t value) {
  __builtin_nontemporal_store(value, (sg_float4_t*)address);
}
typedef uint32_t sg_word2_t __attribute__((ext_vector_type(2)));
SG_DEVICE sg_word2_t sg_load_8_once(const void* address) {
  return __builtin_nontemporal_load((const sg_word2_t*)address);
}
SG_DEVICE void sg_store_8_once(void* address, sg_word2_t value) {
  __builtin_nontemporal_store(value, (sg_word2_t*)address);
}

// --- Tiles of 16 x 16 over a wave: device_tile.h has the common part ---

enum {
  SG_TILE_VALUES = 4,  // elements that a lane holds
  SG_TILE_RUN = 4,     // of which so many are neighbours in a row
  SG_TILE_ROWS = 1,    // rows that they are in
};

// Which of its rows a lane's element |i| is in.
SG_DEVICE int32_t sg_tile_row_index(int32_t i) {
  (void)i;
  return 0;
}

SG_DEVICE int32_t sg_tile_row(int32_t i) {
  (void)i;
  return sg_lane() & 15;
}
SG_DEVICE int32_t sg_tile_column(int32_t i) {
  return ((sg_lane() >> 4) << 2) + i;
}
// Where element (row, column) stands among the 256 of a packed tile: lanes
// follow each other, each with its elements.
SG_DEVICE int32_t sg_tile_index(int32_t row, int32_t column) {
  return (((column >> 2) << 4) + row) * 4 + (column & 3);
}

// The largest of the lanes that have elements of the same rows.
SG_DEVICE uint32_t sg_tile_row_max(uint32_t value) {
  uint32_t other = sg_exchange(value, 16);
  value = other > value ? other : value;
  other = sg_exchange(value, 32);
  return other > value ? other : value;
}
// Four columns that lie together in a packed tile: column |i| of the fours.
SG_DEVICE int32_t sg_tile_quad_column(int32_t quad, int32_t i) {
  return quad * 4 + i;
}
// Which of its elements in a packed tile is a lane's element |i|.
SG_DEVICE int32_t sg_tile_packed(int32_t i) { return i; }

typedef struct sg_tile_t {
  float value[SG_TILE_VALUES];
} sg_tile_t;

SG_DEVICE void sg_tile_multiply_fp16(sg_tile_t* sum, const uint32_t* left,
                                     const uint32_t* right) {
#if defined(__HIP_DEVICE_COMPILE__)
  typedef _Float16 half4_t __attribute__((ext_vector_type(4)));
  typedef uint32_t pairs_t __attribute__((ext_vector_type(2)));
  const pairs_t a = {left[0], left[1]};
  const pairs_t b = {right[0], right[1]};
  sg_float4_t c = {sum->value[0], sum->value[1], sum->value[2], sum->value[3]};
  c = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(half4_t, b),
                                            __builtin_bit_cast(half4_t, a), c,
                                            0, 0, 0);
  for (int32_t i = 0; i < 4; ++i) sum->value[i] = c[i];
#else
  (void)sum, (void)left, (void)right;
#endif
}

SG_DEVICE void sg_tile_multiply_fp32(sg_tile_t* sum, const float* left,
                                     const float* right) {
#if defined(__HIP_DEVICE_COMPILE__)
  sg_float4_t c = {sum->value[0], sum->value[1], sum->value[2], sum->value[3]};
  for (int32_t i = 0; i < 4; ++i) {
    c = __builtin_amdgcn_mfma_f32_16x16x4f32(right[i], left[i], c, 0, 0, 0);
  }
  for (int32_t i = 0; i < 4; ++i) sum->value[i] = c[i];
#else
  (void)sum, (void)left, (void)right;
#endif
}

// There is no faster product of the range of fp32.
SG_DEVICE float sg_tile_round(float value) { return value; }
SG_DEVICE void sg_tile_multiply_rounded(sg_tile_t* sum, const float* left,
                                        const float* right) {
  sg_tile_multiply_fp32(sum, left, right);
}

// --- A stream of panels from global to shared memory ---

enum {
  // Copies of a panel in shared memory: the next one waits in registers.
  SG_STREAM_STAGES = 1,
};

// Panels of |BYTES| bytes, in order, copied by |THREADS| threads while the one
// before is worked on.
template <int32_t BYTES, int32_t THREADS>
struct sg_stream_t {
  static constexpr int32_t PIECES = BYTES / 16;
  static constexpr int32_t SHARE = (PIECES + THREADS - 1) / THREADS;
  unsigned char* shared;
  sg_float4_t ahead[SHARE];

  // Before anything else, once a kernel.
  SG_DEVICE_MEMBER void open(unsigned char* memory) { shared = memory; }

  SG_DEVICE_MEMBER void fetch(const unsigned char* panel) {
    const sg_float4_t* source = (const sg_float4_t*)panel;
#pragma unroll
    for (int32_t i = 0; i < SHARE; ++i) {
      const int32_t piece = i * THREADS + sg_thread();
      if (piece < PIECES) ahead[i] = source[piece];
    }
  }

  // |panels| yields one panel after the other, |count| in all.
  template <typename panels_t>
  SG_DEVICE_MEMBER void start(panels_t* panels, int32_t count) {
    if (count > 0) fetch(panels->next());
  }

  // The next panel, |left| are still to come including it, in shared memory;
  // what was returned before is overwritten.
  template <typename panels_t>
  SG_DEVICE_MEMBER const unsigned char* next(panels_t* panels, int32_t left) {
    sg_block_barrier();
    sg_float4_t* target = (sg_float4_t*)shared;
#pragma unroll
    for (int32_t i = 0; i < SHARE; ++i) {
      const int32_t piece = i * THREADS + sg_thread();
      if (piece < PIECES) target[piece] = ahead[i];
    }
    sg_block_barrier();
    if (left > 1) fetch(panels->next());
    return shared;
  }
};

// All of a compute unit's LDS is there for the asking.
template <typename kernel_t>
static void sg_allow_shared(kernel_t* kernel, int32_t bytes) {
  (void)kernel;
  (void)bytes;
}

#endif  // STEPGRAPH_KERNELS_COMMON_DEVICE_AMD_H_
