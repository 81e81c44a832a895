// SPDX-License-Identifier: Apache-2.0
//
// Values of node parameters for the dump writers. Not a public header.

#ifndef STEPGRAPH_GRAPHS_DUMP_VALUE_H_
#define STEPGRAPH_GRAPHS_DUMP_VALUE_H_

#include <stddef.h>
#include <stdint.h>

#include "graphs/dump.h"

// The region that |address| points into, or NULL.
const sg_memory_region_t* sg__dump_find_region(const sg_dump_t* dump,
                                               uintptr_t address);

typedef struct sg__dump_value_t {
  sg_param_type_t type;
  // Of the types I32 to U64, the unsigned ones in u64.
  int64_t i64;
  uint64_t u64;
  // The shortest decimal number that reads back as the F32 parameter.
  double f64;
  // Of POINTER: NULL where address is null or points into no region.
  uintptr_t address;
  const sg_memory_region_t* region;
  size_t offset_bytes;
} sg__dump_value_t;

// The value of |field| in the params struct |params|.
sg__dump_value_t sg__dump_value(const sg_dump_t* dump, const void* params,
                                const sg_param_field_t* field);

// Room for any value as text.
enum { SG__DUMP_TEXT_BYTES = 96 };

// "128", "0.25", "layers.0.q+512", "null" or "unknown".
void sg__dump_value_text(const sg__dump_value_t* value,
                         char out_text[SG__DUMP_TEXT_BYTES]);

// Flushes |file| and returns its error, if it has any.
SG_MUST_USE sg_status_t sg__dump_finish(FILE* file);

#endif  // STEPGRAPH_GRAPHS_DUMP_VALUE_H_
