// SPDX-License-Identifier: Apache-2.0
//
// For device code that nvcc compiles.

#ifndef STEPGRAPH_RUNTIME_HIP_NVIDIA_HIP_HIP_RUNTIME_H_
#define STEPGRAPH_RUNTIME_HIP_NVIDIA_HIP_HIP_RUNTIME_H_

#include <cuda_runtime.h>
#include <hip/hip_runtime_api.h>

#endif  // STEPGRAPH_RUNTIME_HIP_NVIDIA_HIP_HIP_RUNTIME_H_
