// The CUDA driver's handles, enumerations (as plain integers) and callbacks.
//
// Clean-room: names and numbers of the interface, none of NVIDIA's text; sizes and signatures are
// compared with NVIDIA's headers by tests/driver_abi_headers_check.py. Values; no thread rules.
// Struct layouts are in cuda_structs.h, numbers in cuda_constants.h; include cuda_types.h.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

typedef int CUresult;
typedef int CUdevice;
typedef unsigned int CUdeviceptr_v1;  // calls older than CUDA 3.2
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle, CUsurfObject, CUtexObject;
typedef uint64_t CUgraphConditionalHandle;
typedef unsigned int CUlogIterator, CUlogicalEndpointId;

// Opaque handles: each its own type, so that a stream is never taken for an event.
typedef struct CUarray_st* CUarray;
typedef struct CUasyncCallbackEntry_st* CUasyncCallbackHandle;
typedef struct CUIcheckpointOperation_st* CUcheckpointOperationHandle;
typedef struct CUctx_st* CUcontext;
typedef struct CUcoredumpCallbackEntry_st* CUcoredumpCallbackHandle;
typedef struct CUdevResourceDesc_st* CUdevResourceDesc;
typedef struct CUeglStreamConnection_st* CUeglStreamConnection;
typedef struct CUevent_st* CUevent;
typedef struct CUextMemory_st* CUexternalMemory;
typedef struct CUextSemaphore_st* CUexternalSemaphore;
typedef struct CUfunc_st* CUfunction;
typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;
typedef struct CUgraphNode_st* CUgraphNode;
typedef struct CUgraphicsResource_st* CUgraphicsResource;
typedef struct CUgreenCtx_st* CUgreenCtx;
typedef struct CUkern_st* CUkernel;
typedef struct CUlib_st* CUlibrary;
typedef struct CUlinkState_st* CUlinkState;
typedef struct CUlogsCallbackEntry_st* CUlogsCallbackHandle;
typedef struct CUmemPoolHandle_st* CUmemoryPool;
typedef struct CUmipmappedArray_st* CUmipmappedArray;
typedef struct CUmod_st* CUmodule;
typedef struct CUstream_st* CUstream;
typedef struct CUsurfref_st* CUsurfref;
typedef struct CUtexref_st* CUtexref;
typedef struct CUuserObject_st* CUuserObject;

// Enumerations travel as int in the C ABI of every platform we serve.
typedef int CUGLDeviceList, CUaddress_mode, CUarray_format, CUatomicOperation, CUcoredumpSettings,
    CUdevResourceType, CUdevice_P2PAttribute, CUdevice_attribute, CUdriverProcAddressQueryResult,
    CUexecAffinityType, CUfilter_mode, CUflushGPUDirectRDMAWritesScope,
    CUflushGPUDirectRDMAWritesTarget, CUfunc_cache, CUfunctionLoadingState, CUfunction_attribute,
    CUgraphExecUpdateResult, CUgraphMem_attribute, CUgraphNodeType, CUjitInputType, CUjit_option,
    CUkernelNodeAttrID, CUlibraryOption, CUlimit, CUlogicalEndpointIpcHandleType, CUmemAccess_flags,
    CUmemAllocationGranularity_flags, CUmemAllocationHandleType, CUmemAllocationType,
    CUmemPool_attribute, CUmemRangeHandleType, CUmem_advise, CUmem_range_attribute,
    CUmoduleLoadingMode, CUmulticastGranularity_flags, CUoutput_mode, CUpointer_attribute,
    CUprocessState, CUsharedconfig, CUstreamAttrID, CUstreamCaptureMode, CUstreamCaptureStatus,
    CUtensorMapAllocClass, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode,
    CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapSwizzle;

typedef void (*CUhostFn)(void* user_data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void* user_data);
typedef size_t (*CUoccupancyB2DSize)(int block_size);
typedef void (*CUcoredumpStatusCallback)(void* user_data, int pid, CUdevice device);
typedef void (*CUlogsCallback)(void* user_data, int level, char* message, size_t length);
typedef void (*CUasyncCallback)(void* info, void* user_data, CUasyncCallbackHandle handle);
typedef CUresult (*CUgraphRecaptureCallback)(void* user_data, CUgraphNode node, const void* before,
                                             const void* after, int status);

}  // extern "C"
