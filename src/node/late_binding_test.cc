// From kubelet's Allocate to a lease, against a kubelet and a broker in this process.
#include "node/late_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <thread>

#include "broker/broker.h"
#include "common/files.h"
#include "node/kubelet_watch.h"
#include "node/on_loop.h"
#include "node/slots.h"
#include "node/testing/fake_kubelet.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
constexpr const char* kResource = "aliquot.dev/gpu";
constexpr std::uint64_t kGiB = 1ull << 30;

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

kube::Pod pod_of(const std::string& name, const std::string& uid,
                 std::vector<kube::Container> containers) {
  kube::Pod pod;
  pod.name_space = "default";
  pod.name = name;
  pod.uid = uid;
  pod.phase = kube::PodPhase::kPending;
  pod.containers = std::move(containers);
  return pod;
}

kube::Container container(const std::string& name, int slots = 1,
                          kube::ContainerKind kind = kube::ContainerKind::kApp) {
  kube::Container one;
  one.name = name;
  one.kind = kind;
  one.limits["aliquot.dev/gpu"] = std::to_string(slots);
  return one;
}

struct LateBindingTest : testing::Test {
  LateBindingTest() {
    std::string name = testing::TempDir() + "/binding-XXXXXX";
    root = mkdtemp(name.data());
    write_file_atomically(root / "libaliquot.so", "a library").has_value();
    board.set_gpus({{"GPU-a", 0, true}, {"GPU-b", 1, true}}, nullptr);
    kubelet = std::make_unique<FakeKubelet>(root / "kubelet");
    resources = open_pod_resources(kubelet->pod_resources_socket());
    start();
  }
  ~LateBindingTest() override {
    stop();
    kubelet.reset();
    fs::remove_all(root);
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
    ASSERT_TRUE(kubelet->wait_devices(kResource, [](const auto& d) { return d.size() == 8; }));
  }
  void stop() {
    watch.reset();
    broker->stop();
    loop.join();
    binding.reset();
    broker.reset();
  }

  std::vector<std::string> admit(const std::string& pod, const std::string& name,
                                 std::size_t count = 1, bool init = false) {
    const auto given = kubelet->admit(kResource, {"default", pod, name, count, init});
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

  fs::path root;
  InjectionWay way = InjectionWay::kCdi;
  MonotonicClock clock;
  TwoGpuSource probes;
  DeviceBoard board;
  kube::FixedPods pods;
  std::string refused_change;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<PodResources> resources;
  std::unique_ptr<broker::Broker> broker;
  std::unique_ptr<LateBinding> binding;
  std::thread loop;
  std::unique_ptr<KubeletWatch> watch;
};

TEST_F(LateBindingTest, AContainerGetsWhatItsPodAsksForBeforeItStarts) {
  kube::Pod pod = pod_of("p", "uid-1", {container("main")});
  pod.annotations["aliquot.dev/memory"] = "4GiB";
  pod.annotations["aliquot.dev/cores"] = "30";
  pods.set({pod});
  const auto ids = admit("p", "main");
  EXPECT_EQ(spec(ids), "");  // nothing is known at Allocate
  const Status started = kubelet->pre_start(kResource, ids);
  ASSERT_TRUE(started) << started.error().message;
  const auto one = bound(ids);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->full_name(), "default/p/main");
  const auto lease = row(one->lease);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->gpus.at(0).limit_bytes, 4 * kGiB);
  EXPECT_EQ(lease->gpus.at(0).cores, 3000u);
  EXPECT_THAT(spec(ids), HasSubstr(lease->directory));
  EXPECT_THAT(spec(ids), HasSubstr("\"/run/aliquot/lease\""));
  EXPECT_THAT(spec(ids), HasSubstr("\"/etc/ld.so.preload\""));
  EXPECT_EQ(binding->counters().slot_mismatches, 0u);
}

