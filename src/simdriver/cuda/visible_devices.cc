#include "simdriver/cuda/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

namespace aliquot::simdriver {
namespace {

std::string uuid_text(const DeviceInfo& info) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < info.uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", info.uuid[i]);
    text += digits;
  }
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<unsigned> by_uuid(std::span<const DeviceInfo> all, std::string_view prefix) {
  std::optional<unsigned> found;
  for (unsigned i = 0; i < all.size(); ++i) {
    if (!uuid_text(all[i]).starts_with(prefix)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::optional<unsigned> device_of(std::span<const DeviceInfo> all, std::string_view entry) {
  if (entry.starts_with("GPU-")) return by_uuid(all, entry);
  unsigned index = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (error != std::errc() || end == entry.data() || index >= all.size()) return std::nullopt;
  return index;
}

}  // namespace

std::vector<unsigned> visible_devices(std::span<const DeviceInfo> all, const char* list) {
  std::vector<unsigned> chosen;
  if (list == nullptr) {
    chosen.resize(all.size());
    std::iota(chosen.begin(), chosen.end(), 0u);
    return chosen;
  }
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto device = device_of(all, trimmed(rest.substr(0, comma)));
    if (!device) break;
    if (std::ranges::find(chosen, *device) != chosen.end()) return {};
    chosen.push_back(*device);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return chosen;
}

}  // namespace aliquot::simdriver
