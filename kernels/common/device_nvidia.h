// SPDX-License-Identifier: Apache-2.0
//
// What differs on NVIDIA's Hopper: ids, barriers, shuffles, memory orders,
// matrix instructions. Included by device.h alone.

#ifndef STEPGRAPH_KERNELS_COMMON_DEVICE_NVIDIA_H_
#define STEPGRAPH_KERNELS_COMMON_DEVICE_NVIDIA_H_

#include <hip/hip_runtime.h>
#include <stdint.h>

#define SG_DEVICE static __device__ __forceinline__
#define SG_DEVICE_MEMBER __device__ __forceinline__
// Threads a block are always exactly |threads|; |blocks| shall fit a
// multiprocessor at a time.
#define SG_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define SG_SHARED __shared__

enum { SG_WAVE = 32 };

SG_DEVICE int32_t sg_thread(void) { return (int32_t)threadIdx.x; }
SG_DEVICE uint32_t sg_block(void) { return blockIdx.x; }
SG_DEVICE int32_t sg_block_threads(void) { return (int32_t)blockDim.x; }
SG_DEVICE uint32_t sg_grid(void) { return gridDim.x; }
SG_DEVICE int32_t sg_lane(void) { return (int32_t)(threadIdx.x & 31u); }

// Threads of a block meet, and see each other's writes to any memory.
SG_DEVICE void sg_block_barrier(void) { __syncthreads(); }
// The same, and whether |condition| holds in any of them. |scratch| as in
// sg_block_min.
SG_DEVICE bool sg_block_any(bool condition, uint64_t* scratch) {
  (void)scratch;
  return __syncthreads_or(condition) != 0;
}

SG_DEVICE uint32_t sg_bits_of(float value) { return __float_as_uint(value); }
SG_DEVICE float sg_float_of(uint32_t bits) { return __uint_as_float(bits); }

// The value of the lane whose number differs by |mask|.
SG_DEVICE uint32_t sg_exchange(uint32_t value, int32_t mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
// The value of the lane |distance| below; below lane 0, of any lane.
SG_DEVICE uint32_t sg_from_below(uint32_t value, int32_t distance) {
  return __shfl_up_sync(0xffffffffu, value, (uint32_t)distance);
}

// Whether |condition| holds in any lane of the wave.
SG_DEVICE bool sg_wave_any(bool condition) {
  return __any_sync(0xffffffffu, condition) != 0;
}

// 2^x with an error of 2 units in the last place; 0 where the result would be
// below 2^-126.
SG_DEVICE float sg_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
// 1 / x with an error of 1 unit in the last place, 1 / sqrt(x) with 2.
SG_DEVICE float sg_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
SG_DEVICE float sg_reciprocal_root(float x) {
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// The larger magnitude; not a number where one of them is none.
SG_DEVICE float sg_larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;"
      : "=f"(result)
      : "f"(__builtin_fabsf(a)), "f"(__builtin_fabsf(b)));
  return result;
}

