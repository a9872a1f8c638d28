// Any text as objects of the API: an error, or members that name exactly one way.
#include <cstdlib>
#include <string_view>

#include "inventory/domain_objects.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto objects = aliquot::inventory::parse_domain_objects(text, "fuzz");
  if (!objects) return 0;
  for (const auto& node : objects->hyper_nodes)
    for (const auto& member : node.members)
      if (member.name.empty() + member.pattern.empty() + member.labels.empty() != 2) std::abort();
  return 0;
}
