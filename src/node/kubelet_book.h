// What kubelet says of who holds which devices: its podresources API, and its checkpoint file where
// that leaves something out (ordinary init containers).
//
// kubelet answers podresources at 100 questions a second with bursts of 10; callers share answers
// (late_binding.h does). A pod's devices appear there milliseconds after Allocate has returned,
// 400 ms before its container runs; never during Allocate. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace aliquot::node {

// The devices of one resource that one container holds.
struct HeldDevices {
  std::string pod_namespace, pod;  // empty in entries of the checkpoint
  std::string pod_uid;             // empty in entries of podresources
  std::string container;
  std::vector<std::string> ids;
  bool operator==(const HeldDevices&) const = default;
};

struct PodName {
  std::string pod_namespace, name;
  auto operator<=>(const PodName&) const = default;
};

struct KubeletBook {
  std::vector<HeldDevices> held;  // of the resources asked for
  std::vector<PodName> pods;      // all that are listed, with devices or not
};

class PodResources {
 public:
  virtual ~PodResources() = default;
  // Errc::kExhausted: asked too often; try again in some 100 ms.
  virtual Result<KubeletBook> list(const std::vector<std::string>& resources) = 0;
  // Ids of the resource that kubelet would give out: healthy ones of a plugin that is connected.
  virtual Result<std::vector<std::string>> allocatable(const std::string& resource) = 0;
};

// Over kubelet's socket, a few seconds at most for each call.
std::unique_ptr<PodResources> open_pod_resources(const std::filesystem::path& socket);

// Entries of kubelet_internal_checkpoint for the resources; init containers are among them, and
// those of pods that ended lately.
Result<std::vector<HeldDevices>> parse_checkpoint(std::string_view text,
                                                  const std::vector<std::string>& resources);

}  // namespace aliquot::node
