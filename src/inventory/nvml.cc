#include "inventory/nvml.h"

#include <algorithm>
#include <array>
#include <climits>
#include <map>

#include "inventory/nvml_library.h"
#include "inventory/nvml_mig.h"

namespace aliquot::inventory {
namespace {

// The numbers of the set bits, and the same as Linux writes CPU lists.
std::vector<unsigned> bits_of(std::span<const unsigned long> words) {
  constexpr unsigned kBits = sizeof(unsigned long) * CHAR_BIT;
  std::vector<unsigned> bits;
  for (unsigned i = 0; i < words.size() * kBits; ++i)
    if ((words[i / kBits] >> i % kBits & 1) != 0) bits.push_back(i);
  return bits;
}

std::string list_text(const std::vector<unsigned>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) last += 1;
    if (!text.empty()) text += ",";
    text += std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

model::LinkKind kind_of(nvmlGpuTopologyLevel_t level) {
  switch (level) {
    case NVML_TOPOLOGY_INTERNAL:
    case NVML_TOPOLOGY_SINGLE:
      return model::LinkKind::kPix;
    case NVML_TOPOLOGY_MULTIPLE:
      return model::LinkKind::kPxb;
    case NVML_TOPOLOGY_HOSTBRIDGE:
      return model::LinkKind::kPhb;
    case NVML_TOPOLOGY_NODE:
      return model::LinkKind::kNode;
    default:
      return model::LinkKind::kSys;
  }
}

std::string virtualization_name(nvmlGpuVirtualizationMode_t mode) {
  constexpr std::array kNames = {"none", "passthrough", "vgpu", "host-vgpu", "host-vsga"};
  return mode >= 0 && mode < std::ssize(kNames) ? kNames[static_cast<std::size_t>(mode)] : "";
}

unsigned nvlink_generation(unsigned nvml_version) {
  switch (nvml_version) {
    case NVML_NVLINK_VERSION_1_0:
      return 1;
    case NVML_NVLINK_VERSION_2_0:
    case NVML_NVLINK_VERSION_2_2:
      return 2;
    case NVML_NVLINK_VERSION_3_0:
    case NVML_NVLINK_VERSION_3_1:
      return 3;
    case NVML_NVLINK_VERSION_4_0:
      return 4;
    default:
      return nvml_version >= NVML_NVLINK_VERSION_5_0 ? 5 : 0;
  }
}

class DriverNvml final : public Nvml {
 public:
  explicit DriverNvml(const NvmlLibrary& library) : library_(library) {}
  DriverNvml(const DriverNvml&) = delete;
  DriverNvml& operator=(const DriverNvml&) = delete;
  ~DriverNvml() override {
    for (const auto& [gpu, events] : events_) library_.call<Id::nvmlEventSetFree>(events);
    library_.call<Id::nvmlShutdown>();
  }

  Result<NvmlSystem> system() override {
    NvmlSystem system;
    std::array<char, 128> text{};
    const auto size = static_cast<unsigned>(text.size());
    nvmlReturn_t result = library_.call<Id::nvmlSystemGetDriverVersion>(text.data(), size);
    if (result != NVML_SUCCESS) return library_.error(Id::nvmlSystemGetDriverVersion, result);
    system.driver_version = text.data();
    result = library_.call<Id::nvmlSystemGetNVMLVersion>(text.data(), size);
    if (result != NVML_SUCCESS) return library_.error(Id::nvmlSystemGetNVMLVersion, result);
    system.nvml_version = text.data();
    result = library_.call<Id::nvmlSystemGetCudaDriverVersion_v2>(&system.cuda_version);
    if (result != NVML_SUCCESS)
      return library_.error(Id::nvmlSystemGetCudaDriverVersion_v2, result);
    return system;
  }

