// BindingFixture: a kubelet, a broker and the daemon's binding half in one process, for tests of
// the life of containers. One thread, but for those of its parts.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "broker/broker.h"
#include "common/files.h"
#include "node/kubelet_watch.h"
#include "node/late_binding.h"
#include "node/on_loop.h"
#include "node/slots.h"
#include "node/testing/fake_kubelet.h"

namespace aliquot::node {

inline constexpr const char* kResource = "aliquot.dev/gpu";
inline constexpr std::uint64_t kGiB = 1ull << 30;

// Two GPUs of 40 GiB that nobody uses.
class TwoGpus final : public broker::GpuProbe {
 public:
  Result<std::vector<broker::ProbedGpu>> gpus() override {
    std::vector<broker::ProbedGpu> all;
    for (const char* uuid : {"GPU-a", "GPU-b"}) {
      broker::ProbedGpu gpu;
      gpu.uuid = uuid;
      gpu.total_bytes = gpu.free_bytes = 40 * kGiB;
      all.push_back(gpu);
    }
    return all;
  }
};

class TwoGpuSource final : public broker::ProbeSource {
 public:
  Result<std::unique_ptr<broker::GpuProbe>> open(const std::string& /*driver*/) override {
    return std::unique_ptr<broker::GpuProbe>(std::make_unique<TwoGpus>());
  }
};

inline kube::Pod pod_of(const std::string& name, const std::string& uid,
                        std::vector<kube::Container> containers) {
  kube::Pod pod;
  pod.name_space = "default";
  pod.name = name;
  pod.uid = uid;
  pod.phase = kube::PodPhase::kPending;
  pod.containers = std::move(containers);
  return pod;
}

inline kube::Container container(const std::string& name, int slots = 1,
                                 kube::ContainerKind kind = kube::ContainerKind::kApp) {
  kube::Container one;
  one.name = name;
  one.kind = kind;
  one.limits["aliquot.dev/gpu"] = std::to_string(slots);
  return one;
}

// The machine's time, or some time after it.
class AheadClock final : public Clock {
 public:
  Nanoseconds now() const override { return machine_.now() + ahead_; }
  void advance(Nanoseconds by) { ahead_ += by; }

 private:
  MonotonicClock machine_;
  std::atomic<Nanoseconds> ahead_ = 0;
};

struct BindingFixture : testing::Test {
  BindingFixture() {
    std::string name = testing::TempDir() + "/binding-XXXXXX";
    root = mkdtemp(name.data());
    write_file_atomically(root / "libaliquot.so", "a library").has_value();
    board.set_gpus({{"GPU-a", 0, true}, {"GPU-b", 1, true}}, nullptr);
    kubelet = std::make_unique<FakeKubelet>(root / "kubelet");
    resources = open_pod_resources(kubelet->pod_resources_socket());
    start();
  }
  ~BindingFixture() override {
    stop();
    kubelet.reset();
    std::filesystem::remove_all(root);
  }

  void start() {
    broker::BrokerOptions options;
    options.state_directory = root / "state";
    options.audience = broker::Audience::kEveryone;
    auto opened = broker::Broker::open(options, probes, clock);
    ASSERT_TRUE(opened) << opened.error().message;
    broker = std::move(*opened);
    LateBinding::Options binding_options;
    binding_options.state_directory = root / "state";
    binding_options.cdi_directory = root / "cdi";
    binding_options.checkpoint = root / "checkpoint";
    binding_options.way = way;
    binding_options.resources.emplace_back(kNvidiaResource);
    binding_options.nvidia_replicas = 2;
    binding_options.bare_memory = bare_memory;
    binding_options.observe = observe;
    const inventory::Driver driver{"sim:m", root / "m", root / "m/lib/libcuda.so.1",
                                   root / "m/lib/libnvidia-ml.so.1"};
    const auto files = lay_out_node_files(root / "state", root / "libaliquot.so", driver);
    ASSERT_TRUE(files) << files.error().message;
    binding_options.files = *files;
    binding_options.add_wishes = [](const kube::Pod& pod, const BoundContainer& bound,
                                    ContainerGift& gift) -> Status {
      const std::string* wish = pod.annotation("aliquot.dev/rdma");
      if (wish == nullptr) return {};
      if (*wish != "true") return Error{Errc::kNotFound, "no HCA is near"};
      gift.environment["NCCL_IB_HCA"] = "of " + bound.gpus.at(0);
      return {};
    };
    binding_options.on_refused_change = [this](const kube::Pod&, const std::string& why) {
      refused_change = why;
    };
    binding = std::make_unique<LateBinding>(
        binding_options,
        LateBinding::Surroundings{broker->book(), broker->loop(), *resources, pods, board, clock});
    ASSERT_TRUE(binding->adopt());
    loop = std::thread([this] { broker->run(); });
    KubeletWatch::Options watch_options;
    watch_options.directory = kubelet->plugin_directory();
    watch_options.slots_per_gpu = 4;
    watch = std::make_unique<KubeletWatch>(watch_options, board, *binding, clock);
    watch_options.endpoint = "aliquot-nvidia.sock";
    watch_options.resource = kNvidiaResource;
    watch_options.slots_per_gpu = 2;
    watch_options.first_slot = kNvidiaSlots;
    nvidia_watch = std::make_unique<KubeletWatch>(watch_options, board, *binding, clock);
    ASSERT_TRUE(kubelet->wait_devices(kResource, [](const auto& d) { return d.size() == 8; }));
    ASSERT_TRUE(
        kubelet->wait_devices(kNvidiaResource, [](const auto& d) { return d.size() == 4; }));
  }
  void stop() {
    nvidia_watch.reset();
    watch.reset();
    broker->stop();
    loop.join();
    binding.reset();
    broker.reset();
  }

  std::vector<std::string> admit(const std::string& pod, const std::string& name,
                                 std::size_t count = 1, bool init = false,
                                 const std::string& resource = kResource) {
    const auto given = kubelet->admit(resource, {"default", pod, name, count, init});
    EXPECT_TRUE(given) << given.error().message;
    return given ? given->ids : std::vector<std::string>();
  }
  std::optional<BoundContainer> bound(const std::vector<std::string>& ids) const {
    for (const BoundContainer& one : binding->bound())
      if (one.key == set_key(ids)) return one;
    return std::nullopt;
  }
  Result<broker::LeaseRow> row(const std::string& lease) {
    return on_loop<broker::LeaseRow>(broker->loop(),
                                     [this, lease] { return broker->book().row(lease); });
  }
  std::string spec(const std::vector<std::string>& ids) const {
    const auto text = read_file(cdi_path(root / "cdi", set_key(ids)));
    return text ? *text : "";
  }

  std::filesystem::path root;
  InjectionWay way = InjectionWay::kCdi;
  kube::BareMemory bare_memory;
  ObserveRule observe;
  AheadClock clock;
  TwoGpuSource probes;
  DeviceBoard board;
  kube::FixedPods pods;
  std::string refused_change;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<PodResources> resources;
  std::unique_ptr<broker::Broker> broker;
  std::unique_ptr<LateBinding> binding;
  std::thread loop;
  std::unique_ptr<KubeletWatch> watch, nvidia_watch;
};

}  // namespace aliquot::node
