// What a driver says of all its GPUs now, each asked with a deadline: a call that never returns
// costs the answer about one GPU, never the others'.
//
// All are asked in one child process; only when it is not done in time in one for each GPU. Leaves
// to others: a running watch (the daemon's probes), judging. Functions that fork: one thread, and
// no others of the caller's may hold locks. Some 12 s at most.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "inventory/nvml.h"

namespace aliquot::inventory {

struct GpuAnswer {
  unsigned index = 0;
  NvmlGpu gpu;  // empty where not even that was answered
  NvmlState state;
  std::string trouble;  // why the state is not known; empty: it is
  bool operator==(const GpuAnswer&) const = default;
};

struct DriverAnswer {
  NvmlSystem system;
  std::vector<GpuAnswer> gpus;
  bool operator==(const DriverAnswer&) const = default;
};

struct LookLimits {
  Nanoseconds all = 2 * kSecond;     // for an ordinary answer about all GPUs
  Nanoseconds driver = 5 * kSecond;  // for the driver to come up, and to say what there is
  Nanoseconds gpu = 5 * kSecond;     // for each GPU, all at once
  Nanoseconds name = 1 * kSecond;    // for who a GPU is that said nothing else
};

// How a child comes to the driver; tests hand in their own.
using NvmlOpener = std::function<Result<std::unique_ptr<Nvml>>()>;

// An error: the driver itself does not answer, or refuses.
Result<DriverAnswer> look_at_driver(const NvmlOpener& open, const LookLimits& limits = {});

// `work`'s answer, or that there was none within `limit`; it runs in a child.
Result<std::string> bounded(const std::function<Result<std::string>()>& work, Nanoseconds limit);

}  // namespace aliquot::inventory
