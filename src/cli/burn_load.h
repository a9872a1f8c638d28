// The load that `aliquot burn` puts on one GPU through the driver API. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace aliquot::cli {

// Kernels of several lengths: each launch draws one.
struct BurnMix {
  struct Class {
    Nanoseconds kernel = 0;
    double probability = 1;
  };
  std::vector<Class> classes;
  double sigma = 0;     // log-normal spread of each
  bool pareto = false;  // exponent 1.5 with the class's length as mean, at most 50 ms
};
// "50us", "50us:0.7,5ms:0.3", "pareto:300us", "5us~0.3" (a spread). Lengths in us or ms.
Result<BurnMix> parse_mix(const std::string& text);

struct BurnRequest {
  std::string libcuda;  // absolute path
  unsigned gpu = 0;
  std::uint64_t memory_bytes = 0;  // taken in chunks until this much, or until refused
  std::uint64_t chunk_bytes = 64ull << 20;
  Nanoseconds kernel = 0;  // length of one kernel; 0: no kernels
  unsigned streams = 1;
  unsigned graph_nodes = 0;  // kernels of one graph launch; 0: plain launches
  BurnMix mix;               // of kernels; empty: all of the one length
  unsigned depth = 0;        // so many launches are kept queued on each stream; 0: bursts of 5 ms
  unsigned seed = 1;         // of what is drawn
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
