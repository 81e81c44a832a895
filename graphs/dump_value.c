// SPDX-License-Identifier: Apache-2.0

#include "graphs/dump_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const sg_memory_region_t* sg__dump_find_region(const sg_dump_t* dump,
                                               uintptr_t address) {
  const sg_memory_region_t* found = NULL;
  for (size_t i = 0; i < dump->region_count; ++i) {
    const sg_memory_region_t* region = &dump->regions[i];
    if (address < region->base || address - region->base >= region->bytes) {
      continue;
    }
    if (found == NULL || region->bytes < found->bytes) found = region;
  }
  return found;
}

// 9 significant digits give back any float.
static double shortest(float value) {
  char text[32];
  for (int digits = 1; digits < 9; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) return strtod(text, NULL);
  }
  snprintf(text, sizeof(text), "%.9g", (double)value);
  return strtod(text, NULL);
}

#define READ(type, member)                 \
  do {                                     \
    type read_;                            \
    memcpy(&read_, source, sizeof(read_)); \
    value.member = read_;                  \
  } while (0)

sg__dump_value_t sg__dump_value(const sg_dump_t* dump, const void* params,
                                const sg_param_field_t* field) {
  const unsigned char* source = (const unsigned char*)params + field->offset;
  sg__dump_value_t value = {.type = field->type};
  float f32;
  switch (field->type) {
    case SG_PARAM_I32:
      READ(int32_t, i64);
      break;
    case SG_PARAM_U32:
      READ(uint32_t, u64);
      break;
    case SG_PARAM_I64:
      READ(int64_t, i64);
      break;
    case SG_PARAM_U64:
      READ(uint64_t, u64);
      break;
    case SG_PARAM_F32:
      memcpy(&f32, source, sizeof(f32));
      value.f64 = shortest(f32);
      break;
    case SG_PARAM_POINTER:
      READ(uintptr_t, address);
      if (value.address == 0) break;
      value.region = sg__dump_find_region(dump, value.address);
      if (value.region == NULL) break;
      value.offset_bytes = value.address - value.region->base;
      break;
  }
  return value;
}

void sg__dump_value_text(const sg__dump_value_t* value,
                         char out_text[SG__DUMP_TEXT_BYTES]) {
  switch (value->type) {
    case SG_PARAM_I32:
    case SG_PARAM_I64:
      snprintf(out_text, SG__DUMP_TEXT_BYTES, "%" PRId64, value->i64);
      return;
    case SG_PARAM_U32:
    case SG_PARAM_U64:
      snprintf(out_text, SG__DUMP_TEXT_BYTES, "%" PRIu64, value->u64);
      return;
    case SG_PARAM_F32:
      snprintf(out_text, SG__DUMP_TEXT_BYTES, "%.9g", value->f64);
      return;
    case SG_PARAM_POINTER:
      break;
  }
  if (value->address == 0) {
    snprintf(out_text, SG__DUMP_TEXT_BYTES, "null");
  } else if (value->region == NULL) {
    snprintf(out_text, SG__DUMP_TEXT_BYTES, "unknown");
  } else {
    snprintf(out_text, SG__DUMP_TEXT_BYTES, "%s+%zu", value->region->name,
             value->offset_bytes);
  }
}

sg_status_t sg__dump_finish(FILE* file) {
  errno = 0;
  if (fflush(file) == 0 && !ferror(file)) return sg_status_ok();
  return sg_status_make(SG_STATUS_IO, "dump: %s",
                        errno != 0 ? strerror(errno) : "write error");
}
