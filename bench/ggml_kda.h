// SPDX-License-Identifier: Apache-2.0
//
// ggml's GATED_DELTA_NET with gates a channel, which is KDA token by token, for
// comparison. Only where the build was given a ggml (SG_GGML_DIR).
//
// The op starts where a layer's chunk part has done the activations: q, k, v,
// log decays and betas are ready, in fp32, and the L2 norm is applied. It gets
// that for nothing here.

#ifndef STEPGRAPH_BENCH_GGML_KDA_H_
#define STEPGRAPH_BENCH_GGML_KDA_H_

#include <stdbool.h>

#include "bench/kda_layer.h"

typedef struct ggml_kda_t ggml_kda_t;

// ggml's version, or NULL where the build has none; all else is then not to be
// called.
const char* ggml_kda_version(void);

SG_MUST_USE sg_status_t ggml_kda_create(const bench_case_t* shape,
                                        int32_t threads, ggml_kda_t** out_kda);
void ggml_kda_destroy(ggml_kda_t* kda);

// Computes the op once.
SG_MUST_USE sg_status_t ggml_kda_run(ggml_kda_t* kda);

#endif  // STEPGRAPH_BENCH_GGML_KDA_H_
