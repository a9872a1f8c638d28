// NVML structs about links, clocks, power, temperature and the system: their true layout.
//
// A part of nvml_structs.h, which says how these are checked. Values; no thread rules.
#pragma once

#include "driver_abi/nvml_scalars.h"

extern "C" {

struct nvmlTemperature_t {
  unsigned int version;  // 1
  nvmlTemperatureSensors_t sensor;
  int celsius;
};
struct nvmlMarginTemperature_t {
  unsigned int version;  // 1
  int celsius;
};
struct nvmlGpuThermalSettings_t {
  unsigned int count;
  struct {
    int controller, default_min_celsius, default_max_celsius, celsius, target;
  } sensors[3];
};
struct nvmlCoolerInfo_t {
  unsigned int version;  // 1
  unsigned int index;
  int signal, target;
};
struct nvmlFanSpeedInfo_t {
  unsigned int version;  // 1
  unsigned int fan, rpm;
};
struct nvmlClockOffset_t {
  unsigned int version;  // 1
  nvmlClockType_t type;
  nvmlPstates_t pstate;
  int offset_mhz, min_mhz, max_mhz;
};
struct nvmlDevicePerfModes_t {
  unsigned int version;  // 1
  char text[2048];
};
struct nvmlDeviceCurrentClockFreqs_t {
  unsigned int version;  // 1
  char text[2048];
};
struct nvmlPowerValue_v2_t {
  unsigned int version;  // 2
  nvmlPowerScopeType_t scope;
  unsigned int milliwatts;
};
struct nvmlGpuDynamicPstatesInfo_t {
  unsigned int flags;
  struct {
    unsigned int present, percent, increase_threshold, decrease_threshold;
  } utilization[8];
};
struct nvmlClkMonStatus_t {
  unsigned int global_status, count;
  struct {
    unsigned int domain, fault_mask;
  } faults[32];
};

struct nvmlEccSramErrorStatus_t {
  unsigned int version;  // 1
  unsigned long long aggregate_parity, aggregate_sec_ded, aggregate_corrected;
  unsigned long long volatile_parity, volatile_sec_ded, volatile_corrected;
  unsigned long long bucket_l2, bucket_sm, bucket_pcie, bucket_mcu, bucket_other;
  unsigned int threshold_exceeded;
};
struct nvmlRowRemapperHistogramValues_t {
  unsigned int max, high, partial, low, none;
};
struct nvmlRemappedRowsInfo_v2_t {
  unsigned int corrected_active, corrected_inactive, uncorrected_active, uncorrected_inactive;
  unsigned int pending, failed;
};
struct nvmlRepairStatus_t {
  unsigned int version;  // 1
  unsigned int channel_pending, tpc_pending;
};
struct nvmlBridgeChipHierarchy_t {
  unsigned char count;
  struct {
    int type;
    unsigned int firmware;
  } chips[128];
};

struct nvmlGpuFabricInfo_t {
  unsigned char cluster_uuid[16];
  nvmlReturn_t status;
  unsigned int clique;
  unsigned char state;
};
struct nvmlGpuFabricInfo_v2_t {
  unsigned int version;  // 2
  unsigned char cluster_uuid[16];
  nvmlReturn_t status;
  unsigned int clique;
  unsigned char state;
  unsigned int health_mask;
};
// Called nvmlGpuFabricInfoV_t where a call takes it; the version says which of the two it is.
struct nvmlGpuFabricInfoV_t {
  unsigned int version;  // 3
  unsigned char cluster_uuid[16];
  nvmlReturn_t status;
  unsigned int clique;
  unsigned char state;
  unsigned int health_mask;
  unsigned char health_summary;
};
struct nvmlNvLinkUtilizationControl_t {
  int units, packet_filter;
};
struct nvmlNvlinkSupportedBwModes_t {
  unsigned int version;  // 1
  unsigned char modes[23], count;
};
struct nvmlNvlinkGetBwMode_t {
  unsigned int version;  // 1
  unsigned int is_best;
  unsigned char mode;
};
struct nvmlPlatformInfo_t {
  unsigned int version;  // 2
  unsigned char ib_guid[16], chassis_serial[16], slot, tray, host, peer_type, module_id;
};
struct nvmlC2cModeInfo_v1_t {
  unsigned int enabled;
};
struct nvmlPdi_t {
  unsigned int version;  // 1
  unsigned long long value;
};
struct nvmlDeviceAddressingMode_t {
  unsigned int version;  // 1
  unsigned int value;
};
struct nvmlDeviceCapabilities_t {
  unsigned int version;  // 1
  unsigned int mask;
};
struct nvmlGpmSupport_t {
  unsigned int version;  // 1
  unsigned int supported;
};
struct nvmlGpmMetric_t {
  unsigned int id;
  nvmlReturn_t result;
  double value;
  char *short_name, *long_name, *unit;
};
// The array's length grew with the library (210 in 13.0, 477 in 13.5): only `count` are read.
struct nvmlGpmMetricsGet_t {
  unsigned int version;  // 1
  unsigned int count;
  nvmlGpmSample_t first, second;
  nvmlGpmMetric_t metrics[210];
};

struct nvmlSystemDriverBranchInfo_t {
  unsigned int version;  // 1
  char branch[80];
};
struct nvmlConfComputeSystemCaps_t {
  unsigned int cpu, gpus;
};
struct nvmlConfComputeSystemState_t {
  unsigned int environment, feature, dev_tools_mode;
};
struct nvmlConfComputeMemSizeInfo_t {
  unsigned long long protected_kib, unprotected_kib;
};
struct nvmlSystemConfComputeSettings_t {
  unsigned int version;  // 1
  unsigned int environment, feature, dev_tools_mode, multi_gpu_mode;
};

}  // extern "C"

