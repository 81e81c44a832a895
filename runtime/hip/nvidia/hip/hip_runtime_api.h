// SPDX-License-Identifier: Apache-2.0
//
// HIP's names for the CUDA runtime, found before any real HIP header in the
// nvidia flavour alone. A function of the same signature is a macro, so that it
// costs nothing; where the signature differs, or is a template in C++, there is
// an inline function. Errors are CUDA's: hipError_t is cudaError_t, and
// hipGetErrorName returns CUDA's names. For C11 and C++, CUDA 12 and later.

#ifndef STEPGRAPH_RUNTIME_HIP_NVIDIA_HIP_HIP_RUNTIME_API_H_
#define STEPGRAPH_RUNTIME_HIP_NVIDIA_HIP_HIP_RUNTIME_API_H_

#include <cuda_runtime_api.h>
#include <stddef.h>

#if CUDART_VERSION < 12000
#error "CUDA 12 or later is needed"
#endif

// --- Types ---

typedef cudaError_t hipError_t;
typedef cudaStream_t hipStream_t;
typedef cudaEvent_t hipEvent_t;
typedef cudaGraph_t hipGraph_t;
typedef cudaGraphNode_t hipGraphNode_t;
typedef cudaGraphExec_t hipGraphExec_t;
typedef cudaHostFn_t hipHostFn_t;
typedef void* hipDeviceptr_t;
typedef enum cudaDeviceAttr hipDeviceAttribute_t;
typedef enum cudaFuncAttribute hipFuncAttribute;
typedef enum cudaGraphNodeType hipGraphNodeType;
typedef enum cudaMemcpyKind hipMemcpyKind;
typedef enum cudaMemoryType hipMemoryType;
typedef enum cudaStreamCaptureMode hipStreamCaptureMode;
typedef enum cudaStreamCaptureStatus hipStreamCaptureStatus;
typedef struct cudaDeviceProp hipDeviceProp_t;
typedef struct cudaFuncAttributes hipFuncAttributes;
typedef struct cudaHostNodeParams hipHostNodeParams;
typedef struct cudaKernelNodeParams hipKernelNodeParams;
typedef struct cudaMemcpy3DParms hipMemcpy3DParms;
typedef struct cudaMemsetParams hipMemsetParams;
typedef struct cudaPointerAttributes hipPointerAttribute_t;

// --- Enumerators and flags ---

#define hipSuccess cudaSuccess
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipErrorNotInitialized cudaErrorInitializationError
#define hipErrorInvalidConfiguration cudaErrorInvalidConfiguration
#define hipErrorInvalidPitchValue cudaErrorInvalidPitchValue
#define hipErrorInvalidDevicePointer cudaErrorInvalidDevicePointer
#define hipErrorInvalidMemcpyDirection cudaErrorInvalidMemcpyDirection
#define hipErrorInvalidDeviceFunction cudaErrorInvalidDeviceFunction
#define hipErrorNoDevice cudaErrorNoDevice
#define hipErrorInsufficientDriver cudaErrorInsufficientDriver
#define hipErrorInvalidDevice cudaErrorInvalidDevice
#define hipErrorInvalidHandle cudaErrorInvalidResourceHandle
#define hipErrorIllegalState cudaErrorIllegalState
#define hipErrorNotFound cudaErrorSymbolNotFound
#define hipErrorNotReady cudaErrorNotReady
#define hipErrorIllegalAddress cudaErrorIllegalAddress
#define hipErrorLaunchOutOfResources cudaErrorLaunchOutOfResources
#define hipErrorLaunchFailure cudaErrorLaunchFailure
#define hipErrorNotSupported cudaErrorNotSupported
#define hipErrorStreamCaptureUnsupported cudaErrorStreamCaptureUnsupported
#define hipErrorStreamCaptureInvalidated cudaErrorStreamCaptureInvalidated
#define hipErrorStreamCaptureMerge cudaErrorStreamCaptureMerge
#define hipErrorStreamCaptureUnmatched cudaErrorStreamCaptureUnmatched
#define hipErrorStreamCaptureUnjoined cudaErrorStreamCaptureUnjoined
#define hipErrorStreamCaptureIsolation cudaErrorStreamCaptureIsolation
#define hipErrorStreamCaptureImplicit cudaErrorStreamCaptureImplicit
#define hipErrorCapturedEvent cudaErrorCapturedEvent
#define hipErrorStreamCaptureWrongThread cudaErrorStreamCaptureWrongThread
#define hipErrorUnknown cudaErrorUnknown

#define hipMemcpyHostToHost cudaMemcpyHostToHost
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDefault cudaMemcpyDefault

#define hipStreamDefault cudaStreamDefault
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipEventDefault cudaEventDefault
#define hipEventBlockingSync cudaEventBlockingSync
#define hipEventDisableTiming cudaEventDisableTiming

