// SPDX-License-Identifier: Apache-2.0
//
// Internal: lines of the Azure LLM inference traces
// (github.com/Azure/AzurePublicDataset).

#ifndef STEPGRAPH_SCHEMAS_REQUEST_CSV_H_
#define STEPGRAPH_SCHEMAS_REQUEST_CSV_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "schemas/requests.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SG_REQUEST_CSV_HEADER "TIMESTAMP,ContextTokens,GeneratedTokens"

// Reads one line of |bytes| bytes. Its arrival is in nanoseconds since
// 1970-01-01. |name| and |line_number| are for messages.
SG_MUST_USE sg_status_t sg_request_csv_read(const char* name,
                                            int64_t line_number,
                                            const char* line, size_t bytes,
                                            int32_t max_tokens,
                                            sg_request_t* out_request);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_REQUEST_CSV_H_
