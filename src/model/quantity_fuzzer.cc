// Whatever is written, the parser answers; what it accepts stays within its promises, and cores
// survive being printed and read again.
#include <cstdlib>

#include "model/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace aliquot::model;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto memory = parse_memory(text)) {
    const std::uint64_t bytes = memory->bytes_of(kLargestMemory);
    if (bytes == 0 || bytes > kLargestMemory || memory_text(bytes).empty()) std::abort();
  }
  if (const auto cores = parse_cores(text)) {
    const auto again = parse_cores(cores_text(*cores));
    if (!again || *again != *cores) std::abort();
  }
  return 0;
}
