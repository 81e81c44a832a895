// SPDX-License-Identifier: Apache-2.0
//
// The host's kernels block by block, in any order, by instruction set.

#include <stdlib.h>
#include <string.h>

#include "kernels/kda_chunk/configure.h"
#include "kernels/kda_chunk/kda_chunk_host.h"
#include "kernels/kda_recurrent/configure.h"
#include "kernels/kda_recurrent/kda_recurrent_host.h"
#include "tests/check.h"
#include "tests/kernels/kda_run.h"

double kda_run_state_tolerance(sg_dtype_t dtype) {
  // The state is fp32 whatever the activations are. With bf16 ones AMX leaves
  // out of a product what is below 2^-14 of it.
  const bool is_narrow =
      dtype == SG_DTYPE_BF16 && sg__host_isa_available(SG_HOST_ISA_AMX);
  return is_narrow ? 1e-4 : 1e-5;
}

// Runs all blocks of |launch| with |kernel|, each with fresh scratch.
static void run_launch(const sg_launch_t* launch,
                       const sg_host_kernel_t* kernel, uint64_t order_seed) {
  assert_int_equal(kernel->params_bytes, launch->kernel->params_bytes);
  assert_true(launch->shared_bytes <= kda_host_target.shared_bytes_per_block);
  uint32_t* order = calloc(launch->grid + 1, sizeof(uint32_t));
  for (uint32_t i = 0; i < launch->grid; ++i) {
    // Fisher and Yates from the inside out.
    const uint32_t j = order_seed == 0
                           ? i
                           : (uint32_t)(kda_random_bits(&order_seed) % (i + 1));
    order[i] = order[j];
    order[j] = i;
  }
  const size_t scratch_bytes = (launch->shared_bytes + 63u) & ~(size_t)63;
  void* scratch = aligned_alloc(64, scratch_bytes);
  for (uint32_t i = 0; i < launch->grid; ++i) {
    memset(scratch, KDA_RUN_POISON, scratch_bytes);
    const sg_host_block_t block = {
        .index = order[i],
        .grid = launch->grid,
        .threads = launch->block,
        // Whatever workers there are, results have the same bits.
        .workers = 1 + (uint32_t)(order_seed % 64),
        .shared = scratch,
        .shared_bytes = launch->shared_bytes,
    };
    kernel->run_block(launch->params, &block);
  }
  free(scratch);
  free(order);
}

void kda_run_recurrent(kda_run_t* run, bool zeroes_outputs) {
  run->args.zeroes_outputs = zeroes_outputs;
  sg_kda_recurrent_plan_t plan;
  assert_ok(sg__kda_recurrent_configure(&kda_host_target, /*layer=*/0,
                                        &run->args, &plan));
  run_launch(&plan.launch, sg__kda_recurrent_variant(run->test.isa),
             run->test.block_order);
}

void kda_run_chunk(kda_run_t* run, bool zeroes_outputs) {
  run->args.zeroes_outputs = zeroes_outputs;
  sg_kda_chunk_plan_t plan;
  assert_ok(sg__kda_chunk_configure(&kda_host_target, /*layer=*/0, &run->args,
                                    &plan));
  assert_int_equal(plan.launch_count, 1);
  run_launch(&plan.launches[0], sg__kda_chunk_variant(run->test.isa),
             run->test.block_order);
}

void kda_run_step(kda_run_t* run) {
  kda_run_recurrent(run, /*zeroes_outputs=*/false);
  kda_run_chunk(run, /*zeroes_outputs=*/true);
}
