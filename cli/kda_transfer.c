// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "cli/kda_run_internal.h"
#include "kernels/short_conv/short_conv.h"
#include "runtime/hip/error.h"

static sg_status_t allocate(size_t count, size_t element_bytes,
                            unsigned char** out_pointer) {
  void* memory;
  SG_RETURN_IF_ERROR(
      sg_allocate(sg_allocator_system(), "kda", count, element_bytes, &memory));
  *out_pointer = memory;
  return sg_status_ok();
}

static const sg_buffer_spec_t* spec_of(const sg_kda_run_t* r,
                                       sg_kda_buffer_t buffer) {
  const int32_t index = sg_kda_step_buffer(r->session->step, 0, buffer);
  return index < 0 ? NULL : &r->session->program->buffers[index];
}

static unsigned char* address_of(const sg_kda_run_t* r,
                                 sg_kda_buffer_t buffer) {
  return r->session->bindings[sg_kda_step_buffer(r->session->step, 0, buffer)]
      .address;
}

static sg_status_t copy_in(const sg_kda_run_t* r, void* device,
                           const void* host, size_t bytes) {
  if (bytes == 0) return sg_status_ok();
  return sg_status_from_hip(
      hipMemcpyAsync(device, host, bytes, hipMemcpyHostToDevice,
                     r->session->stream),
      "hipMemcpyAsync");
}

static sg_status_t copy_out(const sg_kda_run_t* r, void* host,
                            const void* device, size_t bytes) {
  if (bytes == 0) return sg_status_ok();
  return sg_status_from_hip(
      hipMemcpyAsync(host, device, bytes, hipMemcpyDeviceToHost,
                     r->session->stream),
      "hipMemcpyAsync");
}

static const unsigned char* data_of(const sg_kda_run_t* r,
                                    sg_kda_case_tensor_t t) {
  const sg_tensor_t* tensor = r->kda_case->tensors[t];
  return tensor == NULL ? NULL : tensor->data;
}

// --- Into the device ---

// All bits of a NaN, in every floating-point type.
static sg_status_t poison_buffers(const sg_kda_run_t* r) {
  for (size_t i = 0; i < r->session->program->buffer_count; ++i) {
    SG_RETURN_IF_HIP_ERROR(hipMemsetAsync, r->session->bindings[i].address,
                           0xff, r->session->program->buffers[i].bytes,
                           r->session->stream);
  }
  return sg_status_ok();
}

// A weight that the case does not have is 0.
static sg_status_t load_weights(const sg_kda_run_t* r) {
  static const struct {
    sg_kda_buffer_t buffer;
    sg_kda_case_tensor_t tensor;
  } weights[] = {{SG_KDA_BUFFER_A_LOG, SG_KDA_CASE_A_LOG},
                 {SG_KDA_BUFFER_DT_BIAS, SG_KDA_CASE_DT_BIAS},
                 {SG_KDA_BUFFER_CONV_WEIGHT, SG_KDA_CASE_CONV_WEIGHT},
                 {SG_KDA_BUFFER_NORM_WEIGHT, SG_KDA_CASE_NORM_WEIGHT}};
  for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); ++i) {
    const sg_buffer_spec_t* spec = spec_of(r, weights[i].buffer);
    if (spec == NULL) continue;
    void* device = address_of(r, weights[i].buffer);
    const void* data = data_of(r, weights[i].tensor);
    if (data != NULL) {
      SG_RETURN_IF_ERROR(copy_in(r, device, data, spec->bytes));
    } else {
      SG_RETURN_IF_HIP_ERROR(hipMemsetAsync, device, 0, spec->bytes,
                             r->session->stream);
    }
  }
  return sg_status_ok();
}

// Puts what the sequences bring along into their slots.
static sg_status_t load_pool(const sg_kda_run_t* r, sg_kda_buffer_t buffer,
                             sg_kda_case_tensor_t tensor) {
  const sg_buffer_spec_t* spec = spec_of(r, buffer);
  const unsigned char* data = data_of(r, tensor);
  if (spec == NULL || data == NULL) return sg_status_ok();
  for (int32_t n = 0; n < r->kda_case->sequence_count; ++n) {
    const int32_t slot = r->kda_case->slots[n];
    if (slot < 0) continue;
    SG_RETURN_IF_ERROR(
        copy_in(r, address_of(r, buffer) + (size_t)slot * spec->stride_bytes,
                data + (size_t)n * spec->row_bytes, spec->row_bytes));
  }
  return sg_status_ok();
}