  Result<unsigned> count() override;
  Result<NvmlGpu> gpu(unsigned gpu) override;
  Result<unsigned> index_at(const std::string& bus_id) override;
  Result<NvmlState> state(unsigned gpu) override;
  Result<NvmlHeld> held(unsigned gpu) override;
  Result<HealthReading> health(unsigned gpu) override;
  Result<std::vector<NvmlUse>> use(unsigned gpu, std::uint64_t after_us) override;
  Result<model::LinkKind> path(unsigned gpu, unsigned other) override;
  Result<std::vector<NvmlNvlink>> nvlinks(unsigned gpu) override;
  Result<NvmlMig> mig(unsigned gpu) override {
    const auto handle = device(gpu);
    if (!handle) return handle.error();
    return read_mig(library_, *handle);
  }
  Result<std::optional<unsigned>> wait_for_xid(unsigned gpu,
                                               std::chrono::milliseconds limit) override;

 private:
  Result<nvmlDevice_t> device(unsigned gpu) const {
    nvmlDevice_t handle = nullptr;
    const nvmlReturn_t result = library_.call<Id::nvmlDeviceGetHandleByIndex_v2>(gpu, &handle);
    if (result != NVML_SUCCESS) return library_.error(Id::nvmlDeviceGetHandleByIndex_v2, result);
    return handle;
  }
  Result<NvmlGpu> describe(nvmlDevice_t device) const;
  Result<NvmlMemory> memory(nvmlDevice_t device) const;
  Status add_processes(nvmlDevice_t device, std::vector<NvmlProcess>& out) const;
  template <Id kId>
  Status add_list(nvmlDevice_t device, ProcessKind kind,
                  std::map<std::int32_t, NvmlProcess>& out) const;
  unsigned link_speed(nvmlDevice_t device) const;
  Result<nvmlEventSet_t> listen(unsigned gpu);

