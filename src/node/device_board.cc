#include "node/device_board.h"

#include <algorithm>
#include <utility>

namespace aliquot::node {

void DeviceBoard::set_gpus(std::vector<OfferedGpu> gpus,
                           std::shared_ptr<const topology::Shape> shape) {
  const std::lock_guard lock(mutex_);
  content_.shape = std::move(shape);
  for (OfferedGpu& gpu : gpus)
    if (const auto known = std::ranges::find(content_.gpus, gpu.uuid, &OfferedGpu::uuid);
        known != content_.gpus.end())
      gpu.healthy = known->healthy;
  if (content_.gpus == gpus) return;
  content_.gpus = std::move(gpus);
  ++content_.version;
  changed_.notify_all();
}

void DeviceBoard::set_healthy(const std::string& uuid, bool healthy) {
  const std::lock_guard lock(mutex_);
  const auto gpu = std::ranges::find(content_.gpus, uuid, &OfferedGpu::uuid);
  if (gpu == content_.gpus.end() || gpu->healthy == healthy) return;
  gpu->healthy = healthy;
  ++content_.version;
  changed_.notify_all();
}

DeviceBoard::Content DeviceBoard::content() const {
  const std::lock_guard lock(mutex_);
  return content_;
}

std::optional<DeviceBoard::Content> DeviceBoard::wait(std::uint64_t seen,
                                                      std::chrono::milliseconds limit,
                                                      const std::stop_token& stop) const {
  std::unique_lock lock(mutex_);
  const auto is_news = [&] { return content_.version != seen; };
  if (!changed_.wait_for(lock, stop, limit, is_news)) return {};
  return content_;
}

}  // namespace aliquot::node
