// SPDX-License-Identifier: Apache-2.0
//
// Batch files: JSON lines, one batch a line, read one at a time so that a file
// may be of any length. schemas/batch.schema.json describes a line:
//
//   {"query_lens":[1,1,37],"computed_lens":[120,9,0],"slots":[3,7,2]}
//
// Each array has one element a sequence, and all three are required. Blank
// lines are skipped; a line has at most 16 MiB and 1048576 sequences.
//
// Rules beyond the schema, checked by the reader:
// - the arrays have equal lengths;
// - the query lengths add up to less than 2^31;
// - no two sequences with a query length above 0 have the same slot. Slot -1 is
//   no slot and may repeat.
//
// Errors are SG_STATUS_IO, SG_STATUS_INVALID_DATA and SG_STATUS_OUT_OF_MEMORY;
// messages name file and line, and column (syntax) or JSON pointer (meaning).

#ifndef STEPGRAPH_SCHEMAS_BATCHES_H_
#define STEPGRAPH_SCHEMAS_BATCHES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/allocator.h"
#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One line. The arrays have |sequence_count| elements each.
typedef struct sg_batch_line_t {
  int32_t sequence_count;
  // Sum of query_lens.
  int32_t token_count;
  // Tokens of each sequence in this step; 0 or more.
  const int32_t* query_lens;
  // Tokens of each sequence computed in earlier steps; 0 or more.
  const int32_t* computed_lens;
  // State slot of each sequence; -1 is none.
  const int32_t* slots;
} sg_batch_line_t;

// Used by one thread at a time.
typedef struct sg_batch_reader_t sg_batch_reader_t;

SG_MUST_USE sg_status_t sg_batch_reader_open(sg_allocator_t allocator,
                                             const char* path,
                                             sg_batch_reader_t** out_reader);

// Reads from |bytes| bytes at |text|, which the reader does not copy: they must
// outlive it. |source_name| is copied and stands for the file in messages.
SG_MUST_USE sg_status_t sg_batch_reader_open_text(
    sg_allocator_t allocator, const char* text, size_t bytes,
    const char* source_name, sg_batch_reader_t** out_reader);

// Reads the next batch, or sets |out_end| when there is none. The arrays belong
// to |reader| and last until its next call. After SG_STATUS_INVALID_DATA the
// next call goes on with the line that follows.
SG_MUST_USE sg_status_t sg_batch_reader_next(sg_batch_reader_t* reader,
                                             sg_batch_line_t* out_batch,
                                             bool* out_end);

// Line of the batch read last, from 1; 0 before the first.
int64_t sg_batch_reader_line(const sg_batch_reader_t* reader);

// Closes the file. Accepts NULL.
void sg_batch_reader_destroy(sg_batch_reader_t* reader);

// Writes |batch| as one line with its newline. token_count is not read. A batch
// beyond 1048576 sequences is SG_STATUS_OUT_OF_RANGE.
SG_MUST_USE sg_status_t sg_batch_write_line(const sg_batch_line_t* batch,
                                            FILE* file);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_BATCHES_H_
