#include <cstdint>
#include <cstdlib>

#include "simdriver/machine_json.h"

// Whatever is accepted must be written and read again as the same machine.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aliquot;
  const auto json = format::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!json) return 0;
  const auto none = [](std::string_view) -> Result<simdriver::GpuModel> {
    return Error{Errc::kNotFound, "none"};
  };
  const auto machine = simdriver::machine_from_json(*json, "fuzz", none);
  if (!machine) return 0;
  const auto again = simdriver::machine_from_json(simdriver::to_json(*machine), "again", none);
  if (!again) std::abort();
  return 0;
}
