// SPDX-License-Identifier: Apache-2.0
//
// Feeds one text to every reader. For libFuzzer:
//   clang -fsanitize=fuzzer,address,undefined -I. tests/schemas/fuzz_readers.c
//     schemas/*.c runtime/base/*.c <the generated sg_bundled_*.c> -ljansson -lm
// Without libFuzzer, test_fuzz_regression.c feeds it all files of the tests.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "schemas/batches.h"
#include "schemas/model.h"
#include "schemas/requests.h"
#include "schemas/shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

// Every reader either reads or says why not; nothing else may come back.
static void require(sg_status_t status) {
  if (sg_status_is_ok(status) != (status.message[0] == '\0')) abort();
  if (!sg_status_is_ok(status) && status.code != SG_STATUS_INVALID_DATA) {
    abort();
  }
}

static void read_batches(sg_allocator_t allocator, const char* text,
                         size_t bytes) {
  sg_batch_reader_t* reader;
  sg_status_t status =
      sg_batch_reader_open_text(allocator, text, bytes, "fuzz", &reader);
  require(status);
  bool end = false;
  while (!end) {
    sg_batch_line_t batch;
    require(sg_batch_reader_next(reader, &batch, &end));
  }
  sg_batch_reader_destroy(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const sg_allocator_t allocator = sg_allocator_system();
  const char* text = (const char*)data;
  sg_model_t model;
  require(sg_model_parse(allocator, text, bytes, "fuzz", &model));
  sg_model_deinitialize(&model);
  sg_shapes_t shapes;
  require(sg_shapes_parse(allocator, text, bytes, "fuzz", &shapes));
  sg_shapes_deinitialize(&shapes);
  sg_requests_t requests;
  require(sg_requests_parse(allocator, text, bytes, "fuzz", 0, &requests));
  sg_requests_deinitialize(&requests);
  read_batches(allocator, text, bytes);
  return 0;
}