TEST_F(LateBindingTest, TheAssignmentWinsOverKubeletsSlot) {
  kube::Pod pod = pod_of("p", "uid-1", {container("main")});
  pods.set({pod});
  const auto ids = admit("p", "main");
  const std::string other = gpus_of(ids).front() == "GPU-a" ? "GPU-b" : "GPU-a";
  pod.annotations["aliquot.dev/assignment"] =
      kube::assignment_text({{{"main", {{other, 2 * kGiB, 1000}}}}});
  pods.set({pod});
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_EQ(bound(ids)->gpus, std::vector<std::string>{other});
  EXPECT_EQ(binding->counters().slot_mismatches, 1u);
}

TEST_F(LateBindingTest, NeitherMemoryNorCoresIsAWholeGpuAndASecondOneGoesElsewhere) {
  pods.set({pod_of("p", "uid-1", {container("main")}), pod_of("q", "uid-2", {container("main")}),
            pod_of("r", "uid-3", {container("main")})});
  const auto first = admit("p", "main"), second = admit("q", "main"), third = admit("r", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, first));
  ASSERT_TRUE(kubelet->pre_start(kResource, second));
  EXPECT_NE(bound(first)->gpus, bound(second)->gpus);
  EXPECT_EQ(row(bound(first)->lease)->gpus.at(0).limit_bytes, 40 * kGiB);
  const Status refused = kubelet->pre_start(kResource, third);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("0 of 2 fit"));
  // It starts when there is room: kubelet tries again.
  kubelet->remove("default", "p");
  pods.set({pod_of("q", "uid-2", {container("main")}), pod_of("r", "uid-3", {container("main")})});
  EXPECT_TRUE(kubelet->pre_start(kResource, third));
}

TEST_F(LateBindingTest, ARestartedContainerKeepsItsLease) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  const auto before = row(bound(ids)->lease)->id;
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_EQ(row(bound(ids)->lease)->id, before);
}

TEST_F(LateBindingTest, AnotherPodWithTheSameIdsGetsALeaseOfItsOwn) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  const std::string before = bound(ids)->lease;
  kubelet->remove("default", "p");
  // The name is used again, and so are the ids.
  pods.set({pod_of("p", "uid-2", {container("main")})});
  std::vector<std::string> again;
  for (int i = 0; i < 64 && again != ids; ++i) {
    kubelet->remove("default", "p");
    again = admit("p", "main");
  }
  if (again != ids) GTEST_SKIP() << "the fake kubelet never chose the same ids";
  ASSERT_TRUE(kubelet->pre_start(kResource, again));
  EXPECT_NE(bound(ids)->lease, before);
  EXPECT_EQ(bound(ids)->uid, "uid-2");
  EXPECT_FALSE(row(before));
}

TEST_F(LateBindingTest, InitContainersComeFirstAndTheAppHasItsOwnShare) {
  kube::Pod pod =
      pod_of("p", "uid-1", {container("load", 1, kube::ContainerKind::kInit), container("main")});
  pod.annotations["aliquot.dev/memory"] = "4GiB, load=1GiB";
  pods.set({pod});
  const auto init_ids = admit("p", "load", 1, true);
  const auto ids = admit("p", "main");
  ASSERT_EQ(ids, init_ids);  // reused
  ASSERT_TRUE(write_file_atomically(
      root / "checkpoint",
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"load","ResourceName":)"
      R"("aliquot.dev/gpu","DeviceIDs":{"0":[")" +
          ids[0] +
          R"("]},"AllocResp":""},)"
          R"({"PodUID":"uid-1","ContainerName":"main","ResourceName":"aliquot.dev/gpu","DeviceIDs":)"
          R"({"0":[")" +
          ids[0] + R"("]},"AllocResp":""}],"RegisteredDevices":{}},"Checksum":1})"));
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_EQ(bound(ids)->container, "load");
  EXPECT_EQ(row(bound(ids)->lease)->gpus.at(0).limit_bytes, kGiB);
  const std::string first = bound(ids)->lease;
  // It failed and is started once more.
  pod.containers[0].state = kube::ContainerState::kTerminated;
  pod.containers[0].exit_code = 1;
  pods.set({pod});
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_EQ(bound(ids)->lease, first);
  pod.containers[0].exit_code = 0;
  pods.set({pod});
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_EQ(bound(ids)->container, "main");
  EXPECT_EQ(row(bound(ids)->lease)->gpus.at(0).limit_bytes, 4 * kGiB);
  EXPECT_FALSE(row(first));
}

