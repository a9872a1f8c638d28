#include "simdriver/cuda/visible_devices.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "driver_abi/cuda_constants.h"

namespace aliquot::simdriver {
namespace {

std::string uuid_text(const char* before, const std::array<std::uint8_t, 16>& uuid) {
  std::string text = before;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", uuid[i]);
    text += digits;
  }
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct All {
  std::span<const DeviceInfo> gpus;
  std::span<const VisibleInstance> instances;
  std::vector<unsigned> order;  // indexes of GPUs, as the program counts them
};

std::int64_t speed(const DeviceInfo& gpu) {
  return std::int64_t{gpu.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]} *
         gpu.attributes[CU_DEVICE_ATTRIBUTE_CLOCK_RATE];
}

std::vector<unsigned> order_of(std::span<const DeviceInfo> gpus, const char* order) {
  std::vector<unsigned> indexes(gpus.size());
  std::iota(indexes.begin(), indexes.end(), 0u);
  if (order == nullptr || std::string_view(order) != "PCI_BUS_ID") {
    std::ranges::stable_sort(indexes, std::ranges::greater(),
                             [&](unsigned index) { return speed(gpus[index]); });
  }
  return indexes;
}

// The one element for which fits() holds; nothing: none, or several.
template <typename Element, typename Fits>
const Element* the_one(std::span<const Element> elements, Fits fits) {
  const Element* found = nullptr;
  for (const Element& element : elements) {
    if (!fits(element)) continue;
    if (found != nullptr) return nullptr;
    found = &element;
  }
  return found;
}

std::optional<unsigned> gpu_by_uuid(const All& all, std::string_view prefix) {
  const DeviceInfo* gpu = the_one(all.gpus, [&](const DeviceInfo& info) {
    return uuid_text("GPU-", info.uuid).starts_with(prefix);
  });
  if (gpu == nullptr) return std::nullopt;
  return static_cast<unsigned>(gpu - all.gpus.data());
}

std::optional<unsigned> number_in(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

// "MIG-GPU-uuid/gpu instance/compute instance", of drivers before 470.
const VisibleInstance* by_place(const All& all, std::string_view place) {
  const std::size_t first = place.find('/');
  const std::size_t second = place.find('/', std::min(first, place.size() - 1) + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return nullptr;
  const auto gpu = gpu_by_uuid(all, place.substr(0, first));
  const auto parent = number_in(place.substr(first + 1));
  const auto own = number_in(place.substr(second + 1));
  return the_one(all.instances, [&](const VisibleInstance& instance) {
    return gpu && parent && own && instance.gpu == *gpu && instance.gpu_instance == *parent &&
           instance.compute_instance == *own;
  });
}

const VisibleInstance* instance_named(const All& all, std::string_view entry) {
  if (entry.starts_with("MIG-GPU-")) return by_place(all, entry.substr(4));
  return the_one(all.instances, [&](const VisibleInstance& instance) {
    return uuid_text("MIG-", instance.uuid).starts_with(entry);
  });
}

// The device of a GPU: itself, or the first instance in one that is cut.
std::optional<unsigned> device_of_gpu(const All& all, unsigned gpu) {
  if (all.gpus[gpu].mig == 0) return gpu;
  for (const VisibleInstance& instance : all.instances)
    if (instance.gpu == gpu) return instance.number;
  return std::nullopt;
}

std::optional<unsigned> device_named(const All& all, std::string_view entry) {
  if (entry.starts_with("MIG-")) {
    const VisibleInstance* instance = instance_named(all, entry);
    return instance == nullptr ? std::nullopt : std::optional<unsigned>(instance->number);
  }
  if (entry.starts_with("GPU-")) {
    const auto gpu = gpu_by_uuid(all, entry);
    return gpu ? device_of_gpu(all, *gpu) : std::nullopt;
  }
  const auto place = number_in(entry);
  if (!place || *place >= all.order.size()) return std::nullopt;
  return device_of_gpu(all, all.order[*place]);
}

std::vector<unsigned> listed(const All& all, std::string_view list) {
  std::vector<unsigned> chosen;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const auto device = device_named(all, trimmed(list.substr(0, comma)));
    if (!device) break;
    if (std::ranges::find(chosen, *device) != chosen.end()) return {};
    chosen.push_back(*device);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return chosen;
}

}  // namespace

std::vector<unsigned> visible_devices(std::span<const DeviceInfo> gpus,
                                      std::span<const VisibleInstance> instances,
                                      const DeviceChoice& choice) {
  const All all{gpus, instances, order_of(gpus, choice.order)};
  std::vector<unsigned> chosen;
  if (choice.list != nullptr) {
    chosen = listed(all, choice.list);
  } else {
    for (const unsigned gpu : all.order) {
      if (const auto device = device_of_gpu(all, gpu)) chosen.push_back(*device);
    }
  }
  const auto instance =
      std::ranges::find_if(chosen, [&](unsigned device) { return device >= gpus.size(); });
  if (instance != chosen.end()) return {*instance};
  return chosen;
}

}  // namespace aliquot::simdriver