static sg_status_t pack_qkv(sg_kda_run_t* r) {
  if (!r->kda_case->has_conv) return sg_status_ok();
  const sg_kda_geometry_t* g = &r->session->model.geometry;
  const size_t element = sg_dtype_bytes(g->activation_dtype);
  const size_t keys = element * (size_t)g->heads * (size_t)g->key_dim;
  const size_t row = element * (size_t)sg_short_conv_channels(g);
  const size_t values = row - 2 * keys;
  const size_t tokens = (size_t)r->kda_case->token_count;
  SG_RETURN_IF_ERROR(allocate(tokens, row, &r->qkv));
  for (size_t t = 0; t < tokens; ++t) {
    unsigned char* packed = r->qkv + t * row;
    memcpy(packed, data_of(r, SG_KDA_CASE_Q) + t * keys, keys);
    memcpy(packed + keys, data_of(r, SG_KDA_CASE_K) + t * keys, keys);
    memcpy(packed + 2 * keys, data_of(r, SG_KDA_CASE_V) + t * values, values);
  }
  return sg_status_ok();
}

sg_status_t sg__kda_load(sg_kda_run_t* r) {
  SG_RETURN_IF_ERROR(poison_buffers(r));
  SG_RETURN_IF_ERROR(load_weights(r));
  SG_RETURN_IF_ERROR(
      load_pool(r, SG_KDA_BUFFER_STATE, SG_KDA_CASE_INITIAL_STATE));
  SG_RETURN_IF_ERROR(
      load_pool(r, SG_KDA_BUFFER_CONV_CACHE, SG_KDA_CASE_CONV_CACHE));
  return pack_qkv(r);
}

// Where the tokens of |part| stand in the case.
static size_t row_of(const sg_kda_run_t* r, const sg_kda_part_t* part) {
  return (size_t)r->kda_case->starts[part->sequence] +
         (size_t)part->first_token;
}

// Copies the rows of the step's tokens, of an input to the device, or of an
// output from it.
static sg_status_t copy_rows(const sg_kda_run_t* r, const sg_batch_t* batch,
                             sg_kda_buffer_t buffer, const unsigned char* in,
                             unsigned char* out) {
  const sg_buffer_spec_t* spec = spec_of(r, buffer);
  if (spec == NULL) return sg_status_ok();
  unsigned char* device = address_of(r, buffer);
  for (int32_t i = 0; i < batch->sequence_count; ++i) {
    const size_t offset = row_of(r, &r->parts[i]) * spec->row_bytes;
    const size_t bytes = (size_t)batch->query_lens[i] * spec->row_bytes;
    SG_RETURN_IF_ERROR(in != NULL ? copy_in(r, device, in + offset, bytes)
                                  : copy_out(r, out + offset, device, bytes));
    device += bytes;
  }
  return sg_status_ok();
}

sg_status_t sg__kda_load_inputs(const sg_kda_run_t* r,
                                const sg_batch_t* batch) {
  const struct {
    sg_kda_buffer_t buffer;
    const unsigned char* rows;
  } inputs[] = {
      {SG_KDA_BUFFER_Q, data_of(r, SG_KDA_CASE_Q)},
      {SG_KDA_BUFFER_K, data_of(r, SG_KDA_CASE_K)},
      {SG_KDA_BUFFER_V, data_of(r, SG_KDA_CASE_V)},
      {SG_KDA_BUFFER_QKV, r->qkv},
      {SG_KDA_BUFFER_RAW_G, data_of(r, SG_KDA_CASE_RAW_G)},
      {SG_KDA_BUFFER_RAW_BETA, data_of(r, SG_KDA_CASE_RAW_BETA)},
      {SG_KDA_BUFFER_OUTPUT_GATE, data_of(r, SG_KDA_CASE_OUTPUT_GATE)},
  };
  for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); ++i) {
    SG_RETURN_IF_ERROR(
        copy_rows(r, batch, inputs[i].buffer, inputs[i].rows, NULL));
  }
  return sg_status_ok();
}

sg_status_t sg__kda_fetch_output(const sg_kda_run_t* r,
                                 const sg_batch_t* batch) {
  return copy_rows(r, batch, SG_KDA_BUFFER_O, NULL, r->result->o);
}

// --- Out of the device ---

sg_status_t sg__kda_make_result(const sg_kda_run_t* r) {
  const sg_kda_case_t* c = r->kda_case;
  const size_t sequences = (size_t)c->sequence_count;
  const struct {
    sg_kda_buffer_t buffer;
    size_t rows;
    void** out;
  } parts[] = {
      {SG_KDA_BUFFER_O, (size_t)c->token_count, &r->result->o},
      {SG_KDA_BUFFER_STATE, sequences, &r->result->final_state},
      {SG_KDA_BUFFER_CONV_CACHE, sequences, &r->result->conv_cache},
  };
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    const sg_buffer_spec_t* spec = spec_of(r, parts[i].buffer);
    if (spec == NULL) continue;
    unsigned char* memory;
    SG_RETURN_IF_ERROR(allocate(parts[i].rows, spec->row_bytes, &memory));
    *parts[i].out = memory;
  }
  return sg_status_ok();
}

