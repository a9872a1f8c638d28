#include "node/node_health.h"

#include <algorithm>

namespace aliquot::node {

using inventory::HealthState;

NodeHealth::Gpu& NodeHealth::gpu(const std::string& uuid) {
  const auto known = gpus_.find(uuid);
  if (known != gpus_.end()) return known->second;
  return gpus_.emplace(uuid, Gpu{inventory::GpuHealth(options_), 0}).first->second;
}

void NodeHealth::set_options(const inventory::HealthOptions& options) {
  const std::lock_guard lock(mutex_);
  options_ = options;
  for (auto& [uuid, one] : gpus_) one.health.set_options(options);
}

void NodeHealth::read(const std::string& uuid, const GpuReading& reading) {
  const Nanoseconds now = clock_.now();
  const std::lock_guard lock(mutex_);
  Gpu& one = gpu(uuid);
  const Nanoseconds due = std::min(one.health.next_probe(), one.judged_at + options_.interval);
  if (one.judged_at != 0 && now < due) return;
  one.judged_at = now;
  const HealthState before = one.health.state();
  one.health.on_probe(reading.health, now);
  publish(uuid, one, before);
}

void NodeHealth::silent(const std::string& uuid) {
  inventory::HealthReading reading;
  reading.answered = false;
  const std::lock_guard lock(mutex_);
  Gpu& one = gpu(uuid);
  one.judged_at = clock_.now();
  const HealthState before = one.health.state();
  one.health.on_probe(reading, one.judged_at);
  publish(uuid, one, before);
}

void NodeHealth::xid(const std::string& uuid, unsigned xid) {
  const std::lock_guard lock(mutex_);
  Gpu& one = gpu(uuid);
  const HealthState before = one.health.state();
  one.health.on_xid(xid, clock_.now());
  publish(uuid, one, before);
}

void NodeHealth::publish(const std::string& uuid, Gpu& one, HealthState before) {
  board_.set_healthy(uuid, one.health.usable());
  if (one.health.state() == before) return;
  std::string why;
  for (const inventory::HealthFault& fault : one.health.faults())
    why += (why.empty() ? "" : "; ") + fault.evidence;
  log_.warning("GPU " + uuid + " is " + std::string(inventory::name_of(one.health.state())) +
               (why.empty() ? "" : ": " + why));
  if (on_change_) on_change_({uuid, before, one.health.state(), why});
}

std::vector<NodeHealth::State> NodeHealth::states() const {
  const std::lock_guard lock(mutex_);
  std::vector<State> states;
  for (const auto& [uuid, one] : gpus_)
    states.push_back({uuid, one.health.state(), one.health.faults(), one.health.xids()});
  return states;
}

}  // namespace aliquot::node
