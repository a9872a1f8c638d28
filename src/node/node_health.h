// NodeHealth: each GPU's health from what its probe says, published on the device board: kubelet
// places nothing new on a GPU that is not usable, and everything again when it has recovered.
//
// Readings come far more often than health is judged: between two judgements of a GPU lies the
// configured interval, or less where GpuHealth has a doubt to settle; XIDs and silence count at
// once. Loop thread only, but states() and set_options().
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "inventory/health.h"
#include "log/log.h"
#include "node/device_board.h"
#include "node/probe_pool.h"

namespace aliquot::node {

struct HealthChange {
  std::string uuid;
  inventory::HealthState before = inventory::HealthState::kHealthy;
  inventory::HealthState after = inventory::HealthState::kHealthy;
  std::string why;  // evidence, oldest first; empty when nothing stands against it
};

class NodeHealth final : public ProbeListener {
 public:
  // Told of every change, on the loop; it must not ask this NodeHealth. May be empty.
  using OnChange = std::function<void(const HealthChange&)>;
  // References outlive this.
  NodeHealth(DeviceBoard& board, const Clock& clock, const inventory::HealthOptions& options,
             log::Log log, OnChange on_change = {})
      : board_(board),
        clock_(clock),
        log_(std::move(log)),
        on_change_(std::move(on_change)),
        options_(options) {}

  void read(const std::string& uuid, const GpuReading& reading) override;
  void silent(const std::string& uuid) override;
  void xid(const std::string& uuid, unsigned xid) override;

  // Of GPUs seen from now on, and of those known. Any thread.
  void set_options(const inventory::HealthOptions& options);

  struct State {
    std::string uuid;
    inventory::HealthState state = inventory::HealthState::kHealthy;
    std::vector<inventory::HealthFault> faults;
    std::map<unsigned, inventory::XidCount> xids;
  };
  std::vector<State> states() const;  // any thread

 private:
  struct Gpu {
    inventory::GpuHealth health;
    Nanoseconds judged_at = 0;
  };
  Gpu& gpu(const std::string& uuid);
  void publish(const std::string& uuid, Gpu& gpu, inventory::HealthState before);

  DeviceBoard& board_;
  const Clock& clock_;
  log::Log log_;
  OnChange on_change_;
  mutable std::mutex mutex_;
  inventory::HealthOptions options_;
  std::map<std::string, Gpu> gpus_;  // written on the loop under mutex_
};

}  // namespace aliquot::node