  NvmlLibrary library_;
  std::map<unsigned, nvmlEventSet_t> events_;  // by GPU
};

Result<unsigned> DriverNvml::count() {
  unsigned count = 0;
  const nvmlReturn_t result = library_.call<Id::nvmlDeviceGetCount_v2>(&count);
  if (result != NVML_SUCCESS) return library_.error(Id::nvmlDeviceGetCount_v2, result);
  return count;
}

Result<NvmlGpu> DriverNvml::gpu(unsigned gpu) {
  const auto handle = device(gpu);
  if (!handle) return handle.error();
  return describe(*handle);
}

Result<unsigned> DriverNvml::index_at(const std::string& bus_id) {
  // Not by UUID: the driver may wake every GPU while it looks for that.
  nvmlDevice_t handle = nullptr;
  nvmlReturn_t result =
      library_.call<Id::nvmlDeviceGetHandleByPciBusId_v2>(bus_id.c_str(), &handle);
  if (result != NVML_SUCCESS) return library_.error(Id::nvmlDeviceGetHandleByPciBusId_v2, result);
  unsigned index = 0;
  result = library_.call<Id::nvmlDeviceGetIndex>(handle, &index);
  if (result != NVML_SUCCESS) return library_.error(Id::nvmlDeviceGetIndex, result);
  return index;
}

Result<NvmlGpu> DriverNvml::describe(nvmlDevice_t device) const {
  nvmlPciInfo_t pci{};
  const nvmlReturn_t result = library_.call<Id::nvmlDeviceGetPciInfo_v3>(device, &pci);
  if (result != NVML_SUCCESS) return library_.error(Id::nvmlDeviceGetPciInfo_v3, result);
  NvmlGpu gpu;
  gpu.bus_id = pci.bus_id;
  gpu.uuid = library_.text<Id::nvmlDeviceGetUUID>(device);
  gpu.name = library_.text<Id::nvmlDeviceGetName>(device);
  gpu.serial = library_.text<Id::nvmlDeviceGetSerial>(device);
  gpu.minor = library_.figure<Id::nvmlDeviceGetMinorNumber>(device).value_or(0);
  std::array<unsigned long, 16> words{};
  const auto size = static_cast<unsigned>(words.size());
  if (library_.call<Id::nvmlDeviceGetCpuAffinity>(device, size, words.data()) == NVML_SUCCESS)
    gpu.cpus = list_text(bits_of(words));
  words.fill(0);
  if (library_.call<Id::nvmlDeviceGetMemoryAffinity>(device, size, words.data(),
                                                     NVML_AFFINITY_SCOPE_NODE) == NVML_SUCCESS)
    if (const std::vector<unsigned> nodes = bits_of(words); !nodes.empty())
      gpu.numa = static_cast<int>(nodes.front());
  library_.call<Id::nvmlDeviceGetCudaComputeCapability>(device, &gpu.compute_major,
                                                        &gpu.compute_minor);
  gpu.pcie_max_generation =
      library_.figure<Id::nvmlDeviceGetMaxPcieLinkGeneration>(device).value_or(0);
  gpu.pcie_max_width = library_.figure<Id::nvmlDeviceGetMaxPcieLinkWidth>(device).value_or(0);
  unsigned pending = 0;
  unsigned current = 0;
  gpu.mig_capable =
      library_.call<Id::nvmlDeviceGetMigMode>(device, &current, &pending) == NVML_SUCCESS;
  if (const auto mode =
          library_.figure<Id::nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t>(device))
    gpu.virtualization = virtualization_name(*mode);
  return gpu;
}

Result<NvmlMemory> DriverNvml::memory(nvmlDevice_t device) const {
  nvmlMemory_v2_t second{};
  second.version = driver_abi::nvml_struct_version<nvmlMemory_v2_t>(2);
  nvmlReturn_t result = library_.call<Id::nvmlDeviceGetMemoryInfo_v2>(device, &second);
  if (result == NVML_SUCCESS)
    return NvmlMemory{second.total, second.reserved, second.used, second.free};
  if (result != NVML_ERROR_FUNCTION_NOT_FOUND)
    return library_.error(Id::nvmlDeviceGetMemoryInfo_v2, result);
  nvmlMemory_t first{};  // drivers before 510
  result = library_.call<Id::nvmlDeviceGetMemoryInfo>(device, &first);
  if (result != NVML_SUCCESS) return library_.error(Id::nvmlDeviceGetMemoryInfo, result);
  return NvmlMemory{first.total, 0, first.used, first.free};
}

template <Id kId>
Status DriverNvml::add_list(nvmlDevice_t device, ProcessKind kind,
                            std::map<std::int32_t, NvmlProcess>& out) const {
  constexpr unsigned long long kNotAvailable = ~0ull;
  std::vector<nvmlProcessInfo_t> infos(16);
  for (;;) {
    auto number = static_cast<unsigned>(infos.size());
    const nvmlReturn_t result = library_.call<kId>(device, &number, infos.data());
    if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
      infos.resize(std::max<std::size_t>(number, infos.size()) + 16);  // more may come meanwhile
      continue;
    }
    if (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND) return {};
    if (result != NVML_SUCCESS) return library_.error(kId, result);
    infos.resize(number);
    break;
  }
  for (const nvmlProcessInfo_t& info : infos) {
    NvmlProcess process{static_cast<std::int32_t>(info.pid), std::nullopt, kind};
    if (info.used_bytes != kNotAvailable) process.bytes = info.used_bytes;
    out[process.pid] = process;
  }
  return {};
}

// A program that is in several lists counts once, under the last of them.
Status DriverNvml::add_processes(nvmlDevice_t device, std::vector<NvmlProcess>& out) const {
  std::map<std::int32_t, NvmlProcess> by_pid;
  Status status = add_list<Id::nvmlDeviceGetGraphicsRunningProcesses_v3>(
      device, ProcessKind::kGraphics, by_pid);
  if (status)
    status = add_list<Id::nvmlDeviceGetComputeRunningProcesses_v3>(device, ProcessKind::kCompute,
                                                                   by_pid);
  if (status)
    status =
        add_list<Id::nvmlDeviceGetMPSComputeRunningProcesses_v3>(device, ProcessKind::kMps, by_pid);
  for (const auto& [pid, process] : by_pid) out.push_back(process);
  return status;
}

Result<NvmlHeld> DriverNvml::held(unsigned gpu) {
  const auto handle = device(gpu);
  if (!handle) return handle.error();
  const auto memory_now = memory(*handle);
  if (!memory_now) return memory_now.error();
  NvmlHeld held{*memory_now, {}};
  if (Status status = add_processes(*handle, held.processes); !status) return status.error();
  return held;
}

Result<NvmlState> DriverNvml::state(unsigned gpu) {
  const auto handle = device(gpu);
  if (!handle) return handle.error();
  const nvmlDevice_t it = *handle;
  auto held_now = held(gpu);
  if (!held_now) return held_now.error();
  NvmlState state;
  state.memory = held_now->memory;
  state.processes = std::move(held_now->processes);
  if (const auto rates =
          library_.figure<Id::nvmlDeviceGetUtilizationRates, nvmlUtilization_t>(it)) {
    state.gpu_percent = rates->gpu;
    state.memory_percent = rates->memory;
  }
  state.power_mw = library_.figure<Id::nvmlDeviceGetPowerUsage>(it);
  state.power_limit_mw = library_.figure<Id::nvmlDeviceGetEnforcedPowerLimit>(it);
  state.energy_mj =
      library_.figure<Id::nvmlDeviceGetTotalEnergyConsumption, unsigned long long>(it);
  state.temperature_c = library_.figure<Id::nvmlDeviceGetTemperature>(
      it, nvmlTemperatureSensors_t{NVML_TEMPERATURE_GPU});
  state.fan_percent = library_.figure<Id::nvmlDeviceGetFanSpeed>(it);
  state.sm_mhz = library_.figure<Id::nvmlDeviceGetClockInfo>(it, nvmlClockType_t{NVML_CLOCK_SM});
  state.memory_mhz =
      library_.figure<Id::nvmlDeviceGetClockInfo>(it, nvmlClockType_t{NVML_CLOCK_MEM});
  state.sm_max_mhz =
      library_.figure<Id::nvmlDeviceGetMaxClockInfo>(it, nvmlClockType_t{NVML_CLOCK_SM});
  // The older name, which every driver answers.
  state.clock_reasons =
      library_.figure<Id::nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long>(it);
  const auto pstate = library_.figure<Id::nvmlDeviceGetPerformanceState, nvmlPstates_t>(it);
  if (pstate && *pstate != NVML_PSTATE_UNKNOWN)
    state.performance_state = static_cast<unsigned>(*pstate);
  state.pcie_generation = library_.figure<Id::nvmlDeviceGetCurrPcieLinkGeneration>(it);
  state.pcie_width = library_.figure<Id::nvmlDeviceGetCurrPcieLinkWidth>(it);
  if (const auto on = library_.figure<Id::nvmlDeviceGetPersistenceMode, nvmlEnableState_t>(it))
    state.persistence = *on == NVML_FEATURE_ENABLED;
  nvmlEnableState_t ecc = 0;
  nvmlEnableState_t pending = 0;
  if (library_.call<Id::nvmlDeviceGetEccMode>(it, &ecc, &pending) == NVML_SUCCESS)
    state.ecc = ecc == NVML_FEATURE_ENABLED;
  state.ecc_uncorrected = library_.figure<Id::nvmlDeviceGetTotalEccErrors, unsigned long long>(
      it, nvmlMemoryErrorType_t{NVML_MEMORY_ERROR_TYPE_UNCORRECTED},
      nvmlEccCounterType_t{NVML_VOLATILE_ECC});
  unsigned mig = 0;
  unsigned mig_pending = 0;
  if (library_.call<Id::nvmlDeviceGetMigMode>(it, &mig, &mig_pending) == NVML_SUCCESS)
    state.mig = mig == NVML_DEVICE_MIG_ENABLE;
  if (const auto bar1 = library_.figure<Id::nvmlDeviceGetBAR1MemoryInfo, nvmlBAR1Memory_t>(it)) {
    state.bar1_bytes = bar1->total;
    state.bar1_used_bytes = bar1->used;
  }
  state.compute_mode = static_cast<unsigned>(
      library_.figure<Id::nvmlDeviceGetComputeMode, nvmlComputeMode_t>(it).value_or(0));
  return state;
}

Result<HealthReading> DriverNvml::health(unsigned gpu) {
  nvmlDevice_t it = nullptr;
  nvmlReturn_t result = library_.call<Id::nvmlDeviceGetHandleByIndex_v2>(gpu, &it);
  HealthReading reading;
  unsigned temperature = 0;
  if (result == NVML_SUCCESS)
    result = library_.call<Id::nvmlDeviceGetTemperature>(it, NVML_TEMPERATURE_GPU, &temperature);
  reading.off_bus = result == NVML_ERROR_GPU_IS_LOST;
  if (reading.off_bus) return reading;
  if (it == nullptr) return library_.error(Id::nvmlDeviceGetHandleByIndex_v2, result);
  if (result == NVML_SUCCESS) reading.temperature_c = temperature;
  reading.slowdown_c = library_.figure<Id::nvmlDeviceGetTemperatureThreshold>(
      it, nvmlTemperatureThresholds_t{NVML_TEMPERATURE_THRESHOLD_SLOWDOWN});
  reading.uncorrected = library_.figure<Id::nvmlDeviceGetTotalEccErrors, unsigned long long>(
      it, nvmlMemoryErrorType_t{NVML_MEMORY_ERROR_TYPE_UNCORRECTED},
      nvmlEccCounterType_t{NVML_VOLATILE_ECC});
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (library_.call<Id::nvmlDeviceGetRemappedRows>(it, &corrected, &uncorrected, &pending,
                                                   &failed) == NVML_SUCCESS) {
    reading.remap_pending = pending != 0;
    reading.remap_failed = failed != 0;
  }
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    const auto up = library_.figure<Id::nvmlDeviceGetNvLinkState, nvmlEnableState_t>(it, link);
    if (!up) break;
    reading.nvlinks_up.push_back(*up == NVML_FEATURE_ENABLED);
    for (nvmlNvLinkErrorCounter_t counter = 0; counter < NVML_NVLINK_ERROR_COUNT; ++counter)
      if (const auto errors =
              library_.figure<Id::nvmlDeviceGetNvLinkErrorCounter, unsigned long long>(it, link,
                                                                                       counter))
        reading.nvlink_errors = reading.nvlink_errors.value_or(0) + *errors;
  }
  return reading;
}

