// NVML structs about memory, processes, utilisation and identity: their true layout.
//
// Our own declarations with our own field names; sizes stand in the asserts at the end and are
// compared with NVIDIA's headers like the CUDA ones. Instances
// are in nvml_instance_structs.h, links, power and the rest in nvml_device_structs.h. Values; no
// thread rules.
#pragma once

#include "driver_abi/nvml_scalars.h"

extern "C" {

struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlMemory_v2_t {
  unsigned int version;  // nvml_struct_version<nvmlMemory_v2_t>(2)
  unsigned long long total, reserved, free, used;
};
struct nvmlBAR1Memory_t {
  unsigned long long total, free, used;
};
struct nvmlUtilization_t {
  unsigned int gpu, memory;  // percent
};

// ...RunningProcesses without suffix speak v1, _v2 v2, _v3 nvmlProcessInfo_t.
struct nvmlProcessInfo_v1_t {
  unsigned int pid;
  unsigned long long used_bytes;
};
struct nvmlProcessInfo_v2_t {
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance, compute_instance;
};
typedef struct nvmlProcessInfo_v2_t nvmlProcessInfo_t;
struct nvmlProcessDetail_v1_t {
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance, compute_instance;
  unsigned long long used_protected_bytes;
};
struct nvmlProcessDetailList_t {
  unsigned int version;  // 1
  unsigned int mode;     // 0 compute, 1 graphics, 2 MPS
  unsigned int count;    // in: room in the array; out: what there is
  nvmlProcessDetail_v1_t* processes;
};
struct nvmlProcessUtilizationSample_t {
  unsigned int pid;
  unsigned long long timestamp_us;
  unsigned int sm, memory, encoder, decoder;
};
struct nvmlProcessUtilizationInfo_v1_t {
  unsigned long long timestamp_us;
  unsigned int pid, sm, memory, encoder, decoder, jpeg, ofa;
};
struct nvmlProcessesUtilizationInfo_t {
  unsigned int version;  // 1
  unsigned int count;
  unsigned long long last_seen_us;
  nvmlProcessUtilizationInfo_v1_t* samples;
};
struct nvmlAccountingStats_t {
  unsigned int gpu_utilization, memory_utilization;
  unsigned long long max_memory_bytes, time_ms, start_time_us;
  unsigned int is_running, reserved[5];
};
struct nvmlAccountingStats_v2_t {
  unsigned int pid, is_running, gpu_utilization, memory_utilization;
  unsigned long long max_memory_bytes;
  unsigned int sample_count;
  unsigned long long sum_gpu, sum_memory, time_ms, start_time_us;
};
struct nvmlEncoderSessionInfo_t {
  unsigned int session, pid;
  nvmlVgpuInstance_t vgpu;
  nvmlEncoderType_t codec;
  unsigned int width, height, average_fps, average_latency_us;
};
struct nvmlFBCStats_t {
  unsigned int sessions, average_fps, average_latency_us;
};
struct nvmlFBCSessionInfo_t {
  unsigned int session, pid;
  nvmlVgpuInstance_t vgpu;
  unsigned int display;
  int type;
  unsigned int flags, max_width, max_height, width, height, average_fps, average_latency_us;
};

union nvmlValue_t {
  double as_double;
  int as_int;
  unsigned int as_uint;
  unsigned long as_ulong;
  unsigned long long as_ullong;
  long long as_llong;
  unsigned short as_ushort;
};
struct nvmlSample_t {
  unsigned long long timestamp_us;
  nvmlValue_t value;
};
struct nvmlFieldValue_t {
  unsigned int field, scope;
  long long timestamp_us, latency_us;
  nvmlValueType_t type;
  nvmlReturn_t result;
  nvmlValue_t value;
};
struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long type, data;
  unsigned int gpu_instance, compute_instance;
};
struct nvmlViolationTime_t {
  unsigned long long reference_us, violation_ns;
};
struct nvmlEccErrorCounts_t {
  unsigned long long l1, l2, memory, registers;
};

struct nvmlPciInfo_t {
  char bus_id_legacy[16];  // all that un-suffixed and _v2 calls fill, with the four numbers
  unsigned int domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct nvmlPciInfoExt_t {
  unsigned int version;  // 1
  unsigned int domain, bus, device, device_id, subsystem_id, base_class, sub_class;
  char bus_id[32];
};
struct nvmlUUID_t {
  unsigned int version;  // 1
  unsigned int type;     // 1 text, 2 binary
  union {
    char text[41];
    unsigned char bytes[16];
  };
};
struct nvmlExcludedDeviceInfo_t {
  nvmlPciInfo_t pci;
  char uuid[80];
};
struct nvmlHwbcEntry_t {
  unsigned int id;
  char firmware[32];
};

}  // extern "C"

static_assert(sizeof(nvmlMemory_t) == 24 && sizeof(nvmlMemory_v2_t) == 40 &&
              sizeof(nvmlBAR1Memory_t) == 24 && sizeof(nvmlUtilization_t) == 8);
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16 && sizeof(nvmlProcessInfo_v2_t) == 24 &&
              sizeof(nvmlProcessDetail_v1_t) == 32 && sizeof(nvmlProcessDetailList_t) == 24);
static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32 &&
              sizeof(nvmlProcessUtilizationInfo_v1_t) == 40 &&
              sizeof(nvmlProcessesUtilizationInfo_t) == 24);
static_assert(sizeof(nvmlAccountingStats_t) == 56 && sizeof(nvmlAccountingStats_v2_t) == 64 &&
              sizeof(nvmlEncoderSessionInfo_t) == 32 && sizeof(nvmlFBCStats_t) == 12 &&
              sizeof(nvmlFBCSessionInfo_t) == 48);
static_assert(sizeof(nvmlSample_t) == 16 && sizeof(nvmlFieldValue_t) == 40 &&
              sizeof(nvmlEventData_t) == 32 && sizeof(nvmlViolationTime_t) == 16 &&
              sizeof(nvmlEccErrorCounts_t) == 32);
static_assert(sizeof(nvmlPciInfo_t) == 68 && sizeof(nvmlPciInfoExt_t) == 64 &&
              sizeof(nvmlUUID_t) == 52 && sizeof(nvmlExcludedDeviceInfo_t) == 148 &&
              sizeof(nvmlHwbcEntry_t) == 36);
static_assert(aliquot::driver_abi::nvml_struct_version<nvmlMemory_v2_t>(2) == 0x2000028);
