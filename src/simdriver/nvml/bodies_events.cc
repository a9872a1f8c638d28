// Event sets: what the device server reports (XIDs, ECC errors), waited for by asking it.

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

struct nvmlEventSet_st {
  std::mutex mutex;
  std::map<unsigned, unsigned long long> wanted;  // by GPU: types
  std::uint64_t seen = 0;                         // serial of the last event looked at
};

namespace aliquot::simdriver::nvml::bodies {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{20};
constexpr unsigned long long kSupported =
    nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeXidCriticalError;

// The sets that programs hold, so that a stale pointer is an error and not a crash.
class EventSets {
 public:
  static EventSets& instance() {
    static EventSets& sets = *new EventSets;  // NOLINT: programs free sets from atexit handlers
    return sets;
  }
  nvmlEventSet_t add() {
    const std::lock_guard lock(mutex_);
    auto added = std::make_shared<nvmlEventSet_st>();
    sets_.push_back(added);
    return added.get();
  }
  // Shared with a thread that waits while another one frees the set.
  std::shared_ptr<nvmlEventSet_st> find(nvmlEventSet_t set) {
    const std::lock_guard lock(mutex_);
    const auto found = position(set);
    return found == sets_.end() ? nullptr : *found;
  }
  bool remove(nvmlEventSet_t set) {
    const std::lock_guard lock(mutex_);
    const auto found = position(set);
    if (found == sets_.end()) return false;
    sets_.erase(found);
    return true;
  }

 private:
  using Sets = std::vector<std::shared_ptr<nvmlEventSet_st>>;
  Sets::iterator position(nvmlEventSet_t set) {
    return std::ranges::find(sets_, set, [](const auto& known) { return known.get(); });
  }
  std::mutex mutex_;
  Sets sets_;
};

unsigned long long type_of(GpuEventKind kind) {
  switch (kind) {
    case GpuEventKind::kSingleBitEcc:
      return nvmlEventTypeSingleBitEccError;
    case GpuEventKind::kDoubleBitEcc:
      return nvmlEventTypeDoubleBitEccError;
    case GpuEventKind::kXid:
      break;
  }
  return nvmlEventTypeXidCriticalError;
}

// The next event that the set wants: NVML_ERROR_TIMEOUT when there is none yet.
nvmlReturn_t next_event(nvmlEventSet_st& set, nvmlEventData_t& data) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    const std::lock_guard lock(set.mutex);
    std::uint64_t newest = 0;
    std::vector<GpuEvent> events;
    const nvmlReturn_t result = held.telemetry().events(set.seen, newest, events);
    if (result != NVML_SUCCESS) return result;
    for (const GpuEvent& event : events) {
      set.seen = event.serial;
      const auto wanted = set.wanted.find(event.gpu);
      if (wanted == set.wanted.end() || (wanted->second & type_of(event.kind)) == 0) continue;
      data = {held.handle(event.gpu), type_of(event.kind), event.data, 0xffffffff, 0xffffffff};
      return NVML_SUCCESS;
    }
    return NVML_ERROR_TIMEOUT;
  });
}

nvmlReturn_t wait_event(nvmlEventSet_t handle, nvmlEventData_t* data, unsigned timeout_ms) {
  const std::shared_ptr<nvmlEventSet_st> set = EventSets::instance().find(handle);
  if (set == nullptr || data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const nvmlReturn_t result = next_event(*set, *data);
    if (result != NVML_ERROR_TIMEOUT) return result;
    const Clock::time_point now = Clock::now();
    if (now >= end) return NVML_ERROR_TIMEOUT;
    std::this_thread::sleep_for(std::min<Clock::duration>(kLookEvery, end - now));
  }
}

}  // namespace

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types) {
  return tell(device, types, [](const Gpu&) { return kSupported; });
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  return with_library([&](const Library::Held&) -> nvmlReturn_t {
    if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *set = EventSets::instance().add();
    return NVML_SUCCESS;
  });
}

// Events from before the first registration are not told.
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t handle) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    const std::shared_ptr<nvmlEventSet_st> set = EventSets::instance().find(handle);
    if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if ((types & ~kSupported) != 0) return NVML_ERROR_NOT_SUPPORTED;
    const std::lock_guard lock(set->mutex);
    if (set->wanted.empty()) {
      std::vector<GpuEvent> old;
      const nvmlReturn_t result = gpu.telemetry.events(UINT64_MAX, set->seen, old);
      if (result != NVML_SUCCESS) return result;
    }
    set->wanted[gpu.index] |= types;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeout_ms) {
  // The old struct ends before the instance ids.
  nvmlEventData_t whole;
  if (data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t result = wait_event(set, &whole, timeout_ms);
  if (result == NVML_SUCCESS) std::memcpy(data, &whole, offsetof(nvmlEventData_t, gpu_instance));
  return result;
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeout_ms) {
  return wait_event(set, data, timeout_ms);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  return EventSets::instance().remove(set) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

}  // namespace aliquot::simdriver::nvml::bodies