static_assert(sizeof(nvmlTemperature_t) == 12 && sizeof(nvmlMarginTemperature_t) == 8 &&
              sizeof(nvmlGpuThermalSettings_t) == 64 && sizeof(nvmlCoolerInfo_t) == 16 &&
              sizeof(nvmlFanSpeedInfo_t) == 12);
static_assert(sizeof(nvmlClockOffset_t) == 24 && sizeof(nvmlDevicePerfModes_t) == 2052 &&
              sizeof(nvmlDeviceCurrentClockFreqs_t) == 2052 && sizeof(nvmlPowerValue_v2_t) == 12 &&
              sizeof(nvmlGpuDynamicPstatesInfo_t) == 132);
static_assert(sizeof(nvmlClkMonStatus_t) == 264 && sizeof(nvmlEccSramErrorStatus_t) == 104 &&
              sizeof(nvmlRowRemapperHistogramValues_t) == 20 &&
              sizeof(nvmlRemappedRowsInfo_v2_t) == 24 && sizeof(nvmlRepairStatus_t) == 12);
static_assert(sizeof(nvmlBridgeChipHierarchy_t) == 1028 && sizeof(nvmlGpuFabricInfo_t) == 28 &&
              sizeof(nvmlGpuFabricInfoV_t) == 40 && sizeof(nvmlNvLinkUtilizationControl_t) == 8 &&
              sizeof(nvmlNvlinkSupportedBwModes_t) == 28);
static_assert(sizeof(nvmlNvlinkGetBwMode_t) == 12 && sizeof(nvmlPlatformInfo_t) == 44 &&
              sizeof(nvmlC2cModeInfo_v1_t) == 4 && sizeof(nvmlPdi_t) == 16 &&
              sizeof(nvmlDeviceAddressingMode_t) == 8);
static_assert(sizeof(nvmlDeviceCapabilities_t) == 8 && sizeof(nvmlGpmSupport_t) == 8 &&
              sizeof(nvmlGpmMetricsGet_t) == 8424 && sizeof(nvmlSystemDriverBranchInfo_t) == 84 &&
              sizeof(nvmlConfComputeSystemCaps_t) == 8);
static_assert(sizeof(nvmlConfComputeSystemState_t) == 12 &&
              sizeof(nvmlConfComputeMemSizeInfo_t) == 16 &&
              sizeof(nvmlSystemConfComputeSettings_t) == 20);
