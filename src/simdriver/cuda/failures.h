// Failures on command: the n-th call of a symbol answers a given result, once. They come from the
// environment, ALIQUOT_SIM_FAIL="cuMemAlloc_v2:3=2,cuLaunchKernel:1=719", counted per process, and
// from the server (`Op::kFailNth`), counted from when a process sees them. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "driver_abi/cuda_types.h"
#include "simdriver/channel/ring.h"

namespace aliquot::simdriver {

struct Failure {
  std::string_view symbol;
  std::uint32_t nth = 0;
  CUresult result = 0;
  bool operator==(const Failure&) const = default;
};

// Entries that do not read as above are left out. The views are into `text`.
std::vector<Failure> parse_failures(std::string_view text);

// 0: the call goes on.
CUresult injected_failure(std::string_view symbol, const MachinePage* page);

}  // namespace aliquot::simdriver
