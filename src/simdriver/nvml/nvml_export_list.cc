// Build tool: prints the linker's version script for libnvidia-ml: the names of every version. The
// copy that a machine gets hides those that its version has not (library_versions.h).

#include <cstdio>

#include "driver_abi/nvml_table.h"

int main() {
  std::puts("{ global:");
  for (const aliquot::driver_abi::Entry& entry : aliquot::driver_abi::kNvmlEntries)
    std::printf("  %s;\n", entry.c_str());
  std::puts("local: *; };");
  return 0;
}
