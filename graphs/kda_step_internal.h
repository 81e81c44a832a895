// SPDX-License-Identifier: Apache-2.0
//
// The KDA step program's insides: made by kda_step.c, used for recording by
// kda_step_record.c.

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
  SG_KDA_REGION_COUNT,
};

struct sg_kda_step_t {
  sg_kda_step_options_t options;
  sg_kda_geometry_t geometry;
  int32_t layers;
  sg_buffer_spec_t* specs;
  size_t spec_count;
  sg_arena_region_t regions[SG_KDA_REGION_COUNT];
  sg_program_t program;
};

// The functions of the program.
sg_status_t sg_kda_step_record(void* self, const sg_recording_t* recording);
sg_status_t sg_kda_step_record_done(void* self,
                                    const sg_recording_t* recording);
sg_status_t sg_kda_step_record_snapshot(void* self,
                                        const sg_recording_t* recording);
sg_status_t sg_kda_step_record_compare(void* self,
                                       const sg_recording_t* recording);

#endif  // STEPGRAPH_GRAPHS_KDA_STEP_INTERNAL_H_