Result<std::vector<NvmlUse>> DriverNvml::use(unsigned gpu, std::uint64_t after_us) {
  const auto handle = device(gpu);
  if (!handle) return handle.error();
  constexpr Id kId = Id::nvmlDeviceGetProcessUtilization;
  std::vector<nvmlProcessUtilizationSample_t> samples(64);
  auto count = static_cast<unsigned>(samples.size());
  nvmlReturn_t result = library_.call<kId>(*handle, samples.data(), &count, after_us);
  if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
    samples.resize(count + 16);  // some may come between the two questions
    count = static_cast<unsigned>(samples.size());
    result = library_.call<kId>(*handle, samples.data(), &count, after_us);
  }
  std::vector<NvmlUse> use;
  // Nobody ran; or this driver does not tell.
  if (result == NVML_ERROR_NOT_FOUND || result == NVML_ERROR_NOT_SUPPORTED ||
      result == NVML_ERROR_FUNCTION_NOT_FOUND)
    return use;
  if (result != NVML_SUCCESS) return library_.error(kId, result);
  for (unsigned i = 0; i < count && i < samples.size(); ++i)
    use.push_back(
        {static_cast<std::int32_t>(samples[i].pid), samples[i].timestamp_us, samples[i].sm});
  return use;
}

Result<model::LinkKind> DriverNvml::path(unsigned gpu, unsigned other) {
  const auto from = device(gpu);
  if (!from) return from.error();
  const auto to = device(other);
  if (!to) return to.error();
  nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
  const nvmlReturn_t result =
      library_.call<Id::nvmlDeviceGetTopologyCommonAncestor>(*from, *to, &level);
  if (result != NVML_SUCCESS)
    return library_.error(Id::nvmlDeviceGetTopologyCommonAncestor, result);
  return kind_of(level);
}

