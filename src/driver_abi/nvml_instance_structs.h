// NVML structs about MIG: GPU and compute instances and their profiles: their true layout.
//
// A part of nvml_structs.h, which says how these are checked. Values; no thread rules.
#pragma once

#include "driver_abi/nvml_scalars.h"

extern "C" {

struct nvmlDeviceAttributes_t {
  unsigned int multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
  unsigned int gpu_slices, compute_slices;
  unsigned long long memory_mib;
};
struct nvmlGpuInstancePlacement_t {
  unsigned int start, size;
};
struct nvmlGpuInstanceProfileInfo_t {
  unsigned int id, p2p_supported, slices, instances, multiprocessors, copy_engines, decoders;
  unsigned int encoders, jpeg_engines, ofa_engines;
  unsigned long long memory_mib;
};
struct nvmlGpuInstanceProfileInfo_v2_t {
  unsigned int version;  // 2
  unsigned int id, p2p_supported, slices, instances, multiprocessors, copy_engines, decoders;
  unsigned int encoders, jpeg_engines, ofa_engines;
  unsigned long long memory_mib;
  char name[96];
};
struct nvmlGpuInstanceProfileInfo_v3_t {
  unsigned int version;  // 3
  unsigned int id, slices, instances, multiprocessors, copy_engines, decoders;
  unsigned int encoders, jpeg_engines, ofa_engines;
  unsigned long long memory_mib;
  char name[96];
  unsigned int capabilities;
};
struct nvmlGpuInstanceInfo_t {
  nvmlDevice_t device;
  unsigned int id, profile;
  nvmlGpuInstancePlacement_t placement;
};
struct nvmlComputeInstancePlacement_t {
  unsigned int start, size;
};
struct nvmlComputeInstanceProfileInfo_t {
  unsigned int id, slices, instances, multiprocessors, copy_engines, decoders, encoders;
  unsigned int jpeg_engines, ofa_engines;
};
struct nvmlComputeInstanceProfileInfo_v2_t {
  unsigned int version;  // 2
  unsigned int id, slices, instances, multiprocessors, copy_engines, decoders, encoders;
  unsigned int jpeg_engines, ofa_engines;
  char name[96];
};
struct nvmlComputeInstanceProfileInfo_v3_t {
  unsigned int version;  // 3
  unsigned int id, slices, instances, multiprocessors, copy_engines, decoders, encoders;
  unsigned int jpeg_engines, ofa_engines;
  char name[96];
  unsigned int capabilities;
};
struct nvmlComputeInstanceInfo_t {
  nvmlDevice_t device;
  nvmlGpuInstance_t gpu_instance;
  unsigned int id, profile;
  nvmlComputeInstancePlacement_t placement;
};

}  // extern "C"

static_assert(sizeof(nvmlDeviceAttributes_t) == 40 && sizeof(nvmlGpuInstancePlacement_t) == 8 &&
              sizeof(nvmlGpuInstanceProfileInfo_t) == 48 &&
              sizeof(nvmlGpuInstanceProfileInfo_v2_t) == 152 &&
              sizeof(nvmlGpuInstanceInfo_t) == 24);
static_assert(sizeof(nvmlComputeInstancePlacement_t) == 8 &&
              sizeof(nvmlComputeInstanceProfileInfo_t) == 36 &&
              sizeof(nvmlComputeInstanceProfileInfo_v2_t) == 136 &&
              sizeof(nvmlComputeInstanceInfo_t) == 32);
static_assert(sizeof(nvmlGpuInstanceProfileInfo_v3_t) == 152 &&
              sizeof(nvmlComputeInstanceProfileInfo_v3_t) == 140);
