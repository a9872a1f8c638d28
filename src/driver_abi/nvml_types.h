// Every type that a row of nvml_entry_points.def mentions: the one header for its includers.
//
// Structs that nobody here reads stay without a body; who needs to read one gives it its true
// layout in one of the struct headers. Values; no thread rules.
#pragma once

#include "driver_abi/nvml_constants.h"
#include "driver_abi/nvml_device_structs.h"
#include "driver_abi/nvml_instance_structs.h"
#include "driver_abi/nvml_scalars.h"
#include "driver_abi/nvml_structs.h"

extern "C" {

// Passed on by pointer, never read.
struct NvmlUnread;
typedef struct NvmlUnread nvmlActiveVgpuInstanceInfo_t, nvmlAdaptiveTgpModeInfo_v1_t,
    nvmlBBXTimeData_v1_t, nvmlConfComputeGetKeyRotationThresholdInfo_t,
    nvmlConfComputeGpuAttestationReport_t, nvmlConfComputeGpuCertificate_t,
    nvmlConfComputeSetKeyRotationThresholdInfo_t, nvmlDevicePowerMizerModes_v1_t,
    nvmlDramEncryptionInfo_t, nvmlEccBankRemapperStatus_v1_t,
    nvmlEccSramUniqueUncorrectedErrorCounts_t, nvmlEventSetGetContextCount_v1_t,
    nvmlEventSetGetContextData_v1_t, nvmlEventSetGetContextInfo_v1_t,
    nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t, nvmlEventSetWait_v3_t,
    nvmlGetCPER_v1_t, nvmlGetMemoryLimits_v1_t, nvmlGpuFabricInfo_v4_t,
    nvmlGpuOperationalEventConfig_v1_t, nvmlGpuUptime_v1_t, nvmlGridLicensableFeatures_t,
    nvmlHostname_v1_t, nvmlLedState_t, nvmlNvLinkInfo_t, nvmlNvLinkInfo_v3_t,
    nvmlNvLinkPowerThres_t, nvmlNvlinkGetRemapTableInfo_v1_t, nvmlNvlinkLockRemapTable_v1_t,
    nvmlNvlinkNvlePrivateInfo_v1_t, nvmlNvlinkSetBwModeAsync_v1_t, nvmlNvlinkSetBwMode_t,
    nvmlNvlinkSetNvleReady_v1_t, nvmlNvlinkSetupNvleEncryptionKey_v1_t,
    nvmlNvlinkTelemetrySamples_v1_t, nvmlPRMCounterList_v1_t, nvmlPRMTLV_v1_t, nvmlPSUInfo_t,
    nvmlPerfMetricsSamples_v1_t, nvmlPowerSmoothingProfile_t, nvmlPowerSmoothingState_t,
    nvmlRusdSettings_v1_t, nvmlSetMemoryLimits_v1_t, nvmlSystemConfComputeSettings_v2_t,
    nvmlSystemEventSetCreateRequest_t, nvmlSystemEventSetFreeRequest_t,
    nvmlSystemEventSetWaitRequest_t, nvmlSystemRegisterEventRequest_t, nvmlUnitFanSpeeds_t,
    nvmlUnitInfo_t, nvmlUnrepairableMemoryStatus_v1_t, nvmlVgpuCreatablePlacementInfo_t,
    nvmlVgpuHeterogeneousMode_t, nvmlVgpuInstanceUtilizationSample_t,
    nvmlVgpuInstancesUtilizationInfo_t, nvmlVgpuLicenseInfo_t, nvmlVgpuMetadata_t,
    nvmlVgpuPgpuCompatibility_t, nvmlVgpuPgpuMetadata_t, nvmlVgpuPlacementId_t,
    nvmlVgpuPlacementList_t, nvmlVgpuProcessUtilizationSample_t, nvmlVgpuProcessesUtilizationInfo_t,
    nvmlVgpuRuntimeState_t, nvmlVgpuSchedulerCapabilities_t, nvmlVgpuSchedulerGetState_t,
    nvmlVgpuSchedulerLogInfo_t, nvmlVgpuSchedulerLogInfo_v2_t, nvmlVgpuSchedulerLog_t,
    nvmlVgpuSchedulerSetState_t, nvmlVgpuSchedulerStateInfo_t, nvmlVgpuSchedulerStateInfo_v2_t,
    nvmlVgpuSchedulerState_t, nvmlVgpuSchedulerState_v2_t, nvmlVgpuTypeBar1Info_t,
    nvmlVgpuTypeIdInfo_t, nvmlVgpuTypeMaxInstance_t, nvmlVgpuVersion_t,
    nvmlWorkloadPowerProfileCurrentProfiles_t, nvmlWorkloadPowerProfileProfilesInfo_t,
    nvmlWorkloadPowerProfileRequestedProfiles_t, nvmlWorkloadPowerProfileUpdateProfiles_v1_t;

}  // extern "C"
