// Which GPUs the fake machine has, and how they are found and linked.
#include <cstdio>
#include <cstring>
#include <span>

#include "interposer/testing/fake_nvml_state.h"

#define FAKE extern "C" [[gnu::visibility("default")]]

namespace aliquot::interposer::testing {
namespace {

constexpr unsigned kGpus = 4;
constexpr std::uint64_t kTotal = 40ull << 30;

}  // namespace

NvmlBooks& nvml_books() {
  static NvmlBooks books;
  return books;
}

void NvmlBooks::reset() {
  gpus.clear();
  processes.clear();
  fail.clear();
  calls.clear();
  users = 0;
  for (unsigned i = 0; i < kGpus; ++i) {
    const std::string digit = std::to_string(i);
    gpus.push_back({i,
                    "GPU-0000000" + digit + "-0000-0000-0000-000000000000",
                    "serial-" + digit,
                    "00000000:0" + digit + ":00.0",
                    kTotal,
                    1ull << 30,
                    {}});
  }
  for (auto& gpu : gpus) {  // a ring, and a switch that is no GPU
    gpu.links = {gpus[(gpu.index + 1) % kGpus].bus_id, gpus[(gpu.index + 2) % kGpus].bus_id,
                 "00000000:80:00.0"};
  }
}

nvmlReturn_t NvmlBooks::enter(const char* name) {
  ++calls[name];
  const auto planned = fail.find(name);
  if (planned == fail.end()) return NVML_SUCCESS;
  const nvmlReturn_t result = planned->second;
  fail.erase(planned);
  return result;
}

}  // namespace aliquot::interposer::testing

using namespace aliquot::interposer::testing;

#define ENTER                    \
  NvmlBooks& all = nvml_books(); \
  if (const nvmlReturn_t failed = all.enter(__func__); failed != NVML_SUCCESS) return failed

FAKE FakeNvml* aliquot_fake_nvml() { return &nvml_books(); }

static nvmlReturn_t start(const char* name) {
  NvmlBooks& all = nvml_books();
  const nvmlReturn_t result = all.enter(name);
  if (result == NVML_SUCCESS) ++all.users;
  return result;
}
FAKE nvmlReturn_t nvmlInit() { return start(__func__); }
FAKE nvmlReturn_t nvmlInit_v2() { return start(__func__); }
FAKE nvmlReturn_t nvmlInitWithFlags(unsigned) { return start(__func__); }
FAKE nvmlReturn_t nvmlShutdown() {
  ENTER;
  if (all.users == 0) return NVML_ERROR_UNINITIALIZED;
  --all.users;
  return NVML_SUCCESS;
}

static nvmlReturn_t count(const char* name, unsigned* out) {
  if (const nvmlReturn_t failed = nvml_books().enter(name); failed != NVML_SUCCESS) return failed;
  *out = static_cast<unsigned>(nvml_books().gpus.size());
  return NVML_SUCCESS;
}
FAKE nvmlReturn_t nvmlDeviceGetCount(unsigned* out) { return count(__func__, out); }
FAKE nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* out) { return count(__func__, out); }
FAKE nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned* out) { return count(__func__, out); }
FAKE nvmlReturn_t nvmlUnitGetCount(unsigned* out) { return count(__func__, out); }
FAKE nvmlReturn_t nvmlSystemGetHicVersion(unsigned* out, nvmlHwbcEntry_t*) {
  return count(__func__, out);
}

