// Memory and the processes that hold it.

#include <vector>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/mig_view.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

constexpr unsigned kNoInstance = 0xffffffff;  // not in a MIG instance

struct MemoryView {
  unsigned long long total, reserved, used, free;
};

MemoryView memory_of(const Gpu& gpu, const GpuTelemetry& now) {
  const MemorySizes& memory = gpu.model().memory;
  const unsigned long long reserved = memory.reserved_bytes();
  const unsigned long long used =
      std::min<unsigned long long>(now.used_bytes, memory.driver_total_bytes);
  return {memory.nvml_total_bytes, reserved, used, memory.nvml_total_bytes - reserved - used};
}

// What the compute instances of its GPU instance share.
template <typename Memory>
nvmlReturn_t instance_memory(nvmlDevice_t device, Memory* memory) {
  return with_mig_device(device, [&](const MigDevice& mig) -> nvmlReturn_t {
    if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    GpuReading reading;
    const nvmlReturn_t result = mig.read(reading);
    if (result != NVML_SUCCESS) return result;
    memory->total = static_cast<unsigned long long>(mig.profile().memory_mib) << 20;
    memory->used = std::min<unsigned long long>(reading.figures.used_bytes, memory->total);
    memory->free = memory->total - memory->used;
    if constexpr (requires { memory->reserved; }) memory->reserved = 0;
    return NVML_SUCCESS;
  });
}

std::vector<ProcessTelemetry> users_of(const GpuReading& reading, ProcessUse use) {
  std::vector<ProcessTelemetry> found;
  for (const ProcessTelemetry& process : reading.processes)
    if (process.use == use) found.push_back(process);
  return found;
}

struct InstanceIds {
  unsigned gpu_instance = kNoInstance;
  unsigned compute_instance = kNoInstance;
};

template <typename Info>
nvmlReturn_t give_processes(const GpuReading& reading, ProcessUse use, const InstanceIds& ids,
                            unsigned* count, Info* infos) {
  std::vector<Info> list;
  for (const ProcessTelemetry& process : users_of(reading, use)) {
    Info& info = list.emplace_back();
    info.pid = static_cast<unsigned>(process.pid);
    info.used_bytes = process.used_bytes;
    if constexpr (requires { info.gpu_instance; }) {
      info.gpu_instance = ids.gpu_instance;
      info.compute_instance = ids.compute_instance;
    }
  }
  return copy_list(list, count, infos);
}

template <typename Info>
nvmlReturn_t list_processes(nvmlDevice_t device, ProcessUse use, unsigned* count, Info* infos) {
  if (is_mig_device(device)) {
    return with_mig_device(device, [&](const MigDevice& mig) -> nvmlReturn_t {
      GpuReading reading;
      const nvmlReturn_t result = mig.read(reading);
      if (result != NVML_SUCCESS) return result;
      const InstanceIds ids{mig.gpu_instance.gpu_instance, mig.compute_instance.compute_instance};
      return give_processes(reading, use, ids, count, infos);
    });
  }
  return with_reading(device, [&](const Gpu&, const GpuReading& reading) {
    return give_processes(reading, use, {}, count, infos);
  });
}

}  // namespace

// Version 1 knows no reserved memory: it is used.
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (is_mig_device(device)) return instance_memory(device, memory);
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) -> nvmlReturn_t {
    if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const MemoryView view = memory_of(gpu, reading.figures);
    *memory = {.total = view.total, .free = view.free, .used = view.used + view.reserved};
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (const nvmlReturn_t checked = check_version(memory, 2); checked != NVML_SUCCESS)
    return checked;
  if (is_mig_device(device)) return instance_memory(device, memory);
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) {
    const MemoryView view = memory_of(gpu, reading.figures);
    memory->total = view.total;
    memory->reserved = view.reserved;
    memory->used = view.used;
    memory->free = view.free;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    constexpr unsigned long long kDriverOwn = 1u << 20;
    const unsigned long long total = gpu.model().memory.bar1_bytes;
    *memory = {.total = total, .free = total - kDriverOwn, .used = kDriverOwn};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return list_processes(device, ProcessUse::kCompute, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v2_t* infos) {
  return list_processes(device, ProcessUse::kCompute, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* infos) {
  return list_processes(device, ProcessUse::kCompute, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                   nvmlProcessInfo_v1_t* infos) {
  return list_processes(device, ProcessUse::kGraphics, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_v2_t* infos) {
  return list_processes(device, ProcessUse::kGraphics, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_t* infos) {
  return list_processes(device, ProcessUse::kGraphics, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v1_t* infos) {
  return list_processes(device, ProcessUse::kMps, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_v2_t* infos) {
  return list_processes(device, ProcessUse::kMps, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_t* infos) {
  return list_processes(device, ProcessUse::kMps, count, infos);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_t* list) {
  if (const nvmlReturn_t checked = check_version(list, 1); checked != NVML_SUCCESS) return checked;
  if (list->mode > NVML_PROCESS_MODE_MPS) return NVML_ERROR_INVALID_ARGUMENT;
  return with_reading(device, [&](const Gpu&, const GpuReading& reading) {
    std::vector<nvmlProcessDetail_v1_t> details;
    for (const ProcessTelemetry& process : users_of(reading, static_cast<ProcessUse>(list->mode))) {
      details.push_back(
          {static_cast<unsigned>(process.pid), process.used_bytes, kNoInstance, kNoInstance, 0});
    }
    return copy_list(details, &list->count, list->processes);
  });
}

// Accounting keeps no history here: on or off, there is nothing of ended processes.
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned* size) {
  return tell(device, size, [](const Gpu&) { return 4000; });
}
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned* count, unsigned* pids) {
  return with_reading(device, [&](const Gpu&, const GpuReading& reading) {
    std::vector<unsigned> known;
    if (reading.figures.accounting != 0)
      for (const ProcessTelemetry& process : reading.processes)
        known.push_back(static_cast<unsigned>(process.pid));
    return copy_list(known, count, pids);
  });
}
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid,
                                          nvmlAccountingStats_t* stats) {
  return with_reading(device, [&](const Gpu&, const GpuReading& reading) -> nvmlReturn_t {
    if (stats == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (reading.figures.accounting == 0) return NVML_ERROR_NOT_FOUND;
    for (const ProcessTelemetry& process : reading.processes) {
      if (process.pid != static_cast<std::int32_t>(pid)) continue;
      *stats = {};
      stats->gpu_utilization = reading.figures.gpu_percent;
      stats->memory_utilization = reading.figures.memory_percent;
      stats->max_memory_bytes = process.used_bytes;
      stats->is_running = 1;
      return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
