// Any bytes as a cubin or fat binary: an image or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <string>

#include "simdriver/cuda/binary_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The magic numbers are given, so that the fuzzer spends its time behind them.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.empty())
    bytes.replace(0, 4,
                  bytes[0] % 2 == 0 ? "\x7f"
                                      "ELF"
                                    : "\x50\xed\x55\xba");
  [[maybe_unused]] const auto image = aliquot::simdriver::read_binary_image(bytes);
  return 0;
}