template <class Matches>
static nvmlReturn_t find(const char* name, Matches matches, nvmlDevice_t* out) {
  NvmlBooks& all = nvml_books();
  if (const nvmlReturn_t failed = all.enter(name); failed != NVML_SUCCESS) return failed;
  for (const auto& gpu : all.gpus)
    if (matches(gpu)) {
      *out = all.handle(gpu.index);
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}
FAKE nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* out) {
  return find(__func__, [&](auto& gpu) { return gpu.index == index; }, out);
}
FAKE nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) {
  return find(__func__, [&](auto& gpu) { return gpu.index == index; }, out);
}
FAKE nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* out) {
  return find(__func__, [&](auto& gpu) { return gpu.uuid == uuid; }, out);
}
FAKE nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* out) {
  return find(__func__, [&](auto& gpu) { return gpu.uuid == uuid->text; }, out);
}
FAKE nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* out) {
  return find(__func__, [&](auto& gpu) { return gpu.serial == serial; }, out);
}
FAKE nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* out) {
  return find(__func__, [&](auto& gpu) { return gpu.bus_id == bus_id; }, out);
}
FAKE nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* out) {
  return find(
      __func__, [&](auto& gpu) { return gpu.bus_id == bus_id || gpu.bus_id.substr(4) == bus_id; },
      out);
}
FAKE nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  ENTER;
  *index = all.gpu(device).index;
  return NVML_SUCCESS;
}
FAKE nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  ENTER;
  std::strncpy(uuid, all.gpu(device).uuid.c_str(), length);
  return NVML_SUCCESS;
}

// The next GPU plays the part of a MIG device, and of a MIG device's GPU.
static nvmlReturn_t neighbour(const char* name, nvmlDevice_t device, unsigned by,
                              nvmlDevice_t* out) {
  NvmlBooks& all = nvml_books();
  const unsigned index = (all.gpu(device).index + by) % static_cast<unsigned>(all.gpus.size());
  return find(name, [&](auto& gpu) { return gpu.index == index; }, out);
}
FAKE nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                      nvmlDevice_t* out) {
  return neighbour(__func__, device, index, out);
}
FAKE nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device,
                                                               nvmlDevice_t* out) {
  return neighbour(__func__, device, 1, out);
}

FAKE nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  ENTER;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const FakeNvmlGpu& gpu = all.gpu(device);
  *memory = {gpu.total_bytes, gpu.total_bytes - gpu.used_bytes, gpu.used_bytes};
  return NVML_SUCCESS;
}
FAKE nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  ENTER;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != aliquot::driver_abi::nvml_struct_version<nvmlMemory_v2_t>(2))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const FakeNvmlGpu& gpu = all.gpu(device);
  *memory = {memory->version, gpu.total_bytes, 512u << 20, gpu.total_bytes - gpu.used_bytes,
             gpu.used_bytes};
  return NVML_SUCCESS;
}

static nvmlReturn_t all_gpus(const char* name, unsigned* room, nvmlDevice_t* out) {
  NvmlBooks& all = nvml_books();
  if (const nvmlReturn_t failed = all.enter(name); failed != NVML_SUCCESS) return failed;
  const auto there = static_cast<unsigned>(all.gpus.size());
  for (unsigned i = 0; i < there && i < *room; ++i) out[i] = all.handle(i);
  *room = there;
  return NVML_SUCCESS;
}
FAKE nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t, nvmlGpuTopologyLevel_t,
                                                   unsigned* room, nvmlDevice_t* out) {
  return all_gpus(__func__, room, out);
}
FAKE nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned, unsigned* room, nvmlDevice_t* out) {
  return all_gpus(__func__, room, out);
}

static nvmlReturn_t remote(const char* name, nvmlDevice_t device, unsigned link,
                           std::span<char> bus_id, unsigned skipped) {
  NvmlBooks& all = nvml_books();
  if (const nvmlReturn_t failed = all.enter(name); failed != NVML_SUCCESS) return failed;
  const auto& links = all.gpu(device).links;
  if (link >= links.size()) return NVML_ERROR_INVALID_ARGUMENT;
  std::snprintf(bus_id.data(), bus_id.size(), "%s", links[link].c_str() + skipped);
  return NVML_SUCCESS;
}
FAKE nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link,
                                                   nvmlPciInfo_t* pci) {
  return remote(__func__, device, link, pci->bus_id_legacy, 4);  // a domain of four digits
}
FAKE nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                                      nvmlPciInfo_t* pci) {
  return remote(__func__, device, link, pci->bus_id, 0);
}
