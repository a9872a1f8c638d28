// Prints what the tables answer, for the checks in tests/ that compute the same from elsewhere.
//
//   abi_answers gpa     reads "base version flag driver" lines, prints the symbol, "not-found" or
//                       "version-too-low" for each
//   abi_answers cuda    prints symbol, base, since, until, kind of every row
//   abi_answers nvml    the same of the NVML table
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "driver_abi/coverage.h"
#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_table.h"

namespace {

namespace driver_abi = aliquot::driver_abi;

constexpr unsigned int kPerThreadStreams = 2;

void answer_requests() {
  std::string base;
  int version = 0;
  unsigned int flag = 0;
  int driver = 0;
  while (std::cin >> base >> version >> flag >> driver) {
    const bool streams = (flag & kPerThreadStreams) != 0;
    const auto answer = driver_abi::symbol_for({base, version, streams}, driver);
    switch (answer.status) {
      case driver_abi::ProcAddressStatus::kFound:
        std::cout << driver_abi::entry(answer.id).symbol << '\n';
        break;
      case driver_abi::ProcAddressStatus::kUnknown:
        std::cout << "not-found\n";
        break;
      case driver_abi::ProcAddressStatus::kVersionTooLow:
        std::cout << "version-too-low\n";
        break;
    }
  }
}

void print_rows(std::span<const driver_abi::Entry> entries) {
  for (const auto& row : entries)
    std::cout << row.symbol << '\t' << row.base << '\t' << row.since << '\t' << row.until << '\t'
              << driver_abi::to_string(row.kind) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "gpa")
    answer_requests();
  else if (what == "cuda")
    print_rows(driver_abi::kCudaEntries);
  else if (what == "nvml")
    print_rows(driver_abi::kNvmlEntries);
  else {
    std::cerr << "usage: abi_answers gpa|cuda|nvml\n";
    return 2;
  }
  return 0;
}