#define hipHostMallocDefault cudaHostAllocDefault
#define hipHostMallocPortable cudaHostAllocPortable
#define hipHostMallocMapped cudaHostAllocMapped
#define hipHostMallocWriteCombined cudaHostAllocWriteCombined
// CUDA's pinned memory is always coherent.
#define hipHostMallocCoherent 0

#define hipStreamCaptureModeGlobal cudaStreamCaptureModeGlobal
#define hipStreamCaptureModeThreadLocal cudaStreamCaptureModeThreadLocal
#define hipStreamCaptureModeRelaxed cudaStreamCaptureModeRelaxed
#define hipStreamCaptureStatusNone cudaStreamCaptureStatusNone
#define hipStreamCaptureStatusActive cudaStreamCaptureStatusActive
#define hipStreamCaptureStatusInvalidated cudaStreamCaptureStatusInvalidated

#define hipGraphNodeTypeKernel cudaGraphNodeTypeKernel
#define hipGraphNodeTypeMemcpy cudaGraphNodeTypeMemcpy
#define hipGraphNodeTypeMemset cudaGraphNodeTypeMemset
#define hipGraphNodeTypeHost cudaGraphNodeTypeHost
#define hipGraphNodeTypeGraph cudaGraphNodeTypeGraph
#define hipGraphNodeTypeEmpty cudaGraphNodeTypeEmpty
#define hipGraphNodeTypeWaitEvent cudaGraphNodeTypeWaitEvent
#define hipGraphNodeTypeEventRecord cudaGraphNodeTypeEventRecord
#define hipGraphInstantiateFlagAutoFreeOnLaunch \
  cudaGraphInstantiateFlagAutoFreeOnLaunch

#define hipMemoryTypeHost cudaMemoryTypeHost
#define hipMemoryTypeDevice cudaMemoryTypeDevice
#define hipFuncAttributeMaxDynamicSharedMemorySize \
  cudaFuncAttributeMaxDynamicSharedMemorySize

#define hipDeviceAttributeMultiprocessorCount cudaDevAttrMultiProcessorCount
#define hipDeviceAttributeWarpSize cudaDevAttrWarpSize
#define hipDeviceAttributeConcurrentKernels cudaDevAttrConcurrentKernels
#define hipDeviceAttributeCanMapHostMemory cudaDevAttrCanMapHostMemory
#define hipDeviceAttributeIntegrated cudaDevAttrIntegrated
#define hipDeviceAttributeMaxThreadsPerBlock cudaDevAttrMaxThreadsPerBlock
#define hipDeviceAttributeMaxBlockDimX cudaDevAttrMaxBlockDimX
#define hipDeviceAttributeMaxBlockDimY cudaDevAttrMaxBlockDimY
#define hipDeviceAttributeMaxBlockDimZ cudaDevAttrMaxBlockDimZ
#define hipDeviceAttributeMaxGridDimX cudaDevAttrMaxGridDimX
#define hipDeviceAttributeMaxGridDimY cudaDevAttrMaxGridDimY
#define hipDeviceAttributeMaxGridDimZ cudaDevAttrMaxGridDimZ
#define hipDeviceAttributeMaxSharedMemoryPerBlock \
  cudaDevAttrMaxSharedMemoryPerBlock

// --- Functions of the same signature ---

