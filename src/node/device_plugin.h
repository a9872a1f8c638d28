// PluginServer: our half of kubelet's device plugin API v1beta1, on one unix socket.
//
// Translates: the decisions are a PluginDecisions, the devices a DeviceBoard. Leaves to others:
// when to serve and when to register (kubelet_watch.h). kubelet sets no deadline on Allocate and
// GetPreferredAllocation, and a hung one hangs the admission of pods: decisions answer at once.
// PreStartContainer has 30 s.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "node/device_board.h"

namespace aliquot::node {

struct MountedPath {
  std::string host, container;
  bool read_only = true;
};

struct DeviceNode {
  std::string host, container;
  std::string permissions = "rw";
};

// What a container gets at Allocate.
struct ContainerGift {
  std::map<std::string, std::string> environment;
  std::vector<MountedPath> mounts;
  std::vector<DeviceNode> devices;
  std::vector<std::string> cdi_devices;
  std::string create_hook;  // a program run before the container is created; by CDI alone
};

// Called on the server's threads, several at once. An error's text is what the user reads in the
// pod's status.
class PluginDecisions {
 public:
  virtual ~PluginDecisions() = default;
  // Which `count` of `available` a container had best get; `must` are among them.
  virtual std::vector<std::string> preferred(const std::vector<std::string>& available,
                                             const std::vector<std::string>& must,
                                             std::size_t count) = 0;
  virtual Result<ContainerGift> allocate(const std::vector<std::string>& ids) = 0;
  // A container with these ids is about to be created.
  virtual Status before_start(const std::vector<std::string>& ids) = 0;
};

// Ids of all slots the board offers, with health and NUMA, one message for kubelet: what a stream
// sends. 0 slots never happens: a plugin without GPUs does not serve.
class PluginServer {
 public:
  struct Options {
    std::filesystem::path socket;
    unsigned slots_per_gpu = 16;
    unsigned first_slot = 0;  // their numbers begin here
  };
  // Serves when this returns. `board` and `decisions` outlive it.
  static Result<std::unique_ptr<PluginServer>> serve(const Options& options,
                                                     const DeviceBoard& board,
                                                     PluginDecisions& decisions);
  virtual ~PluginServer() = default;

  // Somebody holds a ListAndWatch stream. Any thread.
  virtual bool has_stream() const = 0;
};

struct Registration {
  std::filesystem::path kubelet_socket;
  std::string endpoint;  // name of our socket beside kubelet's
  std::string resource;  // "aliquot.dev/gpu"
};

// Tells kubelet of a plugin that serves already: kubelet calls back before it answers. At most
// about 12 s. Errc::kInvalid: kubelet refuses the name.
Status register_plugin(const Registration& registration);

}  // namespace aliquot::node
