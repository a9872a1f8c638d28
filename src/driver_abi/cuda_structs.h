// CUDA driver structs whose fields the guards or the simulated driver read: their true layout.
//
// Our own declarations with our own field names; sizes stand in the asserts at the end, and
// tests/driver_abi_headers_check.py compares sizes and offsets with NVIDIA's headers. Copies,
// launches and graphs are in cuda_launch_structs.h and cuda_graph_structs.h. Values; no thread
// rules.
#pragma once

#include "driver_abi/cuda_graph_structs.h"
#include "driver_abi/cuda_launch_structs.h"
#include "driver_abi/cuda_scalars.h"

extern "C" {

struct CUuuid {
  char bytes[16];
};
struct CUipcMemHandle {
  char reserved[64];
};
struct CUipcEventHandle {
  char reserved[64];
};
struct CUdevprop {
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3], shared_mem_per_block;
  int total_constant_memory, simd_width, mem_pitch, regs_per_block, clock_rate, texture_align;
};
struct CUexecAffinityParam {
  CUexecAffinityType type;
  unsigned int sm_count;
};
struct CUctxCreateParams {
  CUexecAffinityParam* exec_affinity_params;
  int num_exec_affinity_params;
  void* cig_params;
};
// Since 12.4; the union holds an SM partition or words of the driver's own.
struct CUdevResource {
  CUdevResourceType type;
  unsigned char internal[92];
  union {
    struct {
      unsigned int sm_count, min_partition_size, coscheduled_alignment, flags;
    } sm;
    unsigned char external[48];
  };
};

struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requested_handle_types;
  CUmemLocation location;
  void* win32_handle_metadata;
  struct {
    unsigned char compression_type, gpu_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};
struct CUmulticastObjectProp {
  unsigned int num_devices;
  size_t bytes;
  unsigned long long handle_types, flags;
};
struct CUmemPoolPtrExportData {
  unsigned char reserved[64];
};

struct CUDA_ARRAY_DESCRIPTOR_v1 {
  unsigned int width, height;
  CUarray_format format;
  unsigned int channels;
};
struct CUDA_ARRAY_DESCRIPTOR {
  size_t width, height;
  CUarray_format format;
  unsigned int channels;
};
struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
  unsigned int width, height, depth;
  CUarray_format format;
  unsigned int channels, flags;
};
struct CUDA_ARRAY3D_DESCRIPTOR {
  size_t width, height, depth;
  CUarray_format format;
  unsigned int channels, flags;
};
struct CUDA_ARRAY_MEMORY_REQUIREMENTS {
  size_t bytes, alignment;
  unsigned int reserved[4];
};
struct CUDA_ARRAY_SPARSE_PROPERTIES {
  unsigned int tile_width, tile_height, tile_depth, miptail_first_level;
  unsigned long long miptail_bytes;
  unsigned int flags, reserved[4];
};
struct CUarrayMapInfo {
  int resource_type;
  union {
    CUmipmappedArray mipmap;
    CUarray array;
  };
  int subresource_type;
  union {
    struct {
      unsigned int level, layer, offset_x, offset_y, offset_z, width, height, depth;
    } sparse_level;
    struct {
      unsigned int layer;
      unsigned long long offset, bytes;
    } miptail;
  };
  int operation, handle_type;
  CUmemGenericAllocationHandle handle;
  unsigned long long offset;
  unsigned int device_bit_mask, flags, reserved[2];
};

struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
  int type;
  union {
    int fd;
    struct {
      void* handle;
      const void* name;
    } win32;
    const void* nv_sci_object;
  };
  unsigned long long bytes;
  unsigned int flags, reserved[16];
};
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
  unsigned long long offset, bytes;
  unsigned int flags, reserved[16];
};
struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
  unsigned long long offset;
  CUDA_ARRAY3D_DESCRIPTOR array;
  unsigned int levels, reserved[16];
};
struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
  int type;
  union {
    int fd;
    struct {
      void* handle;
      const void* name;
    } win32;
    const void* nv_sci_object;
  };
  unsigned int flags, reserved[16];
};

// Textures and surfaces are made from these; only the array or range behind them is of interest.
struct CUDA_RESOURCE_DESC {
  int type;
  union {
    CUarray array;
    CUmipmappedArray mipmap;
    struct {
      CUdeviceptr address;
      CUarray_format format;
      unsigned int channels;
      size_t bytes;
    } linear;
    struct {
      CUdeviceptr address;
      CUarray_format format;
      unsigned int channels;
      size_t width, height, pitch_bytes;
    } pitch;
    int reserved[32];
  };
  unsigned int flags;
};
struct CUDA_TEXTURE_DESC {
  CUaddress_mode address_mode[3];
  CUfilter_mode filter_mode;
  unsigned int flags, max_anisotropy;
  CUfilter_mode mipmap_filter_mode;
  float mipmap_level_bias, min_mipmap_level, max_mipmap_level, border_color[4];
  int reserved[12];
};
struct CUDA_RESOURCE_VIEW_DESC {
  int format;
  size_t width, height, depth;
  unsigned int first_level, last_level, first_layer, last_layer, reserved[16];
};
struct CUtensorMap {
  alignas(64) uint64_t opaque[16];
};
struct CUeglFrame {
  void* planes[3];
  unsigned int width, height, depth, pitch, plane_count, channels;
  int frame_type, color_format;
  CUarray_format format;
};

}  // extern "C"

static_assert(sizeof(CUuuid) == 16 && sizeof(CUipcMemHandle) == 64 &&
              sizeof(CUipcEventHandle) == 64 && sizeof(CUdevprop) == 56);
static_assert(sizeof(CUexecAffinityParam) == 8 && sizeof(CUctxCreateParams) == 24 &&
              sizeof(CUdevResource) == 144);
static_assert(sizeof(CUmemAllocationProp) == 32 && sizeof(CUmulticastObjectProp) == 32 &&
              sizeof(CUmemPoolPtrExportData) == 64);
static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR_v1) == 16 && sizeof(CUDA_ARRAY_DESCRIPTOR) == 24 &&
              sizeof(CUDA_ARRAY3D_DESCRIPTOR_v1) == 24 && sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40);
static_assert(sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == 32 &&
              sizeof(CUDA_ARRAY_SPARSE_PROPERTIES) == 48 && sizeof(CUarrayMapInfo) == 96);
static_assert(sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC) == 104 &&
              sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC) == 88 &&
              sizeof(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC) == 120 &&
              sizeof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) == 96);
static_assert(sizeof(CUDA_RESOURCE_DESC) == 144 && sizeof(CUDA_TEXTURE_DESC) == 104 &&
              sizeof(CUDA_RESOURCE_VIEW_DESC) == 112 && sizeof(CUtensorMap) == 128 &&
              sizeof(CUeglFrame) == 64);
