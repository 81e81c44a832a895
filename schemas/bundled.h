// SPDX-License-Identifier: Apache-2.0
//
// The model and shapes files that the library carries, so that names such as
// "tiny" work without any file: schemas/models/*.json, schemas/shapes/*.json.

#ifndef STEPGRAPH_SCHEMAS_BUNDLED_H_
#define STEPGRAPH_SCHEMAS_BUNDLED_H_

#include <stddef.h>

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sg_bundled_kind_t {
  SG_BUNDLED_MODEL = 0,
  SG_BUNDLED_SHAPES = 1,
} sg_bundled_kind_t;

typedef struct sg_bundled_file_t {
  // The file's name without ".json".
  const char* name;
  // |bytes| bytes and a NUL.
  const char* text;
  size_t bytes;
} sg_bundled_file_t;

// All files of |kind|, |out_count| of them; constant data.
const sg_bundled_file_t* sg_bundled_list(sg_bundled_kind_t kind,
                                         size_t* out_count);

// The file of |kind| called |name|, or NULL.
const sg_bundled_file_t* sg_bundled_find(sg_bundled_kind_t kind,
                                         const char* name);

// Returns |status|, what reading |name_or_path| as a file gave. If that failed
// to open and looks like a name (no '/', not ending in ".json"), returns
// SG_STATUS_NOT_FOUND with the bundled names instead.
SG_MUST_USE sg_status_t sg_bundled_explain(sg_status_t status,
                                           sg_bundled_kind_t kind,
                                           const char* name_or_path);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_BUNDLED_H_
