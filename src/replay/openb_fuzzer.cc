// Any text as an openb list: an error or pods, never a fault.
#include <cstddef>
#include <cstdint>

#include "replay/openb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)aliquot::replay::parse_openb_nodes(text, "fuzz");
  if (const auto pods = aliquot::replay::parse_openb_pods(text, "fuzz"))
    for (const auto& pod : *pods) (void)aliquot::replay::request_of(pod);
  return 0;
}
