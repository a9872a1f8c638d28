// The share's memory as NVML shows it: the same pair that cuMemGetInfo gives (guards_views.cc),
// with what the whole lease uses.
#include <algorithm>

#include "interposer/account.h"
#include "interposer/nvml_guards.h"
#include "interposer/nvml_view.h"
#include "interposer/pools.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

struct ShareMemory {
  std::uint64_t total, used, free;
};

// A limit lowered below what is used shows a full share, not one of negative size.
ShareMemory share_memory(nvmlDevice_t device, std::uint64_t physical) {
  const auto gpu = static_cast<unsigned>(nvml_view::gpu_of(device));
  settle_pools(gpu);
  const std::uint64_t total = std::min(limit_bytes(gpu), physical);
  const std::uint64_t used = std::min(used_bytes(gpu), total);
  return {total, used, total - used};
}

}  // namespace

namespace nvml_guard {

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  nvmlMemory_t whole{};
  const nvmlReturn_t result =
      real::nvmlDeviceGetMemoryInfo(device, memory != nullptr ? &whole : nullptr);
  if (result != NVML_SUCCESS) return result;
  const ShareMemory share = tenant().is_observed()
                                ? ShareMemory{whole.total, whole.used, whole.free}
                                : share_memory(device, whole.total);
  *memory = {share.total, share.free, share.used};
  return NVML_SUCCESS;
}

// What the driver keeps for itself is in nobody's share: nothing is reserved, the parts add up.
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (memory == nullptr) return real::nvmlDeviceGetMemoryInfo_v2(device, nullptr);
  // The version stands in its first word; a struct of another version may be shorter than ours.
  nvmlMemory_v2_t whole{};
  whole.version = memory->version;
  const nvmlReturn_t result = real::nvmlDeviceGetMemoryInfo_v2(device, &whole);
  if (result != NVML_SUCCESS) return result;
  if (tenant().is_observed()) {
    *memory = whole;
    return NVML_SUCCESS;
  }
  const ShareMemory share = share_memory(device, whole.total);
  memory->total = share.total;
  memory->reserved = 0;
  memory->free = share.free;
  memory->used = share.used;
  return NVML_SUCCESS;
}

}  // namespace nvml_guard
}  // namespace aliquot::interposer
