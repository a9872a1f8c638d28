// DeviceBoard: the GPUs that the node offers, as kubelet is to see them. Whoever learns something
// (inventory, health) puts it here; the device plugin's streams wait for it.
//
// Any thread. Leaves to others: finding GPUs, judging health, who has which share.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "topology/shape.h"

namespace aliquot::node {

struct OfferedGpu {
  std::string uuid;
  std::optional<int> numa;
  bool healthy = true;
  bool operator==(const OfferedGpu&) const = default;
};

class DeviceBoard {
 public:
  // In PCI order; of a GPU that is known already the health stays. `shape`: how they are linked, in
  // the same order; null: not known.
  void set_gpus(std::vector<OfferedGpu> gpus, std::shared_ptr<const topology::Shape> shape);
  // Unknown UUIDs are ignored: a GPU may be gone.
  void set_healthy(const std::string& uuid, bool healthy);

  struct Content {
    std::uint64_t version = 0;  // grows with every change
    std::vector<OfferedGpu> gpus;
    // Shared with whoever still reads the content of an older version.
    std::shared_ptr<const topology::Shape> shape;
  };
  Content content() const;
  // Waits until the version is another than `seen`; nothing: it was not within `limit`, or a stop
  // was requested.
  std::optional<Content> wait(std::uint64_t seen, std::chrono::milliseconds limit,
                              const std::stop_token& stop) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  Content content_{1, {}, nullptr};
};

}  // namespace aliquot::node
