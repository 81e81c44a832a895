// SPDX-License-Identifier: Apache-2.0
//
// The HIP runtime API, from whichever header the flavour has on its include
// path: ROCm's or Debian's for amd and host, runtime/hip/nvidia for nvidia.

#ifndef STEPGRAPH_RUNTIME_HIP_HIP_H_
#define STEPGRAPH_RUNTIME_HIP_HIP_H_

#include <hip/hip_runtime_api.h>

#endif  // STEPGRAPH_RUNTIME_HIP_HIP_H_
