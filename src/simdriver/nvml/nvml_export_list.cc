// Build tool: prints the linker's version script for a libnvidia-ml of one CUDA version (11080).

#include <cstdio>
#include <cstdlib>

#include "driver_abi/nvml_table.h"

int main(int argc, char** argv) {
  const int version = argc == 2 ? std::atoi(argv[1]) : 0;
  if (version <= 0) {
    std::fputs("usage: nvml_export_list CUDA_VERSION (13000 is 13.0)\n", stderr);
    return 2;
  }
  std::puts("{ global:");
  for (const aliquot::driver_abi::Entry& entry : aliquot::driver_abi::kNvmlEntries)
    if (entry.in_version(version)) std::printf("  %s;\n", entry.symbol.data());
  std::puts("local: *; };");
  return 0;
}
