// SPDX-License-Identifier: Apache-2.0
//
// The library in one include: its public headers, each of which reads like a
// manual page.

#ifndef STEPGRAPH_STEPGRAPH_H_
#define STEPGRAPH_STEPGRAPH_H_

// How a call went: a value with its message.
#include "runtime/base/status.h"
// Where memory on the host comes from.
#include "runtime/base/allocator.h"
// One KDA layer in numbers.
#include "runtime/base/kda_geometry.h"
// The HIP calls of this flavour, for streams and memory.
#include "runtime/hip/hip.h"
// Devices that steps can be recorded for.
#include "runtime/hip/target.h"

// Model files.
#include "schemas/model.h"
// Shapes files: which batch shapes get a graph.
#include "schemas/shapes.h"
// The files that the library carries.
#include "schemas/bundled.h"
// Traces of batches.
#include "schemas/batches.h"
// Traces of requests.
#include "schemas/requests.h"
// Tensors in files.
#include "schemas/safetensors.h"
// JSON from the writers of this library.
#include "schemas/json_writer.h"

// The device, the memory and the log that executors share.
#include "runtime/context.h"
// The batch of one step.
#include "runtime/batch.h"
// Steps: capturing, running and looking at them.
#include "runtime/executor.h"
// What an executor has done, in numbers.
#include "runtime/statistics.h"
// The same as text for Prometheus.
#include "runtime/prometheus.h"
// What is in a graph.
#include "runtime/node_table.h"
// Step programs, for those of the caller's own.
#include "runtime/program.h"

// The step program of KDA layers.
#include "graphs/kda_step.h"
// What is in a graph, as text, JSON or DOT.
#include "graphs/dump.h"

// The ops alone, for captures of the caller's own.

// Chunk tables, and the check of a batch.
#include "kernels/chunk_metadata/chunk_metadata.h"
// The short convolution.
#include "kernels/short_conv/short_conv.h"
// KDA for decodes.
#include "kernels/kda_recurrent/kda_recurrent.h"
// KDA for prefills.
#include "kernels/kda_chunk/kda_chunk.h"
// The gated norm of the output.
#include "kernels/gated_norm/gated_norm.h"

#endif  // STEPGRAPH_STEPGRAPH_H_
