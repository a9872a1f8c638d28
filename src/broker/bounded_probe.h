// BoundedProbes: a driver that hangs costs the loop its patience once, and is not asked again until
// it has answered.
//
// Each driver is asked on a thread of its own. An answer that does not come in time is an error,
// and so is at once whatever is asked while it is still out. A call into a driver that never
// returns cannot be called off: its thread stays, one for each such driver, until the process ends.
// Open() and the probes' calls: one thread at a time. What `inner` is asked, it is asked on the
// driver's thread, with signals blocked.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "broker/gpu_probe.h"
#include "common/clock.h"

namespace aliquot::broker {

struct ProbePatience {
  Nanoseconds open = 10 * kSecond;  // a driver may have to wake its GPUs
  Nanoseconds answer = 2 * kSecond;
};

class BoundedProbes final : public ProbeSource {
 public:
  explicit BoundedProbes(std::shared_ptr<ProbeSource> inner, ProbePatience patience = {})
      : inner_(std::move(inner)), patience_(patience) {}
  ~BoundedProbes() override;  // of its probes first
  BoundedProbes(const BoundedProbes&) = delete;
  BoundedProbes& operator=(const BoundedProbes&) = delete;
  Result<std::unique_ptr<GpuProbe>> open(const std::string& driver) override;

 private:
  class Worker;
  class Probe;

  std::shared_ptr<ProbeSource> inner_;  // a thread that hangs keeps it
  ProbePatience patience_;
  std::map<std::string, std::shared_ptr<Worker>> workers_;  // by driver
};

}  // namespace aliquot::broker
