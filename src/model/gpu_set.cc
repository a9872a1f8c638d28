#include "model/gpu_set.h"

#include <charconv>
#include <optional>

namespace aliquot::model {
namespace {

std::optional<unsigned> index_of(std::string_view text) {
  unsigned value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string gpu_set_text(GpuSet set) {
  if (set.empty()) return "none";
  std::string text;
  for (unsigned from = 0; from < GpuSet::kCapacity; ++from) {
    if (!set.contains(from)) continue;
    unsigned to = from;
    while (to + 1 < GpuSet::kCapacity && set.contains(to + 1)) ++to;
    if (!text.empty()) text += ',';
    text += std::to_string(from);
    // Two neighbours read better as "0,1".
    if (to > from) text += (to == from + 1 ? "," : "-") + std::to_string(to);
    from = to;
  }
  return text;
}

Result<GpuSet> parse_gpu_set(std::string_view text) {
  GpuSet set;
  if (text.empty() || text == "none") return set;
  const auto refused = [&](const std::string& why) {
    return Error{Errc::kInvalid, "GPUs \"" + std::string(text) + "\": " + why};
  };
  for (std::string_view rest = text;;) {
    const std::string_view range = rest.substr(0, rest.find(','));
    const std::size_t dash = range.find('-');
    const auto from = index_of(range.substr(0, dash));
    const auto to = dash == std::string_view::npos ? from : index_of(range.substr(dash + 1));
    if (!from || !to || *to < *from) return refused("write indices and ranges, as in 0-3,6");
    if (*to >= GpuSet::kCapacity) return refused("at most index 31");
    for (unsigned gpu = *from; gpu <= *to; ++gpu) {
      if (set.contains(gpu)) return refused(std::to_string(gpu) + " is named twice");
      set.insert(gpu);
    }
    if (range.size() == rest.size()) return set;
    rest.remove_prefix(range.size() + 1);
  }
}

}  // namespace aliquot::model
