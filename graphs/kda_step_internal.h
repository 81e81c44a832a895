// SPDX-License-Identifier: Apache-2.0
//
// The KDA step program's insides: made by kda_step.c with the buffers that
// kda_step_buffers.c describes, used for recording by kda_step_record.c.

#ifndef STEPGRAPH_GRAPHS_KDA_STEP_INTERNAL_H_
#define STEPGRAPH_GRAPHS_KDA_STEP_INTERNAL_H_

#include "graphs/kda_step.h"
#include "kernels/common/batch_tables.h"

// Parts of the arena, in its order.
enum {
  SG_KDA_REGION_COUNTS = 0,
  SG_KDA_REGION_QUERY_START_LOC,
  SG_KDA_REGION_COMPUTED_LENS,
  SG_KDA_REGION_SLOTS,
  SG_KDA_REGION_CHUNK_INDICES,
  SG_KDA_REGION_CHUNK_OFFSETS,
  SG_KDA_REGION_SLOT_STAMPS,
  // One workspace serves all layers: they follow each other on one stream.
  SG_KDA_REGION_WORKSPACE,
  // So does one output of the convolution; empty without one.
  SG_KDA_REGION_CONV_OUTPUT,
  SG_KDA_REGION_COUNT,
};

struct sg_kda_step_t {
  sg_kda_step_options_t options;
  sg_kda_geometry_t geometry;
  int32_t layers;
  sg_buffer_spec_t* specs;
  size_t spec_count;
  // Where a buffer stands among those of its layer, or -1.
  int32_t places[SG_KDA_BUFFER_COUNT];
  int32_t buffers_per_layer;
  sg_arena_region_t regions[SG_KDA_REGION_COUNT];
  sg_program_t program;
};

// The largest step.
sg_batch_capacity_t sg_kda_step_capacity(const sg_kda_step_t* step);

// Fills in specs and places from options and geometry.
sg_status_t sg_kda_step_describe_buffers(sg_kda_step_t* step);

// The functions of the program.
sg_status_t sg_kda_step_record(void* self, const sg_recording_t* recording);
sg_status_t sg_kda_step_record_done(void* self,
                                    const sg_recording_t* recording);
sg_status_t sg_kda_step_record_snapshot(void* self,
                                        const sg_recording_t* recording);
sg_status_t sg_kda_step_record_compare(void* self,
                                       const sg_recording_t* recording);

#endif  // STEPGRAPH_GRAPHS_KDA_STEP_INTERNAL_H_
