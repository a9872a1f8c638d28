// Whatever is written, the readers answer; what they accept prints and reads back as the same.
#include <cstdlib>

#include "inventory/topology_text.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace aliquot::inventory;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto node = parse_topology_text(text, "fuzz")) {
    const auto again = parse_topology_text(print_topology_text(*node), "again");
    if (!again || *again != *node) std::abort();
  }
  if (const auto node = parse_weight_matrix(text, "fuzz")) {
    const auto again = parse_weight_matrix(print_weight_matrix(*node), "again");
    if (!again || *again != *node) std::abort();
  }
  return 0;
}