// One direction of one link, in 10^6 bytes a second; 0: not told.
unsigned DriverNvml::link_speed(nvmlDevice_t device) const {
  nvmlFieldValue_t speed{};
  speed.field = NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON;
  const nvmlReturn_t asked = library_.call<Id::nvmlDeviceGetFieldValues>(device, 1, &speed);
  return asked == NVML_SUCCESS && speed.result == NVML_SUCCESS ? speed.value.as_uint : 0;
}

Result<std::vector<NvmlNvlink>> DriverNvml::nvlinks(unsigned gpu) {
  const auto handle = device(gpu);
  if (!handle) return handle.error();
  std::vector<NvmlNvlink> all;
  const unsigned mb_per_s = link_speed(*handle);
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    const auto active =
        library_.figure<Id::nvmlDeviceGetNvLinkState, nvmlEnableState_t>(*handle, link);
    if (!active) break;
    NvmlNvlink& found = all.emplace_back();
    found.link = link;
    found.active = *active == NVML_FEATURE_ENABLED;
    if (!found.active) continue;
    found.generation = nvlink_generation(
        library_.figure<Id::nvmlDeviceGetNvLinkVersion>(*handle, link).value_or(0));
    found.mb_per_s = mb_per_s;
    if (const auto remote =
            library_.figure<Id::nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlPciInfo_t>(*handle, link))
      found.remote_bus_id = remote->bus_id;
    found.remote_is_switch =
        library_.figure<Id::nvmlDeviceGetNvLinkRemoteDeviceType, nvmlIntNvLinkDeviceType_t>(
            *handle, link) == NVML_NVLINK_DEVICE_TYPE_SWITCH;
  }
  return all;
}

