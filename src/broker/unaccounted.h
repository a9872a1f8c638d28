// What a lease holds beyond what is charged to it: how much of that is ordinary, and what follows.
//
// The ledger is a claim of the tenant, the driver's figure per process is not. Their difference is
// ordinary up to a slack: rounding inside the driver's blocks, modules' variables, stacks, and
// contexts that cost more than their model says. Beyond it, the lease may take that much less: what
// it holds unseen it does not get twice. A reading is not an instant (the driver is asked between
// two looks at the ledger), so a program that allocates and frees all the time can look guilty for
// one: the least of several counts. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace aliquot::broker {

inline constexpr std::uint64_t kSlackBytes = 256ull << 20;
inline constexpr std::uint64_t kSlackBytesPerProcess = 64ull << 20;

constexpr std::uint64_t ordinary_excess(std::uint64_t charged_bytes, std::uint64_t processes) {
  return kSlackBytes + processes * kSlackBytesPerProcess + charged_bytes / 10;
}

// What `measured` is beyond `charged` and the slack.
constexpr std::uint64_t excess(std::uint64_t measured_bytes, std::uint64_t charged_bytes,
                               std::uint64_t processes) {
  const std::uint64_t explained = charged_bytes + ordinary_excess(charged_bytes, processes);
  return measured_bytes > explained ? measured_bytes - explained : 0;
}

// The readings of one GPU of a lease, one a second: what stood in two of them in a row.
class SteadyExcess {
 public:
  explicit SteadyExcess(std::uint64_t last = 0) : last_(last) {}
  std::uint64_t after(std::uint64_t reading) {
    const std::uint64_t steady = std::min(last_, reading);
    last_ = reading;
    return steady;
  }

 private:
  std::uint64_t last_;
};

}  // namespace aliquot::broker
