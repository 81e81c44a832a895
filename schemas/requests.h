// SPDX-License-Identifier: Apache-2.0
//
// Request traces, in either of two public formats, recognised by content:
//
// - JSON lines of the Mooncake traces (schemas/request.schema.json), timestamp
//   in milliseconds; other keys of a line are ignored:
//     {"timestamp": 27482, "input_length": 6955, "output_length": 52}
// - the CSV of the Azure LLM inference traces, of any line ending; a time has
// up
//   to nine decimals and may end in "+00:00":
//     TIMESTAMP,ContextTokens,GeneratedTokens
//     2023-11-16 18:15:46.6805900,374,44
//
// Blank lines are skipped. Lengths are in [1, 16777216].
//
// Errors are SG_STATUS_IO, SG_STATUS_INVALID_DATA and SG_STATUS_OUT_OF_MEMORY;
// messages name file and line, and column, JSON pointer or CSV field.

#ifndef STEPGRAPH_SCHEMAS_REQUESTS_H_
#define STEPGRAPH_SCHEMAS_REQUESTS_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sg_request_t {
  // Since the earliest request of the trace.
  int64_t arrival_ns;
  int32_t input_tokens;
  int32_t output_tokens;
} sg_request_t;

// A plain value that owns its array.
typedef struct sg_requests_t {
  sg_allocator_t allocator;
  // By arrival; requests that arrive together are in file order.
  sg_request_t* requests;
  size_t request_count;
} sg_requests_t;

// Reads a trace from |bytes| bytes at |text|, which are not kept. |source_name|
// stands for the file in messages. |max_requests| above 0 reads that many from
// the start of the file and nothing behind them. An empty trace is legal.
SG_MUST_USE sg_status_t sg_requests_parse(sg_allocator_t allocator,
                                          const char* text, size_t bytes,
                                          const char* source_name,
                                          size_t max_requests,
                                          sg_requests_t* out_requests);

// Reads the file at |path| in the same way.
SG_MUST_USE sg_status_t sg_requests_load(sg_allocator_t allocator,
                                         const char* path, size_t max_requests,
                                         sg_requests_t* out_requests);

// Accepts NULL, zeroed requests and those whose reading failed.
void sg_requests_deinitialize(sg_requests_t* requests);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_REQUESTS_H_
