// CUDA driver structs of copies, launches, pools and graph nodes: their true layout.
//
// The other half of cuda_structs.h, which says how these are checked. Values; no thread rules.
#pragma once

#include "driver_abi/cuda_scalars.h"

extern "C" {

struct CUmemLocation {
  int type, id;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};
struct CUmemPoolProps {
  CUmemAllocationType type;
  CUmemAllocationHandleType handle_types;
  CUmemLocation location;
  void* win32_security_attributes;
  size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};

struct CUDA_MEMCPY2D_v1 {
  unsigned int from_x_bytes, from_y;
  int from_type;
  const void* from_host;
  CUdeviceptr_v1 from_device;
  CUarray from_array;
  unsigned int from_pitch, to_x_bytes, to_y;
  int to_type;
  void* to_host;
  CUdeviceptr_v1 to_device;
  CUarray to_array;
  unsigned int to_pitch, width_bytes, height;
};
struct CUDA_MEMCPY2D {
  size_t from_x_bytes, from_y;
  int from_type;
  const void* from_host;
  CUdeviceptr from_device;
  CUarray from_array;
  size_t from_pitch, to_x_bytes, to_y;
  int to_type;
  void* to_host;
  CUdeviceptr to_device;
  CUarray to_array;
  size_t to_pitch, width_bytes, height;
};
struct CUDA_MEMCPY3D_v1 {
  unsigned int from_x_bytes, from_y, from_z, from_level;
  int from_type;
  const void* from_host;
  CUdeviceptr_v1 from_device;
  CUarray from_array;
  void* reserved0;
  unsigned int from_pitch, from_height, to_x_bytes, to_y, to_z, to_level;
  int to_type;
  void* to_host;
  CUdeviceptr_v1 to_device;
  CUarray to_array;
  void* reserved1;
  unsigned int to_pitch, to_height, width_bytes, height, depth;
};
struct CUDA_MEMCPY3D {
  size_t from_x_bytes, from_y, from_z, from_level;
  int from_type;
  const void* from_host;
  CUdeviceptr from_device;
  CUarray from_array;
  void* reserved0;
  size_t from_pitch, from_height, to_x_bytes, to_y, to_z, to_level;
  int to_type;
  void* to_host;
  CUdeviceptr to_device;
  CUarray to_array;
  void* reserved1;
  size_t to_pitch, to_height, width_bytes, height, depth;
};
struct CUDA_MEMCPY3D_PEER {
  size_t from_x_bytes, from_y, from_z, from_level;
  int from_type;
  const void* from_host;
  CUdeviceptr from_device;
  CUarray from_array;
  CUcontext from_context;
  size_t from_pitch, from_height, to_x_bytes, to_y, to_z, to_level;
  int to_type;
  void* to_host;
  CUdeviceptr to_device;
  CUarray to_array;
  CUcontext to_context;
  size_t to_pitch, to_height, width_bytes, height, depth;
};
struct CUmemcpyAttributes {
  int from_access_order;
  CUmemLocation from_hint, to_hint;
  unsigned int flags;
};
struct CUmemcpy3DOperand {
  int type;
  union {
    struct {
      CUdeviceptr address;
      size_t row_length, layer_height;
      CUmemLocation hint;
    } pointer;
    struct {
      CUarray array;
      size_t x, y, z;
    } array;
  };
};
struct CUDA_MEMCPY3D_BATCH_OP {
  CUmemcpy3DOperand from, to;
  size_t width, height, depth;
  int from_access_order;
  unsigned int flags;
};
struct CUmemDecompressParams {
  size_t from_bytes, to_bytes;
  uint32_t* to_actual_bytes;
  const void* from;
  void* to;
  int algorithm;
  unsigned char padding[20];
};

// One attribute of a launch, a stream or a kernel node. The value is read by its id.
union CUlaunchAttributeValue {
  char pad[64];
  int number;
  struct {
    unsigned int x, y, z;
  } cluster;
  struct {
    CUevent event;
    int flags, trigger;
  } event;
  struct {
    int updatable;
    void* node;
  } updatable;
};
typedef union CUlaunchAttributeValue CUkernelNodeAttrValue, CUstreamAttrValue;
struct CUlaunchAttribute {
  int id;
  char pad[4];
  CUlaunchAttributeValue value;
};
struct CUlaunchConfig {
  unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned int num_attributes;
};
struct CUDA_LAUNCH_PARAMS {
  CUfunction function;
  unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream stream;
  void** kernel_params;
};

}  // extern "C"

static_assert(sizeof(CUmemLocation) == 8 && sizeof(CUmemAccessDesc) == 12 &&
              sizeof(CUmemPoolProps) == 88);
static_assert(sizeof(CUDA_MEMCPY2D_v1) == 96 && sizeof(CUDA_MEMCPY2D) == 128 &&
              sizeof(CUDA_MEMCPY3D_v1) == 144 && sizeof(CUDA_MEMCPY3D) == 200 &&
              sizeof(CUDA_MEMCPY3D_PEER) == 200);
static_assert(sizeof(CUmemcpyAttributes) == 24 && sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112 &&
              sizeof(CUmemDecompressParams) == 64);
static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56 &&
              sizeof(CUDA_LAUNCH_PARAMS) == 56);