TEST_F(LateBindingTest, AStatusOlderThanTheStartIsWaitedFor) {
  kube::Pod pod =
      pod_of("p", "uid-1", {container("load", 1, kube::ContainerKind::kInit), container("main")});
  pod.containers[0].state = kube::ContainerState::kRunning;
  pods.set({pod});
  const auto ids = admit("p", "load", 1, true);
  ASSERT_EQ(admit("p", "main"), ids);
  ASSERT_TRUE(write_file_atomically(
      root / "checkpoint",
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"load","ResourceName":)"
      R"("aliquot.dev/gpu","DeviceIDs":{"0":[")" +
          ids[0] + R"("]}}]}})"));
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    pod.containers[0].state = kube::ContainerState::kTerminated;
    pods.set({pod});
  });
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  writer.join();
  EXPECT_EQ(bound(ids)->container, "main");
}

TEST_F(LateBindingTest, WordsThatCannotBeUnderstoodStartNothing) {
  kube::Pod pod = pod_of("p", "uid-1", {container("main")});
  pod.annotations["aliquot.dev/memory"] = "lots";
  pods.set({pod});
  const Status refused = kubelet->pre_start(kResource, admit("p", "main"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("lots"));
  EXPECT_TRUE(binding->bound().empty());
}

TEST_F(LateBindingTest, WishesBesidesTheShareGoIntoTheSpecificationOrStopTheContainer) {
  kube::Pod pod = pod_of("p", "uid-1", {container("main")});
  pod.annotations["aliquot.dev/memory"] = "4GiB";
  pod.annotations["aliquot.dev/rdma"] = "near";
  pods.set({pod});
  const auto ids = admit("p", "main");
  EXPECT_THAT(kubelet->pre_start(kResource, ids).error().message, HasSubstr("no HCA is near"));
  EXPECT_EQ(spec(ids), "");
  pod.annotations["aliquot.dev/rdma"] = "true";
  pods.set({pod});
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_THAT(spec(ids), HasSubstr("NCCL_IB_HCA=of GPU-"));
}

TEST_F(LateBindingTest, ARateLimitedKubeletIsAskedAgain) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  kubelet->limit_rate(3);
  EXPECT_TRUE(kubelet->pre_start(kResource, ids));
}

TEST_F(LateBindingTest, ManyContainersAtOnceEachGetTheirOwnAndKubeletIsAskedFewTimes) {
  constexpr int kPods = 8;
  std::vector<kube::Pod> all;
  std::vector<std::vector<std::string>> ids;
  for (int i = 0; i < kPods; ++i) {
    all.push_back(pod_of("p" + std::to_string(i), "uid-" + std::to_string(i), {container("main")}));
    all.back().annotations["aliquot.dev/memory"] = std::to_string(i + 1) + "GiB";
  }
  pods.set(all);
  for (const kube::Pod& pod : all) ids.push_back(admit(pod.name, "main"));
  std::vector<std::thread> starts;
  for (const auto& set : ids)
    starts.emplace_back([&] { EXPECT_TRUE(kubelet->pre_start(kResource, set)); });
  for (std::thread& start : starts) start.join();
  for (int i = 0; i < kPods; ++i) {
    const auto one = bound(ids[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->pod, "p" + std::to_string(i));
    EXPECT_EQ(row(one->lease)->gpus.at(0).limit_bytes, (i + 1) * kGiB);
  }
  EXPECT_LE(kubelet->lists(), 2u * kPods);
}

TEST_F(LateBindingTest, ANewDaemonGoesOnWhereTheLastOneWasKilled) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  const auto before = row(bound(ids)->lease)->id;
  stop();
  start();
  ASSERT_TRUE(bound(ids));
  EXPECT_EQ(row(bound(ids)->lease)->id, before);
  EXPECT_NE(spec(ids), "");
  EXPECT_EQ(binding->counters().leaked_leases, 0u);
}

