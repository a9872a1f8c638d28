// The device plugin against a kubelet in this process: registration through restarts and faults.
#include "node/kubelet_watch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "node/slots.h"
#include "node/testing/fake_kubelet.h"

namespace aliquot::node {
namespace {

using Devices = std::map<std::string, bool>;
constexpr const char* kResource = "aliquot.dev/gpu";

class TakesAll final : public PluginDecisions {
 public:
  std::vector<std::string> preferred(const std::vector<std::string>& available,
                                     const std::vector<std::string>& /*must*/,
                                     std::size_t count) override {
    std::vector<std::string> sorted = available;
    std::ranges::sort(sorted);
    sorted.resize(std::min(count, sorted.size()));
    return sorted;
  }
  Result<ContainerGift> allocate(const std::vector<std::string>& ids) override {
    if (refuses) return Error{Errc::kExhausted, "allocate: nothing is left of it"};
    ContainerGift gift;
    gift.environment["KEY"] = set_key(ids);
    gift.mounts.push_back({"/host", "/container", true});
    gift.devices.push_back({"/dev/null", "/dev/gpu", "rw"});
    gift.cdi_devices.push_back("aliquot.dev/lease=" + set_key(ids));
    return gift;
  }
  Status before_start(const std::vector<std::string>& /*ids*/) override {
    return Error{Errc::kNotFound, "bind: no such pod"};
  }
  bool refuses = false;
};

struct KubeletWatchTest : testing::Test {
  KubeletWatchTest() {
    std::string name = testing::TempDir() + "/kubelet-XXXXXX";
    root = mkdtemp(name.data());
    board.set_gpus({{"GPU-a", 0, true}, {"GPU-b", 1, true}}, nullptr);
    kubelet = std::make_unique<FakeKubelet>(root);
    watch = start();
  }
  ~KubeletWatchTest() override {
    watch.reset();
    kubelet.reset();
    std::filesystem::remove_all(root);
  }

  std::unique_ptr<KubeletWatch> start(const std::string& endpoint = "aliquot.sock") {
    KubeletWatch::Options options;
    options.directory = root / "device-plugins";
    options.endpoint = endpoint;
    options.resource = kResource;
    options.slots_per_gpu = 4;
    return std::make_unique<KubeletWatch>(options, board, decisions, clock);
  }

  bool sees(std::size_t healthy) const {
    return kubelet->wait_devices(kResource, [&](const Devices& devices) {
      return devices.size() == 8 &&
             static_cast<std::size_t>(
                 std::ranges::count_if(devices, [](const auto& d) { return d.second; })) == healthy;
    });
  }
  static bool soon(const std::function<bool()>& test) {
    for (int i = 0; i < 1000; ++i) {
      if (test()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::filesystem::path root;
  MonotonicClock clock;
  DeviceBoard board;
  TakesAll decisions;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<KubeletWatch> watch;
};

TEST_F(KubeletWatchTest, KubeletSeesEverySlotAndThePluginIsReadyWhenItHoldsTheStream) {
  EXPECT_TRUE(sees(8));
  EXPECT_TRUE(soon([&] { return watch->is_ready(); }));
  EXPECT_EQ(kubelet->registrations(), 1u);
}

TEST_F(KubeletWatchTest, AGpuThatGetsIllAndWellAgainIsToldAtOnce) {
  ASSERT_TRUE(sees(8));
  board.set_healthy("GPU-b", false);
  EXPECT_TRUE(sees(4));
  board.set_healthy("GPU-b", true);
  EXPECT_TRUE(sees(8));
}

TEST_F(KubeletWatchTest, ARestartedKubeletIsRegisteredWithOnceMore) {
  ASSERT_TRUE(sees(8));
  for (int round = 0; round < 3; ++round) {
    kubelet->stop();
    kubelet->start();
    ASSERT_TRUE(sees(8)) << "round " << round;
    EXPECT_TRUE(soon([&] { return watch->is_ready(); }));
    EXPECT_EQ(kubelet->registrations(), 1u) << "round " << round;
  }
}

TEST_F(KubeletWatchTest, AKubeletThatIsAwayMakesItUnready) {
  ASSERT_TRUE(soon([&] { return watch->is_ready(); }));
  kubelet->stop();
  EXPECT_TRUE(soon([&] { return !watch->is_ready(); }));
}

TEST_F(KubeletWatchTest, OurSocketRemovedBySomebodyIsServedAgain) {
  ASSERT_TRUE(sees(8));
  std::filesystem::remove(root / "device-plugins" / "aliquot.sock");
  EXPECT_TRUE(soon([&] { return kubelet->registrations() == 2; }));
  EXPECT_TRUE(sees(8));
}

TEST_F(KubeletWatchTest, AStreamThatIsLostIsAskedForAgain) {
  ASSERT_TRUE(sees(8));
  kubelet->drop_stream(kResource);
  EXPECT_TRUE(soon([&] { return kubelet->registrations() == 2; }));
  EXPECT_TRUE(sees(8));
}

TEST_F(KubeletWatchTest, ARefusedNameIsTriedAgainAndTakenWhenKubeletTakesIt) {
  watch.reset();
  kubelet->refuse("the ResourceName \"x\" is invalid");
  watch = start();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(watch->is_ready());
  kubelet->refuse("");
  EXPECT_TRUE(soon([&] { return watch->is_ready(); }));
}

TEST_F(KubeletWatchTest, ADirectoryThatAppearsLaterIsFound) {
  watch.reset();
  kubelet.reset();
  std::filesystem::remove_all(root / "device-plugins");
  watch = start();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kubelet = std::make_unique<FakeKubelet>(root);
  EXPECT_TRUE(sees(8));
}

TEST_F(KubeletWatchTest, OfTwoPluginsOfOneNameTheLastIsHeardAndTheFirstAsksAgain) {
  ASSERT_TRUE(sees(8));
  auto second = start("other.sock");
  EXPECT_TRUE(soon([&] { return kubelet->registrations() >= 2; }));
  second.reset();
  EXPECT_TRUE(soon([&] { return watch->is_ready(); }));
  EXPECT_TRUE(sees(8));
}

TEST_F(KubeletWatchTest, WhatIsDecidedReachesTheContainer) {
  ASSERT_TRUE(sees(8));
  const auto given = kubelet->admit(kResource, {"default", "p", "main", 2, false});
  ASSERT_TRUE(given) << given.error().message;
  auto ids = given->ids;
  std::ranges::sort(ids);
  EXPECT_EQ(ids, (std::vector<std::string>{"GPU-a::0", "GPU-a::1"}));  // as preferred
  EXPECT_EQ(given->gift.environment.at("KEY"), set_key(ids));
  EXPECT_EQ(given->gift.mounts.at(0).container, "/container");
  EXPECT_EQ(given->gift.devices.at(0).host, "/dev/null");
  EXPECT_EQ(given->gift.cdi_devices.at(0), "aliquot.dev/lease=" + set_key(ids));
}

TEST_F(KubeletWatchTest, ARefusalIsReadableInTheEnd) {
  ASSERT_TRUE(sees(8));
  decisions.refuses = true;
  const auto given = kubelet->admit(kResource, {"default", "p", "main", 1, false});
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, Errc::kExhausted);
  EXPECT_EQ(given.error().message, "allocate: nothing is left of it");
  const Status started = kubelet->pre_start(kResource, {"GPU-a::0"});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "bind: no such pod");
}

}  // namespace
}  // namespace aliquot::node
