// The load that `aliquot burn` puts on one GPU through the driver API. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/result.h"

namespace aliquot::cli {

struct BurnRequest {
  std::string libcuda;  // absolute path
  unsigned gpu = 0;
  std::uint64_t memory_bytes = 0;  // taken in chunks until this much, or until refused
  std::uint64_t chunk_bytes = 64ull << 20;
  Nanoseconds kernel = 0;  // length of one kernel; 0: no kernels
  unsigned streams = 1;
  unsigned graph_nodes = 0;  // kernels of one graph launch; 0: plain launches
  Nanoseconds duration = 0;  // the memory is held, and kernels are launched, for so long
};

struct BurnReport {
  std::string gpu_name;
  std::uint64_t total_bytes = 0;  // as cuMemGetInfo says after the context was made
  std::uint64_t free_bytes = 0;
  std::uint64_t held_bytes = 0;
  std::uint64_t free_bytes_while_held = 0;
  std::string refusal;  // the driver's name for the first refused allocation; empty: none
  std::uint64_t kernels = 0;
  Nanoseconds kernel_time = 0;  // from the first launch until all were done
};

// Errors name the driver call and the driver's own word for what went wrong. A refused allocation
// is no error but part of the report. `clock` measures; everything taken is given back.
Result<BurnReport> burn(const BurnRequest& request, const Clock& clock);

}  // namespace aliquot::cli