// What each sequence leaves behind. Where it has no slot, or was empty and
// brought nothing along, that is what it brought along, or 0.
static sg_status_t fetch_pool(const sg_kda_run_t* r, sg_kda_buffer_t buffer,
                              sg_kda_case_tensor_t tensor,
                              unsigned char* result) {
  const sg_buffer_spec_t* spec = spec_of(r, buffer);
  const sg_kda_case_t* c = r->kda_case;
  const unsigned char* initial = data_of(r, tensor);
  if (spec == NULL) return sg_status_ok();
  for (int32_t n = 0; n < c->sequence_count; ++n) {
    const size_t offset = (size_t)n * spec->row_bytes;
    const bool is_empty = c->starts[n] == c->starts[n + 1];
    if (c->slots[n] >= 0 && (initial != NULL || !is_empty)) {
      const unsigned char* slot =
          address_of(r, buffer) + (size_t)c->slots[n] * spec->stride_bytes;
      SG_RETURN_IF_ERROR(copy_out(r, result + offset, slot, spec->row_bytes));
    } else if (initial != NULL) {
      memcpy(result + offset, initial + offset, spec->row_bytes);
    }
  }
  return sg_status_ok();
}

// Copies the first |bytes| bytes of the part of the arena called |name|. Waits.
static sg_status_t fetch_region(const sg_kda_run_t* r,
                                const sg_memory_region_t* regions,
                                size_t region_count, const char* name,
                                void* out_data, size_t bytes) {
  for (size_t i = 0; i < region_count; ++i) {
    if (strcmp(regions[i].name, name) != 0) continue;
    SG_RETURN_IF_ERROR(
        copy_out(r, out_data, (const void*)regions[i].base, bytes));
    return sg_status_from_hip(hipStreamSynchronize(r->session->stream),
                              "hipStreamSynchronize");
  }
  return sg_status_make(SG_STATUS_INTERNAL, "kda: no %s in the arena", name);
}

static sg_status_t fetch_tables(const sg_kda_run_t* r,
                                const sg_memory_region_t* regions,
                                size_t region_count) {
  sg_kda_result_t* result = r->result;
  const size_t offsets = (size_t)r->kda_case->sequence_count + 1;
  unsigned char* memory;
  SG_RETURN_IF_ERROR(allocate(offsets, sizeof(int64_t), &memory));
  result->chunk_offsets = (int64_t*)(void*)memory;
  SG_RETURN_IF_ERROR(fetch_region(r, regions, region_count, "chunk_offsets",
                                  memory, offsets * sizeof(int64_t)));
  result->chunk_count = result->chunk_offsets[offsets - 1];
  const size_t rows = (size_t)result->chunk_count;
  SG_RETURN_IF_ERROR(allocate(rows, 2 * sizeof(int32_t), &memory));
  result->chunk_indices = (int32_t*)(void*)memory;
  return fetch_region(r, regions, region_count, "chunk_indices", memory,
                      rows * 2 * sizeof(int32_t));
}

static sg_status_t find_tables(const sg_kda_run_t* r) {
  size_t count;
  sg_executor_regions(r->session->executor, 0, NULL, &count);
  unsigned char* memory;
  SG_RETURN_IF_ERROR(allocate(count, sizeof(sg_memory_region_t), &memory));
  sg_memory_region_t* regions = (sg_memory_region_t*)(void*)memory;
  sg_executor_regions(r->session->executor, count, regions, &count);
  sg_status_t status = fetch_tables(r, regions, count);
  sg_release(sg_allocator_system(), memory);
  return status;
}

sg_status_t sg__kda_fetch_result(const sg_kda_run_t* r) {
  SG_RETURN_IF_ERROR(fetch_pool(r, SG_KDA_BUFFER_STATE,
                                SG_KDA_CASE_INITIAL_STATE,
                                r->result->final_state));
  SG_RETURN_IF_ERROR(fetch_pool(r, SG_KDA_BUFFER_CONV_CACHE,
                                SG_KDA_CASE_CONV_CACHE, r->result->conv_cache));
  if (!r->options->recurrent) SG_RETURN_IF_ERROR(find_tables(r));
  return sg_status_from_hip(hipStreamSynchronize(r->session->stream),
                            "hipStreamSynchronize");
}
