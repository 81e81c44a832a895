// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip/range.h"

#if defined(SG_RANGES_NVTX)
#include <nvtx3/nvToolsExt.h>

const char* sg_range_provider(void) { return "nvtx"; }
void sg_range_push(const char* name) { nvtxRangePushA(name); }
void sg_range_pop(void) { nvtxRangePop(); }

#elif defined(SG_RANGES_ROCTX)
#include <roctracer/roctx.h>

const char* sg_range_provider(void) { return "roctx"; }
void sg_range_push(const char* name) { roctxRangePushA(name); }
void sg_range_pop(void) { roctxRangePop(); }

#else

const char* sg_range_provider(void) { return "none"; }
void sg_range_push(const char* name) { (void)name; }
void sg_range_pop(void) {}

#endif
