#include "interposer/devices.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

constexpr char kVisible[] = "CUDA_VISIBLE_DEVICES=";
constexpr std::size_t kVisibleBytes = sizeof kVisible - 1;
constexpr int kMaxOrdinals = 64;
constexpr std::uint8_t kUnknown = 0;  // the map holds gpu + 1

constinit std::atomic<std::uint8_t> gpu_by_ordinal[kMaxOrdinals];
constinit std::atomic<bool> initialised{false};
// The one lock that is held over a driver call: until the driver has read the environment no other
// thread may initialise it.
constinit ShortLock initialising;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The grant's GPU that one entry of CUDA_VISIBLE_DEVICES names: an index, or the start of a UUID.
int gpu_named(const char* entry, std::size_t length, const wire::Grant& grant) {
  if (length == 0) return -1;
  if (is_digit(entry[0])) {
    unsigned index = 0;
    for (std::size_t i = 0; i < length; ++i) {
      if (!is_digit(entry[i]) || index > wire::kMaxGpus) return -1;
      index = index * 10 + static_cast<unsigned>(entry[i] - '0');
    }
    return index < grant.gpu_count ? static_cast<int>(index) : -1;
  }
  int found = -1;
  for (unsigned i = 0; i < grant.gpu_count; ++i) {
    if (strncmp(grant.gpu[i].uuid_text, entry, length) != 0) continue;
    if (found >= 0) return -1;  // ambiguous
    found = static_cast<int>(i);
  }
  return found;
}

const char* visible_devices() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (strncmp(*entry, kVisible, kVisibleBytes) == 0) return *entry + kVisibleBytes;
  return nullptr;
}

// For its life the process's environment says which GPUs the lease has. Another array is put in
// its place instead of changing it, so that a thread that reads the environment meanwhile sees one
// or the other, whole. Both stay for ever.
class VisibleDevices {
 public:
  explicit VisibleDevices(const wire::Grant& grant) : before_(environ) {
    static constinit char
        variable[kVisibleBytes + wire::kMaxGpus * (sizeof grant.gpu[0].uuid_text)]{};
    memcpy(variable, kVisible, kVisibleBytes);
    select_devices(visible_devices(), grant, variable + kVisibleBytes,
                   sizeof variable - kVisibleBytes);
    std::size_t count = 0;
    while (before_ != nullptr && before_[count] != nullptr) ++count;
    void* memory = mmap(nullptr, (count + 2) * sizeof(char*), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    ours_ = static_cast<char**>(memory);
    std::size_t n = 0;
    ours_[n++] = variable;
    for (std::size_t i = 0; i < count; ++i)
      if (strncmp(before_[i], kVisible, kVisibleBytes) != 0) ours_[n++] = before_[i];
    __atomic_store_n(&environ, ours_, __ATOMIC_RELEASE);
  }
  ~VisibleDevices() {
    // A thread that has changed the environment meanwhile has made an array of its own.
    char** expected = ours_;
    if (ours_ != nullptr)
      __atomic_compare_exchange_n(&environ, &expected, before_, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED);
  }
  VisibleDevices(const VisibleDevices&) = delete;
  VisibleDevices& operator=(const VisibleDevices&) = delete;

  bool in_force() const { return ours_ != nullptr; }

 private:
  char** before_;
  char** ours_ = nullptr;
};

// By UUID; MIG devices have one of their own only in the newer call.
unsigned ask_driver(CUdevice device) {
  CUuuid uuid{};
  CUresult result = has(driver_abi::Cuda::cuDeviceGetUuid_v2)
                        ? real::cuDeviceGetUuid_v2(&uuid, device)
                        : real::cuDeviceGetUuid(&uuid, device);
  if (result != CUDA_SUCCESS) return kForeignGpu;
  for (unsigned i = 0; i < tenant().gpu_count(); ++i)
    if (memcmp(tenant().grant().gpu[i].uuid, uuid.bytes, sizeof uuid.bytes) == 0) return i;
  return kForeignGpu;
}

// A driver that was initialised before, past us, may show GPUs that are not ours.
bool all_devices_are_leased() {
  int count = 0;
  if (real::cuDeviceGetCount(&count) != CUDA_SUCCESS) return true;
  for (CUdevice device = 0; device < count; ++device)
    if (gpu_of(device) == kForeignGpu) return false;
  return true;
}

}  // namespace

void select_devices(const char* wanted, const wire::Grant& grant, char* out, unsigned out_bytes) {
  unsigned used = 0;
  const auto add = [&](unsigned gpu) {
    const char* text = grant.gpu[gpu].uuid_text;
    const std::size_t length = strnlen(text, sizeof grant.gpu[gpu].uuid_text);
    if (used + length + 2 > out_bytes) return;
    if (used != 0) out[used++] = ',';
    memcpy(out + used, text, length);
    used += static_cast<unsigned>(length);
  };
  if (wanted == nullptr) {
    for (unsigned i = 0; i < grant.gpu_count; ++i) add(i);
  } else {
    for (const char* entry = wanted;; ++entry) {
      while (*entry == ' ') ++entry;
      std::size_t length = strcspn(entry, ",");
      const char* next = entry + length;
      while (length != 0 && entry[length - 1] == ' ') --length;
      const int gpu = gpu_named(entry, length, grant);
      if (gpu < 0) break;
      add(static_cast<unsigned>(gpu));
      if (*next == 0) break;
      entry = next;
    }
  }
  if (used == 0) memcpy(out, "-1", used = 2);
  out[used] = 0;
}

CUresult initialise_driver(unsigned flags) {
  if (initialised.load(std::memory_order_acquire)) return real::cuInit(flags);
  const Holding holding(initialising);
  if (initialised.load(std::memory_order_acquire)) return real::cuInit(flags);
  {
    const VisibleDevices visible(tenant().grant());
    if (!visible.in_force()) return CUDA_ERROR_NO_DEVICE;
    const CUresult result = real::cuInit(flags);
    if (result != CUDA_SUCCESS) return result;
  }
  if (!all_devices_are_leased()) return CUDA_ERROR_NO_DEVICE;
  initialised.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

unsigned gpu_of(CUdevice device) {
  if (device < 0 || device >= kMaxOrdinals) return kForeignGpu;
  std::atomic<std::uint8_t>& known = gpu_by_ordinal[device];
  const std::uint8_t gpu = known.load(std::memory_order_relaxed);
  if (gpu != kUnknown) return gpu - 1u;
  const unsigned asked = ask_driver(device);
  // Ordinals do not change once the driver is initialised; before that it answers an error.
  if (asked != kForeignGpu)
    known.store(static_cast<std::uint8_t>(asked + 1), std::memory_order_relaxed);
  return asked;
}

unsigned gpu_of(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? gpu_of(location.id) : kNoGpu;
}

CUdevice device_of(unsigned gpu) {
  for (CUdevice device = 0; device < kMaxOrdinals; ++device)
    if (gpu_by_ordinal[device].load(std::memory_order_relaxed) == gpu + 1) return device;
  return -1;
}

Place current_place() {
  Place place;
  CUcontext context = nullptr;
  CUdevice device = -1;
  place.result = real::cuCtxGetDevice(&device);
  if (place.result != CUDA_SUCCESS) return place;
  place.result = real::cuCtxGetCurrent(&context);
  place.context = reinterpret_cast<std::uint64_t>(context);
  place.gpu = gpu_of(device);
  return place;
}

void forget_devices() {
  initialising.reset();
  initialised = false;
  for (auto& gpu : gpu_by_ordinal) gpu = kUnknown;
}

}  // namespace aliquot::interposer
