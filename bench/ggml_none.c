// SPDX-License-Identifier: Apache-2.0
//
// Instead of ggml_kda.c in builds without a ggml.

#include "bench/ggml_kda.h"

const char* ggml_kda_version(void) { return NULL; }

sg_status_t ggml_kda_create(const bench_case_t* shape, int32_t threads,
                            ggml_kda_t** out_kda) {
  (void)threads;
  *out_kda = NULL;
  return sg_status_make(SG_STATUS_UNSUPPORTED, "%s: built without a ggml",
                        shape->name);
}

void ggml_kda_destroy(ggml_kda_t* kda) { (void)kda; }

sg_status_t ggml_kda_run(ggml_kda_t* kda) {
  (void)kda;
  return sg_status_make(SG_STATUS_UNSUPPORTED, "built without a ggml");
}
