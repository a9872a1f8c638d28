#include <cstdint>
#include <cstdlib>

#include "format/json.h"

// Whatever parses must print, and parse again to the same value.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using aliquot::format::parse_json;
  const auto json = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!json) return 0;
  const auto again = parse_json(json->dump(2), "again");
  if (!again || !(*again == *json)) std::abort();
  return 0;
}
