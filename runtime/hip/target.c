// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip/target.h"

#include <string.h>

#include "runtime/hip/error.h"
#include "runtime/hip/hip.h"

// Wave size, compute units and shared memory: AMD's CDNA2, CDNA3 and CDNA4
// instruction set documents and NVIDIA's Hopper tuning guide. The host's block
// scratch is what runtime/hip_host gives each worker.
static const sg_target_t targets[] = {
    {.name = "host",
     .flavour = SG_FLAVOUR_HOST,
     .wave_size = 1,
     .compute_units = 1,
     .max_threads_per_block = 1024,
     .shared_bytes_per_block = (size_t)1 << 20},
    {.name = "gfx90a",
     .flavour = SG_FLAVOUR_AMD,
     .wave_size = 64,
     .compute_units = 104,
     .max_threads_per_block = 1024,
     .shared_bytes_per_block = 64 * 1024},
    {.name = "gfx942",
     .flavour = SG_FLAVOUR_AMD,
     .wave_size = 64,
     .compute_units = 304,
     .max_threads_per_block = 1024,
     .shared_bytes_per_block = 64 * 1024},
    {.name = "gfx950",
     .flavour = SG_FLAVOUR_AMD,
     .wave_size = 64,
     .compute_units = 256,
     .max_threads_per_block = 1024,
     .shared_bytes_per_block = 160 * 1024},
    {.name = "sm_90a",
     .flavour = SG_FLAVOUR_NVIDIA,
     .wave_size = 32,
     .compute_units = 132,
     .max_threads_per_block = 1024,
     .shared_bytes_per_block = 227 * 1024},
};

const char* sg_flavour_name(sg_flavour_t flavour) {
  switch (flavour) {
    case SG_FLAVOUR_HOST:
      return "host";
    case SG_FLAVOUR_AMD:
      return "amd";
    case SG_FLAVOUR_NVIDIA:
      return "nvidia";
  }
  return "unknown";
}

sg_flavour_t sg_flavour_of_build(void) {
#if defined(SG_FLAVOUR_IS_NVIDIA)
  return SG_FLAVOUR_NVIDIA;
#elif defined(SG_FLAVOUR_IS_AMD)
  return SG_FLAVOUR_AMD;
#else
  return SG_FLAVOUR_HOST;
#endif
}

const sg_target_t* sg_target_list(size_t* out_count) {
  *out_count = sizeof(targets) / sizeof(targets[0]);
  return targets;
}

sg_status_t sg_target_find(const char* name, const sg_target_t** out_target) {
  *out_target = NULL;
  for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); ++i) {
    if (strcmp(targets[i].name, name) == 0) {
      *out_target = &targets[i];
      return sg_status_ok();
    }
  }
  return sg_status_make(SG_STATUS_NOT_FOUND,
                        "target '%s': expected host, gfx90a, gfx942, gfx950 "
                        "or sm_90a",
                        name);
}

sg_status_t sg_target_of_device(int device, const sg_target_t** out_target) {
  *out_target = NULL;
  hipDeviceProp_t properties;
  SG_RETURN_IF_HIP_ERROR(hipGetDeviceProperties, &properties, device);
#if defined(SG_FLAVOUR_IS_NVIDIA)
  // CUDA has no architecture name; kernels are built for 9.0 alone.
  if (properties.major == 9 && properties.minor == 0) {
    return sg_target_find("sm_90a", out_target);
  }
  return sg_status_make(SG_STATUS_UNSUPPORTED,
                        "device %d (%s): compute capability %d.%d, kernels "
                        "are built for 9.0",
                        device, properties.name, properties.major,
                        properties.minor);
#else
  // AMD appends feature flags, as in "gfx942:sramecc+:xnack-".
  char name[sizeof(properties.gcnArchName) + 1];
  size_t length = strcspn(properties.gcnArchName, ":");
  memcpy(name, properties.gcnArchName, length);
  name[length] = '\0';
  sg_status_t status = sg_target_find(name, out_target);
  if (sg_status_is_ok(status)) return status;
  return sg_status_make(SG_STATUS_UNSUPPORTED,
                        "device %d (%s): architecture '%s' has no kernels",
                        device, properties.name, name);
#endif
}
