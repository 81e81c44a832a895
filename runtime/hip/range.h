// SPDX-License-Identifier: Apache-2.0
//
// Ranges that profilers show around what the host does: NVTX with the nvidia
// flavour, roctx with the amd flavour where it was found when the project was
// configured, nothing otherwise. They cost next to nothing while no profiler
// listens.

#ifndef STEPGRAPH_RUNTIME_HIP_RANGE_H_
#define STEPGRAPH_RUNTIME_HIP_RANGE_H_

#ifdef __cplusplus
extern "C" {
#endif

// "nvtx", "roctx" or "none".
const char* sg_range_provider(void);

// Opens a range on the calling thread; ranges nest. |name| is copied.
void sg_range_push(const char* name);

// Closes the thread's innermost range.
void sg_range_pop(void);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_RUNTIME_HIP_RANGE_H_
