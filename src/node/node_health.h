// NodeHealth: each GPU's health from what its probe says, published on the device board: kubelet
// places nothing new on a GPU that is not usable, and everything again when it has recovered.
//
// Readings come far more often than health is judged: between two judgements of a GPU lies the
// configured interval, or less where GpuHealth has a doubt to settle; XIDs and silence count at
// once. Loop thread only, but states() and set_interval().
#pragma once

#include <atomic>
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

class NodeHealth final : public ProbeListener {
 public:
  // Both outlive this.
  NodeHealth(DeviceBoard& board, const Clock& clock, Nanoseconds interval, log::Log log)
      : board_(board), clock_(clock), interval_(interval), log_(std::move(log)) {}

  void read(const std::string& uuid, const GpuReading& reading) override;
  void silent(const std::string& uuid) override;
  void xid(const std::string& uuid, unsigned xid) override;

  // Of GPUs seen from now on, and of those known. Any thread.
  void set_interval(Nanoseconds interval) { interval_ = interval; }

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
  std::atomic<Nanoseconds> interval_;
  log::Log log_;
  mutable std::mutex mutex_;
  std::map<std::string, Gpu> gpus_;  // written on the loop under mutex_
};

}  // namespace aliquot::node