TEST_F(LateBindingTest, ALeaseWithoutARecordIsReleasedAtTheNextStart) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  const std::string lease = bound(ids)->lease;
  stop();
  fs::remove(root / "state/pods" / (set_key(ids) + ".json"));
  start();
  EXPECT_FALSE(row(lease));
  EXPECT_EQ(binding->counters().leaked_leases, 1u);
  EXPECT_EQ(spec(ids), "");
}

TEST_F(LateBindingTest, WhatNobodyKnowsAnyMoreIsReleased) {
  pods.set({pod_of("p", "uid-1", {container("main")}), pod_of("q", "uid-2", {container("main")})});
  const auto ended = admit("p", "main"), lives = admit("q", "main");
  kube::Pod small = pod_of("p", "uid-1", {container("main")});
  ASSERT_TRUE(kubelet->pre_start(kResource, ended));
  ASSERT_TRUE(kubelet->pre_start(kResource, lives));
  const std::string lease = bound(ended)->lease;
  kubelet->remove("default", "p");
  pods.set({pod_of("q", "uid-2", {container("main")})});
  ASSERT_TRUE(binding->reconcile());
  EXPECT_FALSE(bound(ended));
  EXPECT_FALSE(row(lease));
  EXPECT_EQ(spec(ended), "");
  EXPECT_TRUE(bound(lives));
}

TEST_F(LateBindingTest, AKubeletThatHasJustStartedAndListsNothingReleasesNothing) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  kubelet->remove("default", "p");
  ASSERT_TRUE(binding->reconcile());
  EXPECT_TRUE(row(bound(ids)->lease));
}

TEST_F(LateBindingTest, NothingIsReleasedWhileKubeletDoesNotAnswer) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  kubelet->stop();
  EXPECT_FALSE(binding->reconcile());
  EXPECT_TRUE(row(bound(ids)->lease));
}

TEST_F(LateBindingTest, ALiveChangeIsInForceAndOneThatDoesNotFitChangesNothing) {
  kube::Pod pod = pod_of("p", "uid-1", {container("main")});
  pod.annotations["aliquot.dev/memory"] = "4GiB";
  pods.set({pod});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  pod.annotations["aliquot.dev/share"] = "memory=8GiB,cores=50";
  pods.set({pod});
  binding->apply_changes(pods.pods());
  EXPECT_EQ(row(bound(ids)->lease)->gpus.at(0).limit_bytes, 8 * kGiB);
  EXPECT_EQ(row(bound(ids)->lease)->gpus.at(0).cores, 5000u);
  pod.annotations["aliquot.dev/share"] = "memory=80GiB";
  pods.set({pod});
  binding->apply_changes(pods.pods());
  EXPECT_EQ(row(bound(ids)->lease)->gpus.at(0).limit_bytes, 8 * kGiB);
  EXPECT_THAT(refused_change, HasSubstr("40GiB"));
  pod.annotations.erase("aliquot.dev/share");
  pods.set({pod});
  binding->apply_changes(pods.pods());
  EXPECT_EQ(row(bound(ids)->lease)->gpus.at(0).limit_bytes, 4 * kGiB);
}

struct WithoutCdi : LateBindingTest {
  WithoutCdi() {
    stop();
    way = InjectionWay::kMounts;
    start();
  }
};

TEST_F(WithoutCdi, TheMountIsALinkThatPointsAtTheLeaseBeforeTheStart) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto given = kubelet->admit(kResource, {"default", "p", "main", 1, false});
  ASSERT_TRUE(given);
  const auto lease =
      std::ranges::find(given->gift.mounts, "/run/aliquot/lease", &MountedPath::container);
  ASSERT_NE(lease, given->gift.mounts.end());
  ASSERT_TRUE(kubelet->pre_start(kResource, given->ids));
  EXPECT_TRUE(fs::exists(fs::path(lease->host) / "socket"));
}

}  // namespace
}  // namespace aliquot::node
