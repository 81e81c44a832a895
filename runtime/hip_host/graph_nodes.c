// SPDX-License-Identifier: Apache-2.0
//
// Adding nodes to a graph, and asking a node what it does.

#include <string.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/graph.h"
#include "runtime/hip_host/launch.h"
#include "runtime/hip_host/memory.h"

// Where a new node goes, as every function that adds one takes it.
typedef struct place_t {
  hipGraph_t graph;
  const hipGraphNode_t* dependencies;
  size_t dependency_count;
} place_t;

static hipError_t add_dependencies(sg_host_nodes_t* nodes,
                                   const sg_host_graph_t* graph,
                                   const place_t* place) {
  for (size_t i = 0; i < place->dependency_count; ++i) {
    sg_host_node_t* node = sg_host_node_find(place->dependencies[i]);
    if (node == NULL || node->graph != graph) return hipErrorInvalidValue;
    if (!sg_host_nodes_add(nodes, node)) return hipErrorOutOfMemory;
  }
  // Named twice.
  return nodes->count == place->dependency_count ? hipSuccess
                                                 : hipErrorInvalidValue;
}

static hipError_t add_node(const place_t* place,
                           const sg_host_operation_t* operation,
                           hipGraphNode_t* out_node) {
  if (out_node == NULL) return hipErrorInvalidValue;
  *out_node = NULL;
  sg_host_graph_t* graph = sg_host_graph_find(place->graph);
  if (graph == NULL || graph->is_captured_into) return hipErrorInvalidValue;
  if (place->dependency_count > 0 && place->dependencies == NULL) {
    return hipErrorInvalidValue;
  }
  sg_host_nodes_t dependencies = {0};
  hipError_t error = add_dependencies(&dependencies, graph, place);
  if (error == hipSuccess) {
    const sg_host_node_t* node = sg_host_graph_add(
        graph, operation, dependencies.items, dependencies.count);
    error = node == NULL ? hipErrorOutOfMemory : hipSuccess;
    if (node != NULL) *out_node = node->handle;
  }
  sg_host_nodes_clear(&dependencies);
  return error;
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t* pGraphNode, hipGraph_t graph,
                                const hipGraphNode_t* pDependencies,
                                size_t numDependencies) {
  SG_HOST_CALL(hipGraphAddEmptyNode);
  place_t place = {graph, pDependencies, numDependencies};
  sg_host_operation_t operation = {.kind = SG_HOST_OPERATION_EMPTY};
  sg_host_lock();
  hipError_t error = add_node(&place, &operation, pGraphNode);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t* pGraphNode, hipGraph_t graph,
                                 const hipGraphNode_t* pDependencies,
                                 size_t numDependencies,
                                 const hipKernelNodeParams* pNodeParams) {
  SG_HOST_CALL(hipGraphAddKernelNode);
  if (pNodeParams == NULL || pNodeParams->extra != NULL) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  place_t place = {graph, pDependencies, numDependencies};
  sg_host_operation_t operation;
  hipError_t error = sg_host_launch_make(
      pNodeParams->func, pNodeParams->gridDim, pNodeParams->blockDim,
      pNodeParams->sharedMemBytes, pNodeParams->kernelParams, &operation);
  if (error != hipSuccess) return sg_host_call_end(error);
  sg_host_lock();
  error = add_node(&place, &operation, pGraphNode);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* pGraphNode, hipGraph_t graph,
                                   const hipGraphNode_t* pDependencies,
                                   size_t numDependencies, void* dst,
                                   const void* src, size_t count,
                                   hipMemcpyKind kind) {
  SG_HOST_CALL(hipGraphAddMemcpyNode1D);
  place_t place = {graph, pDependencies, numDependencies};
  sg_host_operation_t operation = {.kind = SG_HOST_OPERATION_COPY,
                                   .copy = {.target = dst,
                                            .target_pitch_bytes = count,
                                            .source = src,
                                            .source_pitch_bytes = count,
                                            .width_bytes = count,
                                            .height = 1,
                                            .kind = kind}};
  bool is_pageable = false;
  sg_host_lock();
  hipError_t error = sg_host_memory_check_copy(&operation.copy, &is_pageable);
  if (error == hipSuccess) error = add_node(&place, &operation, pGraphNode);
  sg_host_unlock();
  return sg_host_call_end(error);
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t* pGraphNode, hipGraph_t graph,
                                 const hipGraphNode_t* pDependencies,
                                 size_t numDependencies,
                                 const hipMemsetParams* pMemsetParams) {
  SG_HOST_CALL(hipGraphAddMemsetNode);
  if (pMemsetParams == NULL) return sg_host_call_end(hipErrorInvalidValue);
  uint32_t element_bytes = pMemsetParams->elementSize;
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  place_t place = {graph, pDependencies, numDependencies};
  sg_host_operation_t operation = {.kind = SG_HOST_OPERATION_FILL,
                                   .fill = {.target = pMemsetParams->dst,
                                            .pitch_bytes = pMemsetParams->pitch,
                                            .value = pMemsetParams->value,
                                            .element_bytes = element_bytes,
                                            .width = pMemsetParams->width,
                                            .height = pMemsetParams->height}};
  sg_host_lock();
  hipError_t error = sg_host_memory_check_fill(&operation.fill);
  if (error == hipSuccess) error = add_node(&place, &operation, pGraphNode);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// No graph may hold a host function.
hipError_t hipGraphAddHostNode(hipGraphNode_t* pGraphNode, hipGraph_t graph,
                               const hipGraphNode_t* pDependencies,
                               size_t numDependencies,
                               const hipHostNodeParams* pNodeParams) {
  SG_HOST_CALL(hipGraphAddHostNode);
  (void)graph;
  (void)pDependencies;
  (void)numDependencies;
  (void)pNodeParams;
  if (pGraphNode != NULL) *pGraphNode = NULL;
  return sg_host_call_end(hipErrorNotSupported);
}

static hipGraphNodeType type_of(const sg_host_node_t* node) {
  switch (node->operation.kind) {
    case SG_HOST_OPERATION_KERNEL:
      return hipGraphNodeTypeKernel;
    case SG_HOST_OPERATION_COPY:
      return hipGraphNodeTypeMemcpy;
    case SG_HOST_OPERATION_FILL:
      return hipGraphNodeTypeMemset;
    case SG_HOST_OPERATION_CALL:
      return hipGraphNodeTypeHost;
    case SG_HOST_OPERATION_EMPTY:
      break;
  }
  return hipGraphNodeTypeEmpty;
}

hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* pType) {
  SG_HOST_CALL(hipGraphNodeGetType);
  if (pType == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  const sg_host_node_t* found = sg_host_node_find(node);
  if (found != NULL) *pType = type_of(found);
  sg_host_unlock();
  return sg_host_call_end(found != NULL ? hipSuccess : hipErrorInvalidValue);
}

// The node of |handle| if it has an operation of |kind|, or NULL.
static sg_host_node_t* find_kind(hipGraphNode_t handle,
                                 sg_host_operation_kind_t kind) {
  sg_host_node_t* node = sg_host_node_find(handle);
  return node != NULL && node->operation.kind == kind ? node : NULL;
}

static void get_launch(sg_host_node_t* node, hipKernelNodeParams* out_params) {
  const sg_host_kernel_launch_t* launch = &node->operation.launch;
  memset(out_params, 0, sizeof(*out_params));
  out_params->func = (void*)(uintptr_t)launch->kernel;
  out_params->gridDim = (dim3){.x = launch->grid, .y = 1, .z = 1};
  out_params->blockDim = (dim3){
      .x = launch->block[0], .y = launch->block[1], .z = launch->block[2]};
  out_params->sharedMemBytes = launch->shared_bytes;
  out_params->kernelParams = node->arguments;
}

hipError_t hipGraphKernelNodeGetParams(hipGraphNode_t node,
                                       hipKernelNodeParams* pNodeParams) {
  SG_HOST_CALL(hipGraphKernelNodeGetParams);
  if (pNodeParams == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  sg_host_node_t* found = find_kind(node, SG_HOST_OPERATION_KERNEL);
  if (found != NULL) get_launch(found, pNodeParams);
  sg_host_unlock();
  return sg_host_call_end(found != NULL ? hipSuccess : hipErrorInvalidValue);
}

static void get_copy(const sg_host_copy_t* copy, hipMemcpy3DParms* out_params) {
  memset(out_params, 0, sizeof(*out_params));
  out_params->srcPtr.ptr = (void*)(uintptr_t)copy->source;
  out_params->srcPtr.pitch = copy->source_pitch_bytes;
  out_params->srcPtr.xsize = copy->width_bytes;
  out_params->srcPtr.ysize = copy->height;
  out_params->dstPtr.ptr = copy->target;
  out_params->dstPtr.pitch = copy->target_pitch_bytes;
  out_params->dstPtr.xsize = copy->width_bytes;
  out_params->dstPtr.ysize = copy->height;
  out_params->extent.width = copy->width_bytes;
  out_params->extent.height = copy->height;
  out_params->extent.depth = 1;
  out_params->kind = copy->kind;
}

hipError_t hipGraphMemcpyNodeGetParams(hipGraphNode_t node,
                                       hipMemcpy3DParms* pNodeParams) {
  SG_HOST_CALL(hipGraphMemcpyNodeGetParams);
  if (pNodeParams == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  const sg_host_node_t* found = find_kind(node, SG_HOST_OPERATION_COPY);
  if (found != NULL) get_copy(&found->operation.copy, pNodeParams);
  sg_host_unlock();
  return sg_host_call_end(found != NULL ? hipSuccess : hipErrorInvalidValue);
}

static void get_fill(const sg_host_fill_t* fill, hipMemsetParams* out_params) {
  memset(out_params, 0, sizeof(*out_params));
  out_params->dst = fill->target;
  out_params->pitch = fill->pitch_bytes;
  out_params->value = fill->value;
  out_params->elementSize = fill->element_bytes;
  out_params->width = fill->width;
  out_params->height = fill->height;
}

hipError_t hipGraphMemsetNodeGetParams(hipGraphNode_t node,
                                       hipMemsetParams* pNodeParams) {
  SG_HOST_CALL(hipGraphMemsetNodeGetParams);
  if (pNodeParams == NULL) return sg_host_call_end(hipErrorInvalidValue);
  sg_host_lock();
  const sg_host_node_t* found = find_kind(node, SG_HOST_OPERATION_FILL);
  if (found != NULL) get_fill(&found->operation.fill, pNodeParams);
  sg_host_unlock();
  return sg_host_call_end(found != NULL ? hipSuccess : hipErrorInvalidValue);
}
