// Any bytes as PTX: an image or an error, never a crash.
#include <cstddef>
#include <cstdint>

#include "simdriver/cuda/ptx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const auto image = aliquot::simdriver::read_ptx(text);
  return 0;
}
