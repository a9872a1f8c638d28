// NVML's handles and enumerations (as plain integers), and how its versioned structs say their
// version.
//
// Clean-room: names and numbers of the interface, none of NVIDIA's text; checked like the CUDA
// types (cuda_scalars.h). Values; no thread rules. Include nvml_types.h.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

typedef int nvmlReturn_t;

typedef struct nvmlComputeInstance_st* nvmlComputeInstance_t;
typedef struct nvmlDevice_st* nvmlDevice_t;
typedef struct nvmlEventSet_st* nvmlEventSet_t;
typedef struct nvmlGpmSample_st* nvmlGpmSample_t;
typedef struct nvmlGpuInstance_st* nvmlGpuInstance_t;
typedef struct nvmlUnit_st* nvmlUnit_t;

typedef unsigned int nvmlAffinityScope_t, nvmlBusType_t, nvmlDeviceArchitecture_t,
    nvmlFanControlPolicy_t, nvmlPowerSource_t, nvmlVgpuInstance_t, nvmlVgpuTypeId_t;

typedef int nvmlBrandType_t, nvmlClockId_t, nvmlClockType_t, nvmlComputeMode_t,
    nvmlDetachGpuState_t, nvmlDeviceVgpuCapability_t, nvmlDriverModel_t, nvmlEccCounterType_t,
    nvmlEnableState_t, nvmlEncoderType_t, nvmlGpuOperationMode_t, nvmlGpuP2PCapsIndex_t,
    nvmlGpuP2PStatus_t, nvmlGpuTopologyLevel_t, nvmlGpuVirtualizationMode_t, nvmlHostVgpuMode_t,
    nvmlInforomObject_t, nvmlIntNvLinkDeviceType_t, nvmlLedColor_t, nvmlMemoryErrorType_t,
    nvmlMemoryLocation_t, nvmlNvLinkCapability_t, nvmlNvLinkErrorCounter_t,
    nvmlPageRetirementCause_t, nvmlPcieLinkState_t, nvmlPcieUtilCounter_t, nvmlPerfPolicyType_t,
    nvmlPstates_t, nvmlRestrictedAPI_t, nvmlSamplingType_t, nvmlTemperatureSensors_t,
    nvmlTemperatureThresholds_t, nvmlValueType_t, nvmlVgpuCapability_t, nvmlVgpuDriverCapability_t,
    nvmlVgpuVmIdType_t, nvmlPowerScopeType_t;

}  // extern "C"

namespace aliquot::driver_abi {
// What the first field of a versioned NVML struct must say: its size, and its version above.
template <typename Struct>
constexpr unsigned int nvml_struct_version(unsigned int version) {
  return static_cast<unsigned int>(sizeof(Struct)) | (version << 24U);
}
}  // namespace aliquot::driver_abi
