// GpuProbe: what the broker sees of a machine's GPUs. The NVML implementation lies in room
// inventory; tests bring their own. The broker asks on its loop's thread, so an answer should take
// milliseconds (bounded_probe.h stands before a driver that may hang); an error is told to whoever
// asked and tried again the next time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"

namespace aliquot::broker {

struct ProbedProcess {
  std::int32_t pid = 0;  // in the broker's pid namespace
  std::uint64_t bytes = 0;
};

struct ProbedGpu {
  std::string uuid;    // "GPU-8-4-4-4-12"
  std::string name;    // the model's
  std::string bus_id;  // "00000000:01:00.0"
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;              // measured, others' use included
  std::uint64_t context_overhead_bytes = 0;  // what one context costs on this model
  std::uint64_t time_scale_micro = 1'000'000;
  std::vector<ProbedProcess> processes;
  std::string trouble;  // why the figures are not known: it has no room; empty: they are
};

// How much of a sample period a process had the GPU for, as the driver says.
struct ProbedUse {
  std::int32_t pid = 0;
  std::uint64_t at_us = 0;  // end of the period; microseconds since 1970
  double percent = 0;
};

class GpuProbe {
 public:
  virtual ~GpuProbe() = default;
  // All GPUs in PCI order.
  virtual Result<std::vector<ProbedGpu>> gpus() = 0;
  // The newest sample of each process after `after_us`, by the GPU's place in gpus(). Empty: none,
  // or the driver does not tell.
  virtual Result<std::vector<ProbedUse>> use(std::uint32_t /*gpu*/, std::uint64_t /*after_us*/) {
    return std::vector<ProbedUse>{};
  }
  // Whether other users of this machine see the same GPUs: then one broker at a time may share one.
  virtual bool is_machine_wide() const { return false; }
};

// Opens a probe for a driver as requests name it ("nvidia", "sim:NAME", a path: the program that
// runs the broker decides). Kept open while leases use it; opened again after an error.
class ProbeSource {
 public:
  virtual ~ProbeSource() = default;
  virtual Result<std::unique_ptr<GpuProbe>> open(const std::string& driver) = 0;
};

}  // namespace aliquot::broker
