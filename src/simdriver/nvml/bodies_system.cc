// Initialisation, versions, and how programs find their GPUs.

#include <array>
#include <fstream>
#include <vector>

#include "simdriver/cpu_list.h"
#include "simdriver/machine_text.h"
#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

struct ResultText {
  nvmlReturn_t result;
  const char* text;
};

constexpr std::array kResultTexts{
    ResultText{NVML_SUCCESS, "Success"},
    ResultText{NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    ResultText{NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    ResultText{NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    ResultText{NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    ResultText{NVML_ERROR_NOT_FOUND, "Not Found"},
    ResultText{NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    ResultText{NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    ResultText{NVML_ERROR_TIMEOUT, "Timeout"},
    ResultText{NVML_ERROR_LIBRARY_NOT_FOUND, "Library Not Found"},
    ResultText{NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    ResultText{NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    ResultText{NVML_ERROR_IN_USE, "In use by another client"},
    ResultText{NVML_ERROR_MEMORY, "Insufficient Memory"},
    ResultText{NVML_ERROR_NO_DATA, "No data"},
    ResultText{NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    ResultText{NVML_ERROR_GPU_NOT_FOUND, "GPU not found"},
};

// The first GPU that fits, as a handle.
template <typename Fits>
nvmlReturn_t find_gpu(nvmlDevice_t* device, Fits fits) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < held.gpu_count(); ++i) {
      if (!fits(held.machine().gpus[i])) continue;
      *device = held.handle(i);
      return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
  });
}

nvmlReturn_t count_gpus(unsigned* count) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *count = held.gpu_count();
    return NVML_SUCCESS;
  });
}

nvmlReturn_t handle_by_index(unsigned index, nvmlDevice_t* device) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (device == nullptr || index >= held.gpu_count()) return NVML_ERROR_INVALID_ARGUMENT;
    *device = held.handle(index);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t handle_by_bus_id(const char* bus_id, nvmlDevice_t* device) {
  if (bus_id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::string text = bus_id;
  if (std::ranges::count(text, ':') == 1) text = "0000:" + text;  // the domain may be left out
  PciAddress address;
  if (!from_text(text, address)) return NVML_ERROR_INVALID_ARGUMENT;
  return find_gpu(device, [&](const GpuSpec& gpu) { return gpu.pci == address; });
}

nvmlReturn_t cuda_version(int* version) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *version = held.machine().driver.cuda;
    return NVML_SUCCESS;
  });
}

// With or without "GPU-" in front: cuda.core asks with the driver's text, which has none.
bool is_uuid_of(const GpuSpec& gpu, std::string_view text) {
  constexpr std::size_t kPrefix = 4;
  const std::string own = gpu_uuid_text(gpu.uuid);
  return text == own || text == std::string_view(own).substr(kPrefix);
}

}  // namespace

nvmlReturn_t nvmlInit() { return Library::instance().start(true); }
nvmlReturn_t nvmlInit_v2() { return Library::instance().start(false); }
nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
  constexpr unsigned kKnown =
      NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH | NVML_INIT_FLAG_FORCE_INIT;
  if ((flags & ~kKnown) != 0) return NVML_ERROR_INVALID_ARGUMENT;
  return Library::instance().start(false);
}
nvmlReturn_t nvmlShutdown() { return Library::instance().stop(); }

const char* nvmlErrorString(nvmlReturn_t result) {
  for (const ResultText& known : kResultTexts)
    if (known.result == result) return known.text;
  return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return with_library([&](const Library::Held& held) {
    return copy_text(held.machine().driver.driver, version, length);
  });
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return with_library([&](const Library::Held& held) {
    return copy_text(held.machine().driver.nvml, version, length);
  });
}

// Both versions answer without nvmlInit in the real library; ours knows its machine from then on.
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) { return cuda_version(version); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) { return cuda_version(version); }

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t* info, unsigned length) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    const nvmlReturn_t checked = check_version(info, 1);
    if (checked != NVML_SUCCESS) return checked;
    const std::string& driver = held.machine().driver.driver;
    const std::string branch = "r" + driver.substr(0, driver.find('.')) + "_00";
    return copy_text(branch, info->branch, std::min<unsigned>(length, sizeof(info->branch)));
  });
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return with_library([&](const Library::Held&) -> nvmlReturn_t {
    if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
    std::string program;
    if (!std::getline(file, program, '\0')) return NVML_ERROR_NOT_FOUND;
    // A long path loses its end, as in the real library.
    return copy_text(std::string_view(program).substr(0, length - 1), name, length);
  });
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned* count, nvmlDevice_t* devices) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    std::vector<nvmlDevice_t> near;
    for (unsigned i = 0; i < held.gpu_count(); ++i) {
      const int numa = held.machine().gpus[i].numa;
      if (numa < 0) continue;
      const auto cpus = parse_cpu_list(held.machine().numa[static_cast<unsigned>(numa)].cpus);
      if (cpus && std::ranges::find(*cpus, cpu) != cpus->end()) near.push_back(held.handle(i));
    }
    if (*count == 0) {
      *count = static_cast<unsigned>(near.size());
      return NVML_SUCCESS;
    }
    return copy_list(near, count, devices);
  });
}

nvmlReturn_t nvmlSystemGetHicVersion(unsigned* count, nvmlHwbcEntry_t* entries) {
  return with_library([&](const Library::Held&) {
    return copy_list(std::array<nvmlHwbcEntry_t, 0>{}, count, entries);
  });
}

// Confidential computing: neither the CPU nor the GPUs of the simulation have it.
nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t* caps) {
  return with_library([&](const Library::Held&) -> nvmlReturn_t {
    if (caps == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *caps = {};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t* state) {
  return with_library([&](const Library::Held&) -> nvmlReturn_t {
    if (state == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *state = {};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned* count) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned, nvmlExcludedDeviceInfo_t*) {
  return NVML_ERROR_INVALID_ARGUMENT;  // there is none
}

nvmlReturn_t nvmlUnitGetCount(unsigned* count) {
  return with_library([&](const Library::Held&) -> nvmlReturn_t {
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;  // S-class units are long gone
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned, nvmlUnit_t*) {
  return with_library([](const Library::Held&) { return NVML_ERROR_INVALID_ARGUMENT; });
}

nvmlReturn_t nvmlDeviceGetCount(unsigned* count) { return count_gpus(count); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) { return count_gpus(count); }

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return handle_by_index(index, device);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  return handle_by_index(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (uuid == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return find_gpu(device, [&](const GpuSpec& gpu) { return is_uuid_of(gpu, uuid); });
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* device) {
  if (const nvmlReturn_t checked = check_version(uuid, 1); checked != NVML_SUCCESS) return checked;
  if (uuid->type == NVML_UUID_TYPE_ASCII)
    return find_gpu(device, [&](const GpuSpec& gpu) { return is_uuid_of(gpu, uuid->text); });
  if (uuid->type != NVML_UUID_TYPE_BINARY) return NVML_ERROR_INVALID_ARGUMENT;
  return find_gpu(device, [&](const GpuSpec& gpu) {
    return std::equal(gpu.uuid.begin(), gpu.uuid.end(), std::begin(uuid->bytes));
  });
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  if (serial == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return find_gpu(device, [&](const GpuSpec& gpu) { return gpu.serial == serial; });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  return handle_by_bus_id(bus_id, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  return handle_by_bus_id(bus_id, device);
}

}  // namespace aliquot::simdriver::nvml::bodies