// The GPU's own set: another that hangs is not asked to take part.
Result<nvmlEventSet_t> DriverNvml::listen(unsigned gpu) {
  if (const auto known = events_.find(gpu); known != events_.end()) return known->second;
  const auto handle = device(gpu);
  if (!handle) return handle.error();
  nvmlEventSet_t events = nullptr;
  const nvmlReturn_t created = library_.call<Id::nvmlEventSetCreate>(&events);
  if (created != NVML_SUCCESS) return library_.error(Id::nvmlEventSetCreate, created);
  constexpr unsigned long long kXid = nvmlEventTypeXidCriticalError;
  const nvmlReturn_t registered =
      library_.call<Id::nvmlDeviceRegisterEvents>(*handle, kXid, events);
  if (registered != NVML_SUCCESS) {
    library_.call<Id::nvmlEventSetFree>(events);
    return library_.error(Id::nvmlDeviceRegisterEvents, registered);
  }
  return events_[gpu] = events;
}

Result<std::optional<unsigned>> DriverNvml::wait_for_xid(unsigned gpu,
                                                         std::chrono::milliseconds limit) {
  const auto events = listen(gpu);
  if (!events) return events.error();
  nvmlEventData_t data{};
  const auto limit_ms = static_cast<unsigned>(std::clamp<std::int64_t>(limit.count(), 0, INT_MAX));
  const nvmlReturn_t result = library_.call<Id::nvmlEventSetWait_v2>(*events, &data, limit_ms);
  if (result == NVML_ERROR_TIMEOUT) return std::optional<unsigned>();
  if (result != NVML_SUCCESS) return library_.error(Id::nvmlEventSetWait_v2, result);
  return std::optional(static_cast<unsigned>(data.data));
}

}  // namespace

Result<std::unique_ptr<Nvml>> open_nvml(const std::filesystem::path& libnvidia_ml) {
  NvmlLibrary library;
  if (const char* why = library.load(libnvidia_ml.c_str()))
    return Error{Errc::kNotFound, "load " + libnvidia_ml.string() + ": " + why};
  const nvmlReturn_t result = library.call<Id::nvmlInit_v2>();
  if (result != NVML_SUCCESS) {
    Error error = library.error(Id::nvmlInit_v2, result);
    error.message += " (" + libnvidia_ml.string() + ")";
    return error;
  }
  return std::unique_ptr<Nvml>(std::make_unique<DriverNvml>(library));
}

// With lazy loading: 287 MB on a V100 and 426 MiB on Ada, as their users measured; above 400 MB on
// A100 and H100. Rounded up, so that a context is rather over- than undercharged.
std::uint64_t assumed_context_overhead_bytes(const NvmlGpu& gpu) {
  constexpr std::uint64_t kMiB = 1ull << 20;
  if (gpu.compute_major >= 9) return 520 * kMiB;
  if (gpu.compute_major == 8) return 430 * kMiB;
  return 300 * kMiB;
}

}  // namespace aliquot::inventory
