// FakeKubelet: for tests, the half of kubelet that a device plugin meets, in this process.
//
// As the real one it wipes the sockets of its directory when it starts, dials a plugin back within
// Register, gives out ids in random order (seeded), sets no deadline on Allocate, and forgets all
// plugins when it restarts. podresources is served from what it has allocated. Any thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "node/device_plugin.h"

namespace aliquot::node {

class FakeKubelet {
 public:
  // `directory` is its root: device-plugins/ and pod-resources/ are made in it.
  explicit FakeKubelet(std::filesystem::path directory, unsigned seed = 1);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  std::filesystem::path plugin_directory() const;
  std::filesystem::path pod_resources_socket() const;

  // Wipes the directory and serves; again after stop().
  void start();
  void stop();
  // Register fails with this for names that are refused; empty: takes all.
  void refuse(std::string why);
  // Makes the resource's stream end as if the connection had been lost.
  void drop_stream(const std::string& resource);

  unsigned registrations() const;  // since the last start
  // Devices of the resource as last told, id -> healthy; empty while no stream is open.
  std::map<std::string, bool> devices(const std::string& resource) const;
  // Waits until `test` holds of them.
  bool wait_devices(const std::string& resource,
                    const std::function<bool(const std::map<std::string, bool>&)>& test,
                    std::chrono::milliseconds limit = std::chrono::seconds(10)) const;

  // The ids of a container, chosen and allocated as kubelet does; podresources shows them when this
  // returns (not for `ordinary_init`, as the real one). Reuses the ids of the pod's init container.
  struct Admission {
    std::string pod_namespace, pod, container;
    std::size_t count = 1;
    bool ordinary_init = false;
  };
  struct Allocated {
    std::vector<std::string> ids;
    ContainerGift gift;
  };
  Result<Allocated> admit(const std::string& resource, const Admission& admission);
  Status pre_start(const std::string& resource, const std::vector<std::string>& ids);
  // The pod is over: its ids are free.
  void remove(const std::string& pod_namespace, const std::string& pod);
  // podresources answers RESOURCE_EXHAUSTED this many times more.
  void limit_rate(unsigned times);
  unsigned lists() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace aliquot::node
