#include "model/gpu_set.h"

namespace aliquot::model {

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

}  // namespace aliquot::model