#define hipGetErrorName cudaGetErrorName
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError
#define hipPeekAtLastError cudaPeekAtLastError
#define hipGetDeviceCount cudaGetDeviceCount
#define hipGetDevice cudaGetDevice
#define hipSetDevice cudaSetDevice
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipGetDeviceProperties cudaGetDeviceProperties
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipDriverGetVersion cudaDriverGetVersion
#define hipMemGetInfo cudaMemGetInfo
#define hipFree cudaFree
#define hipHostFree cudaFreeHost
#define hipFreeAsync cudaFreeAsync
#define hipPointerGetAttributes cudaPointerGetAttributes
#define hipMemcpy cudaMemcpy
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpy2DAsync cudaMemcpy2DAsync
#define hipMemset cudaMemset
#define hipMemsetAsync cudaMemsetAsync
#define hipStreamCreate cudaStreamCreate
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamCreateWithPriority cudaStreamCreateWithPriority
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamQuery cudaStreamQuery
#define hipStreamWaitEvent cudaStreamWaitEvent
#define hipStreamBeginCapture cudaStreamBeginCapture
#define hipStreamEndCapture cudaStreamEndCapture
#define hipStreamIsCapturing cudaStreamIsCapturing
#define hipThreadExchangeStreamCaptureMode cudaThreadExchangeStreamCaptureMode
#define hipEventCreate cudaEventCreate
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDestroy cudaEventDestroy
#define hipEventRecord cudaEventRecord
#define hipEventQuery cudaEventQuery
#define hipEventSynchronize cudaEventSynchronize
#define hipEventElapsedTime cudaEventElapsedTime
#define hipLaunchKernel cudaLaunchKernel
#define hipLaunchHostFunc cudaLaunchHostFunc
#define hipFuncGetAttributes cudaFuncGetAttributes
#define hipFuncSetAttribute cudaFuncSetAttribute
#define hipGraphCreate cudaGraphCreate
#define hipGraphDestroy cudaGraphDestroy
#define hipGraphClone cudaGraphClone
#define hipGraphLaunch cudaGraphLaunch
#define hipGraphExecDestroy cudaGraphExecDestroy
#define hipGraphInstantiateWithFlags cudaGraphInstantiateWithFlags
#define hipGraphGetNodes cudaGraphGetNodes
#define hipGraphGetRootNodes cudaGraphGetRootNodes
#define hipGraphNodeGetType cudaGraphNodeGetType
#define hipGraphAddEmptyNode cudaGraphAddEmptyNode
#define hipGraphAddKernelNode cudaGraphAddKernelNode
#define hipGraphAddMemcpyNode1D cudaGraphAddMemcpyNode1D
#define hipGraphAddMemsetNode cudaGraphAddMemsetNode
#define hipGraphAddHostNode cudaGraphAddHostNode
#define hipGraphKernelNodeGetParams cudaGraphKernelNodeGetParams
#define hipGraphMemcpyNodeGetParams cudaGraphMemcpyNodeGetParams
#define hipGraphMemsetNodeGetParams cudaGraphMemsetNodeGetParams

// --- Functions that are templates in C++ ---

static inline hipError_t hipMalloc(void** ptr, size_t size) {
  return cudaMalloc(ptr, size);
}

static inline hipError_t hipHostMalloc(void** ptr, size_t size,
                                       unsigned int flags) {
  return cudaHostAlloc(ptr, size, flags);
}

static inline hipError_t hipMallocAsync(void** ptr, size_t size,
                                        hipStream_t stream) {
  return cudaMallocAsync(ptr, size, stream);
}

static inline hipError_t hipHostGetDevicePointer(void** device_pointer,
                                                 void* host_pointer,
                                                 unsigned int flags) {
  return cudaHostGetDevicePointer(device_pointer, host_pointer, flags);
}

// --- Functions of another signature ---

static inline hipError_t hipGraphInstantiate(hipGraphExec_t* exec,
                                             hipGraph_t graph,
                                             hipGraphNode_t* error_node,
                                             char* log, size_t log_bytes) {
  if (error_node != NULL) *error_node = NULL;
  if (log != NULL && log_bytes > 0) log[0] = '\0';
  return cudaGraphInstantiate(exec, graph, /*flags=*/0);
}

// CUDA 13 added the data of edges to these.
#if CUDART_VERSION >= 13000
#define SG_NVIDIA_NO_EDGE_DATA NULL,
#else
#define SG_NVIDIA_NO_EDGE_DATA
#endif

static inline hipError_t hipGraphGetEdges(hipGraph_t graph,
                                          hipGraphNode_t* from,
                                          hipGraphNode_t* to, size_t* count) {
  return cudaGraphGetEdges(graph, from, to, SG_NVIDIA_NO_EDGE_DATA count);
}

static inline hipError_t hipGraphNodeGetDependencies(
    hipGraphNode_t node, hipGraphNode_t* dependencies, size_t* count) {
  return cudaGraphNodeGetDependencies(node, dependencies,
                                      SG_NVIDIA_NO_EDGE_DATA count);
}

static inline hipError_t hipGraphNodeGetDependentNodes(
    hipGraphNode_t node, hipGraphNode_t* dependents, size_t* count) {
  return cudaGraphNodeGetDependentNodes(node, dependents,
                                        SG_NVIDIA_NO_EDGE_DATA count);
}

static inline hipError_t hipGraphAddDependencies(hipGraph_t graph,
                                                 const hipGraphNode_t* from,
                                                 const hipGraphNode_t* to,
                                                 size_t count) {
  return cudaGraphAddDependencies(graph, from, to,
                                  SG_NVIDIA_NO_EDGE_DATA count);
}

static inline hipError_t hipStreamGetCaptureInfo_v2(
    hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id,
    hipGraph_t* graph, const hipGraphNode_t** dependencies, size_t* count) {
#if CUDART_VERSION >= 13000
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL,
                                  count);
#else
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies,
                                     count);
#endif
}

static inline hipError_t hipStreamGetCaptureInfo(hipStream_t stream,
                                                 hipStreamCaptureStatus* status,
                                                 unsigned long long* id) {
  return hipStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

#undef SG_NVIDIA_NO_EDGE_DATA

#endif  // STEPGRAPH_RUNTIME_HIP_NVIDIA_HIP_HIP_RUNTIME_API_H_