// Round to nearest even.
SG_DEVICE uint16_t sg_bf16_of(float value) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
SG_DEVICE uint32_t sg_bf16_pair_of(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
SG_DEVICE uint16_t sg_fp16_of(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
SG_DEVICE uint32_t sg_fp16_pair_of(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// The larger magnitudes of two pairs of fp16, whose signs are undefined; those
// that are not numbers are larger than all others.
SG_DEVICE uint32_t sg_fp16_pair_max(uint32_t a, uint32_t b) {
  uint32_t most;
  asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
  return most;
}
SG_DEVICE float sg_float_of_fp16(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Words that the host writes or reads at the same time.
SG_DEVICE uint64_t sg_system_load(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(word)
               : "memory");
  return value;
}
// The same without order, for 32 or 64 bits.
template <typename word_t>
SG_DEVICE word_t sg_system_peek(const word_t* word) {
  return *(const volatile word_t*)word;
}
SG_DEVICE void sg_system_store(uint64_t* word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;"
               :
               : "l"(word), "l"(value)
               : "memory");
}
SG_DEVICE uint64_t sg_system_add(uint64_t* word, uint64_t value) {
  return atomicAdd_system((unsigned long long*)word, (unsigned long long)value);
}
// *word = max(*word, value); returns what was there.
SG_DEVICE uint64_t sg_atomic_max(uint64_t* word, uint64_t value) {
  return atomicMax((unsigned long long*)word, (unsigned long long)value);
}

// Memory that is read or written once: it need not stay in caches.
typedef float4 sg_float4_t;
SG_DEVICE sg_float4_t sg_load_16_once(const void* address) {
  return __ldcs((const sg_float4_t*)address);
}
SG_DEVICE void sg_store_16_once(void* address, sg_float4_t value) {
  __stcs((sg_float4_t*)address, value);
}
typedef uint2 sg_word2_t;
SG_DEVICE sg_word2_t sg_load_8_once(const void* address) {
  return __ldcs((const sg_word2_t*)address);
}
SG_DEVICE void sg_store_8_once(void* address, sg_word2_t value) {
  __stcs((sg_word2_t*)address, value);
}

// --- Tiles of 16 x 16 over a wave: device_tile.h has the common part ---

enum {
  SG_TILE_VALUES = 8,  // elements that a lane holds
  SG_TILE_RUN = 2,     // of which so many are neighbours in a row
  SG_TILE_ROWS = 2,    // rows that they are in
};

// Which of its rows a lane's element |i| is in.
SG_DEVICE int32_t sg_tile_row_index(int32_t i) { return (i >> 1) & 1; }

SG_DEVICE int32_t sg_tile_row(int32_t i) {
  return (sg_lane() >> 2) + ((i & 2) << 2);
}
SG_DEVICE int32_t sg_tile_column(int32_t i) {
  return ((sg_lane() & 3) << 1) + (i & 1) + ((i & 4) << 1);
}
// Where element (row, column) stands among the 256 of a packed tile: lanes
// follow each other, each with its elements, those of a row together as the
// instructions want them of a right operand.
SG_DEVICE int32_t sg_tile_index(int32_t row, int32_t column) {
  const int32_t lane = ((row & 7) << 2) + ((column & 7) >> 1);
  return lane * 8 + (column & 1) + ((column >> 3) << 1) + ((row >> 3) << 2);
}
// Four columns that lie together in a packed tile: column |i| of the fours.
SG_DEVICE int32_t sg_tile_quad_column(int32_t quad, int32_t i) {
  return quad * 2 + (i & 1) + ((i & 2) << 2);
}
// Which of its elements in a packed tile is a lane's element |i|.
SG_DEVICE int32_t sg_tile_packed(int32_t i) {
  return (i & 1) + ((i & 4) >> 1) + ((i & 2) << 1);
}

// The largest of the lanes that have elements of the same rows.
SG_DEVICE uint32_t sg_tile_row_max(uint32_t value) {
  uint32_t other = sg_exchange(value, 1);
  value = other > value ? other : value;
  other = sg_exchange(value, 2);
  return other > value ? other : value;
}
typedef struct sg_tile_t {
  float value[SG_TILE_VALUES];
} sg_tile_t;

SG_DEVICE void sg_mma_fp16(float* c, uint32_t a0, uint32_t a1, uint32_t a2,
                           uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// |left| as in a sum, |right| as in a packed tile. The first half of the sum's
// columns, then the second.
SG_DEVICE void sg_tile_multiply_fp16(sg_tile_t* sum, const uint32_t* left,
                                     const uint32_t* right) {
  sg_mma_fp16(sum->value, left[0], left[1], left[2], left[3], right[0],
              right[1]);
  sg_mma_fp16(sum->value + 4, left[0], left[1], left[2], left[3], right[2],
              right[3]);
}

SG_DEVICE void sg_mma_tf32(float* c, uint32_t a0, uint32_t a1, uint32_t a2,
                           uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Products of a tile's 16 columns, 8 of them a step: a step takes columns 2t
// and 2t + 1 of lane t for the instruction's columns t and t + 4, of both
// operands alike. The first half of the sum's columns, then the second.
SG_DEVICE void sg_tile_multiply_tf32(float* c, const uint32_t* a,
                                     const uint32_t* b) {
#pragma unroll
  for (int32_t i = 0; i < 8; i += 4) {
    sg_mma_tf32(c, a[i], a[i + 2], a[i + 1], a[i + 3], b[i], b[i + 1]);
    sg_mma_tf32(c + 4, a[i], a[i + 2], a[i + 1], a[i + 3], b[i + 2], b[i + 3]);
  }
}

// What sg_tile_multiply_rounded takes: tf32, with 11 significant bits. The
// instructions leave out the other 13. |value| is finite and rounds to no more
// than that.
SG_DEVICE float sg_tile_round(float value) {
  return sg_float_of(sg_bits_of(value) + 0x1000u);
}
SG_DEVICE void sg_tile_multiply_rounded(sg_tile_t* sum, const float* left,
                                        const float* right) {
  uint32_t a[8], b[8];
#pragma unroll
  for (int32_t i = 0; i < 8; ++i) {
    a[i] = sg_bits_of(left[i]);
    b[i] = sg_bits_of(right[i]);
  }
  sg_tile_multiply_tf32(sum->value, a, b);
}
// value = high + low, high a number of 11 bits, low with the next 11 of them in
// front. What is not a number stays so in low.
SG_DEVICE void sg_split_tf32(float value, uint32_t* high, uint32_t* low) {
  *high = (sg_bits_of(value) + 0x1000u) & 0xffffe000u;
  *low = sg_bits_of(value - sg_float_of(*high));
}

// Products of fp32 operands in three parts: high high + high low + low high,
// good to 2^-21. A product starts from zero and is then added, because the
// matrix unit cuts off what it does not keep: over thousands of additions to
// the same sum that would add up.
SG_DEVICE void sg_tile_multiply_fp32(sg_tile_t* sum, const float* left,
                                     const float* right) {
  uint32_t high_a[8], low_a[8], high_b[8], low_b[8];
#pragma unroll
  for (int32_t i = 0; i < 8; ++i) {
    sg_split_tf32(left[i], &high_a[i], &low_a[i]);
    sg_split_tf32(right[i], &high_b[i], &low_b[i]);
  }
  float c[8] = {0.0f};
#pragma unroll
  for (int32_t part = 0; part < 3; ++part) {
    sg_tile_multiply_tf32(c, part == 0 ? low_a : high_a,
                          part == 1 ? low_b : high_b);
  }
#pragma unroll
  for (int32_t i = 0; i < 8; ++i) sum->value[i] += c[i];
}

// --- A stream of panels from global to shared memory ---

enum {
  // Copies of a panel in shared memory.
  SG_STREAM_STAGES = 3,
};

// Panels of |BYTES| bytes, in order, copied by the bulk copy engine while those
// before are worked on. A stage's mbarrier completes a phase whenever a panel
// has arrived; stages and phases go on from one sequence of panels to the next.
template <int32_t BYTES, int32_t THREADS>
struct sg_stream_t {
  uint32_t memory;  // addresses of shared memory
  uint32_t barriers;
  int32_t read_stage;
  int32_t write_stage;
  uint32_t phase;
  bool arrived;  // the next panel, as far as is known

  // Before anything else, once a kernel.
  SG_DEVICE_MEMBER void open(unsigned char* shared) {
    SG_SHARED uint64_t storage[SG_STREAM_STAGES];
    memory = (uint32_t)__cvta_generic_to_shared(shared);
    barriers = (uint32_t)__cvta_generic_to_shared(storage);
    // Kept, not made again from special registers whenever they are used.
    asm volatile("" : "+r"(memory), "+r"(barriers));
    read_stage = write_stage = 0;
    phase = 0;
    arrived = false;
    if (sg_thread() == 0) {
      for (uint32_t i = 0; i < SG_STREAM_STAGES; ++i) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
                     :
                     : "r"(barriers + 8 * i)
                     : "memory");
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    sg_block_barrier();
  }

  template <typename panels_t>
  SG_DEVICE_MEMBER void fetch(panels_t* panels) {
    const unsigned char* source = panels->next();
    // One lane, and all of the wave know it: another condition would make the
    // compiler look for the lanes to copy for, one by one.
    if (__shfl_sync(0xffffffffu, sg_thread() / SG_WAVE, 0) == 0 && elect()) {
      const uint32_t barrier = barriers + 8u * (uint32_t)write_stage;
      asm volatile(
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %3;"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%1], [%2], %3, [%0];"
          :
          : "r"(barrier), "r"(memory + (uint32_t)(write_stage * BYTES)),
            "l"(source), "n"(BYTES)
          : "memory");
    }
    write_stage = write_stage + 1 < SG_STREAM_STAGES ? write_stage + 1 : 0;
  }

  SG_DEVICE_MEMBER static bool elect(void) {
    uint32_t elected;
    asm volatile(
        "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
        : "=r"(elected));
    return elected != 0;
  }

  SG_DEVICE_MEMBER bool has_arrived(void) const {
    uint32_t result;
    asm volatile(
        "{ .reg .pred p; "
        "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(result)
        : "r"(barriers + 8u * (uint32_t)read_stage), "r"(phase)
        : "memory");
    return result != 0;
  }

  // |panels| yields one panel after the other, |count| in all.
  template <typename panels_t>
  SG_DEVICE_MEMBER void start(panels_t* panels, int32_t count) {
    for (int32_t i = 0; i + 1 < SG_STREAM_STAGES && i < count; ++i) {
      fetch(panels);
    }
  }

  // The next panel, |left| are still to come including it, in shared memory;
  // what was returned before is overwritten.
  template <typename panels_t>
  SG_DEVICE_MEMBER const unsigned char* next(panels_t* panels, int32_t left) {
    const uint32_t panel = memory + (uint32_t)(read_stage * BYTES);
    while (!arrived) arrived = has_arrived();
    read_stage = read_stage + 1 < SG_STREAM_STAGES ? read_stage + 1 : 0;
    phase ^= read_stage == 0 ? 1u : 0u;
    sg_block_barrier();
    if (left >= SG_STREAM_STAGES) fetch(panels);
    // Asked now, the answer is there when it is needed.
    arrived = has_arrived();
    return (const unsigned char*)__cvta_shared_to_generic(panel);
  }
};

// A kernel gets more than 48 KiB of dynamic shared memory only on request. The
// attribute belongs to the device that is current, so it is set each time; a
// refusal shows as an error of the launch.
template <typename kernel_t>
static void sg_allow_shared(kernel_t* kernel, int32_t bytes) {
  if (bytes <= 48 * 1024) return;
  (void)cudaFuncSetAttribute(
      (const void*)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

#endif  // STEPGRAPH_KERNELS_COMMON_DEVICE_NVIDIA_H_
