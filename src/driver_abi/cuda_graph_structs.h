// CUDA driver structs of graphs, their nodes and stream memory operations: their true layout.
//
// A part of cuda_structs.h, which says how these are checked. Values; no thread rules.
#pragma once

#include "driver_abi/cuda_launch_structs.h"
#include "driver_abi/cuda_scalars.h"

extern "C" {

struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode error_node, error_from_node;
};
struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  uint64_t flags;
  CUstream upload_stream;
  CUgraphNode error_node;
  int result;
};
struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction function;
  unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void **kernel_params, **extra;
};
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction function;
  unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void **kernel_params, **extra;
  CUkernel kernel;
  CUcontext context;
};
struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr to;
  size_t pitch;
  unsigned int value, element_bytes;
  size_t width, height;
};
struct CUDA_HOST_NODE_PARAMS {
  CUhostFn function;
  void* user_data;
};
struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps pool;
  const CUmemAccessDesc* access;
  size_t num_access, bytes;
  CUdeviceptr address;  // written by the driver
};
struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
  unsigned long long fence_value, nv_sci_fence, keyed_mutex_key;
  unsigned int params_reserved[12], flags, reserved[16];
};
struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
  unsigned long long fence_value, nv_sci_fence;
  struct {
    unsigned long long key;
    unsigned int timeout_ms;
  } keyed_mutex;
  unsigned int params_reserved[10], flags, reserved[16];
};
struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
  CUexternalSemaphore* semaphores;
  const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* params;
  unsigned int count;
};
struct CUDA_EXT_SEM_WAIT_NODE_PARAMS {
  CUexternalSemaphore* semaphores;
  const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* params;
  unsigned int count;
};
union CUstreamBatchMemOpParams {
  int operation;
  struct {
    int operation;
    CUdeviceptr address;
    uint64_t value;  // 32-bit operations use its low half
    unsigned int flags;
    CUdeviceptr alias;
  } value;
  uint64_t pad[6];
};
struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
  CUcontext context;
  unsigned int count;
  CUstreamBatchMemOpParams* operations;
  unsigned int flags;
};

// What cuGraphAddNode takes; `type` says which member of the union holds.
struct CUgraphNodeParams {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    struct {
      int flags, reserved;
      CUcontext context;
      CUDA_MEMCPY3D copy;
    } memcpy;
    struct {
      CUDA_MEMSET_NODE_PARAMS set;
      CUcontext context;
    } memset;
    CUDA_HOST_NODE_PARAMS host;
    struct {
      CUgraph graph;
      int ownership;
    } child;
    CUevent event;  // wait and record nodes
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal;
    CUDA_EXT_SEM_WAIT_NODE_PARAMS wait;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUdeviceptr free_address;
    CUDA_BATCH_MEM_OP_NODE_PARAMS operations;
    struct {
      CUgraphConditionalHandle handle;
      int type;
      unsigned int count;
      CUgraph* graphs;  // written by the driver
      CUcontext context;
    } conditional;
  };
  long long reserved2;
};

}  // extern "C"

static_assert(sizeof(CUgraphEdgeData) == 8 && sizeof(CUgraphExecUpdateResultInfo) == 24 &&
              sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32);
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v1) == 56 && sizeof(CUDA_KERNEL_NODE_PARAMS) == 72 &&
              sizeof(CUDA_MEMSET_NODE_PARAMS) == 40 && sizeof(CUDA_HOST_NODE_PARAMS) == 16 &&
              sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120);
static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS) == 144 &&
              sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS) == 144 &&
              sizeof(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) == 24 &&
              sizeof(CUDA_EXT_SEM_WAIT_NODE_PARAMS) == 24);
static_assert(sizeof(CUstreamBatchMemOpParams) == 48 &&
              sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS) == 32 && sizeof(CUgraphNodeParams) == 256 &&
              offsetof(CUgraphNodeParams, reserved1) == 16);
