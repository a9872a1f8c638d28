// Every type that a row of cuda_entry_points.def mentions: the one header for its includers.
//
// Structs that nobody here reads stay without a body; who needs to read one gives it its true
// layout in cuda_structs.h. Values; no thread rules.
#pragma once

#include "driver_abi/cuda_constants.h"
#include "driver_abi/cuda_scalars.h"
#include "driver_abi/cuda_structs.h"

extern "C" {

// Passed on by pointer, never read.
struct CudaUnread;
typedef struct CudaUnread CUDA_FABRIC_COPY_BATCH_OP, CU_DEV_SM_RESOURCE_GROUP_PARAMS,
    CUcheckpointCheckpointArgs, CUcheckpointLockArgs, CUcheckpointRestoreArgs,
    CUcheckpointUnlockArgs, CUcliqueInfo, CUlogicalEndpointProp, CUstreamCigCaptureParams;

}  // extern "C"
