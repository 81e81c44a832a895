// SPDX-License-Identifier: Apache-2.0
//
// Executable graphs: made from a graph once, launched often.

#include <stdlib.h>

#include "runtime/hip_host/calls.h"
#include "runtime/hip_host/capture.h"
#include "runtime/hip_host/graph.h"
#include "runtime/hip_host/handle.h"
#include "runtime/hip_host/stream.h"

enum { PARAMS_ALIGNMENT_BYTES = 64 };

static size_t round_up(size_t bytes) {
  return (bytes + PARAMS_ALIGNMENT_BYTES - 1) / PARAMS_ALIGNMENT_BYTES *
         PARAMS_ALIGNMENT_BYTES;
}

static bool is_placeable(const sg_host_node_t* node) {
  for (size_t i = 0; i < node->dependencies.count; ++i) {
    if (!node->dependencies.items[i]->is_marked) return false;
  }
  return !node->is_marked;
}

// Copies the operations of |graph| into |exec| such that each comes after those
// it depends on, their params to |params|. Nodes are mostly made in such an
// order; only hipGraphAddDependencies makes further passes necessary.
static void place_operations(sg_host_exec_t* exec, const sg_host_graph_t* graph,
                             unsigned char* params) {
  const sg_host_nodes_t* nodes = &graph->nodes;
  for (size_t i = 0; i < nodes->count; ++i) nodes->items[i]->is_marked = false;
  while (exec->operation_count < nodes->count) {
    for (size_t i = 0; i < nodes->count; ++i) {
      sg_host_node_t* node = nodes->items[i];
      if (!is_placeable(node)) continue;
      node->is_marked = true;
      sg_host_operation_copy(&exec->operations[exec->operation_count++],
                             &node->operation, params);
      params += round_up(sg_host_operation_params_bytes(&node->operation));
    }
  }
}

// On a GPU an executable graph takes memory of the device, and so it does here.
static bool has_room(const sg_host_device_t* device, size_t bytes) {
  size_t in_use_bytes = device->memory_in_use_bytes;
  return in_use_bytes <= device->memory_limit_bytes &&
         bytes <= device->memory_limit_bytes - in_use_bytes;
}

static hipError_t instantiate(const sg_host_graph_t* graph,
                              hipGraphExec_t* out_exec) {
  if (out_exec == NULL) return hipErrorInvalidValue;
  *out_exec = NULL;
  if (graph == NULL || graph->is_captured_into) return hipErrorInvalidValue;
  size_t head_bytes =
      round_up(sizeof(sg_host_exec_t) +
               graph->nodes.count * sizeof(sg_host_operation_t));
  size_t bytes = head_bytes;
  for (size_t i = 0; i < graph->nodes.count; ++i) {
    bytes += round_up(
        sg_host_operation_params_bytes(&graph->nodes.items[i]->operation));
  }
  sg_host_device_t* device = sg_host_thread_device();
  if (!has_room(device, bytes)) return hipErrorOutOfMemory;
  sg_host_exec_t* exec = aligned_alloc(PARAMS_ALIGNMENT_BYTES, bytes);
  if (exec == NULL) return hipErrorOutOfMemory;
  *exec = (sg_host_exec_t){
      .references = 1, .device = device, .memory_bytes = bytes};
  *out_exec = sg_host_handle_create(SG_HOST_EXEC, exec);
  if (*out_exec == NULL) {
    free(exec);
    return hipErrorOutOfMemory;
  }
  device->memory_in_use_bytes += bytes;
  place_operations(exec, graph, (unsigned char*)exec + head_bytes);
  return hipSuccess;
}

hipError_t hipGraphInstantiate(hipGraphExec_t* pGraphExec, hipGraph_t graph,
                               hipGraphNode_t* pErrorNode, char* pLogBuffer,
                               size_t bufferSize) {
  SG_HOST_CALL(hipGraphInstantiate);
  if (pErrorNode != NULL) *pErrorNode = NULL;
  if (pLogBuffer != NULL && bufferSize > 0) pLogBuffer[0] = '\0';
  sg_host_lock();
  hipError_t error = instantiate(sg_host_graph_find(graph), pGraphExec);
  sg_host_unlock();
  return sg_host_call_end(error);
}

// Graphs hold no memory, so that hipGraphInstantiateFlagAutoFreeOnLaunch has
// nothing to do; other flags are unknown.
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* pGraphExec,
                                        hipGraph_t graph,
                                        unsigned long long flags) {
  SG_HOST_CALL(hipGraphInstantiateWithFlags);
  if ((flags & ~(unsigned long long)hipGraphInstantiateFlagAutoFreeOnLaunch) !=
      0) {
    return sg_host_call_end(hipErrorInvalidValue);
  }
  sg_host_lock();
  hipError_t error = instantiate(sg_host_graph_find(graph), pGraphExec);
  sg_host_unlock();
  return sg_host_call_end(error);
}

static hipError_t launch(sg_host_exec_t* exec, sg_host_stream_t* stream) {
  if (exec == NULL) return hipErrorInvalidValue;
  if (stream == NULL) return hipErrorInvalidHandle;
  // Child graphs are not there.
  SG_HOST_RETURN_IF_ERROR(sg_host_capture_refuse(stream));
  if (exec->device != stream->device) return hipErrorInvalidValue;
  SG_HOST_RETURN_IF_ERROR(sg_host_stream_check_enqueue(stream));
  sg_host_command_t* command = sg_host_stream_prepare(SG_HOST_COMMAND_GRAPH);
  if (command == NULL) return hipErrorOutOfMemory;
  exec->references++;
  command->graph.exec = exec;
  command->graph.launch = ++exec->launched;
  sg_host_stream_append(stream, command);
  return hipSuccess;
}

hipError_t hipGraphLaunch(hipGraphExec_t graphExec, hipStream_t stream) {
  SG_HOST_CALL(hipGraphLaunch);
  sg_host_lock();
  sg_host_exec_t* exec = sg_host_handle_find(SG_HOST_EXEC, graphExec);
  hipError_t error = launch(exec, sg_host_stream_find(stream));
  sg_host_unlock();
  return sg_host_call_end(error);
}

void sg_host_exec_release(sg_host_exec_t* exec) {
  if (--exec->references != 0) return;
  exec->device->memory_in_use_bytes -= exec->memory_bytes;
  free(exec);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t graphExec) {
  SG_HOST_CALL(hipGraphExecDestroy);
  sg_host_lock();
  sg_host_exec_t* exec = sg_host_handle_find(SG_HOST_EXEC, graphExec);
  if (exec != NULL) {
    sg_host_handle_destroy(graphExec);
    sg_host_exec_release(exec);
  }
  sg_host_unlock();
  return sg_host_call_end(exec != NULL ? hipSuccess : hipErrorInvalidValue);
}
