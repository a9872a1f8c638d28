// From kubelet's Allocate to a lease, against a kubelet and a broker in this process.
#include <gmock/gmock.h>

#include <algorithm>

#include "node/testing/binding_fixture.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using LateBindingTest = BindingFixture;

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

TEST_F(LateBindingTest, OldLibrariesGoWithTheLastContainerThatHasThem) {
  const auto versions = [this] {
    return std::distance(fs::directory_iterator(root / "state/lib"), fs::directory_iterator());
  };
  pods.set({pod_of("p", "uid-1", {container("main")})});
  ASSERT_TRUE(kubelet->pre_start(kResource, admit("p", "main")));
  const fs::path before = fs::directory_iterator(root / "state/lib")->path();
  stop();
  ASSERT_TRUE(write_file_atomically(root / "libaliquot.so", "a newer library"));
  start();
  ASSERT_TRUE(binding->reconcile());
  EXPECT_EQ(versions(), 2);
  kubelet->remove("default", "p");
  pods.set({});
  ASSERT_TRUE(binding->reconcile());
  EXPECT_EQ(versions(), 1);
  EXPECT_FALSE(fs::exists(before));
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

TEST_F(LateBindingTest, AReplicaOfNvidiaComGpuIsAnEqualPartOfAGpu) {
  kube::Pod plain = pod_of("p", "uid-1", {container("main")});
  kube::Pod sized = pod_of("q", "uid-2", {container("main")});
  sized.annotations["aliquot.dev/memory"] = "3GiB";
  pods.set({plain, sized});
  const auto part = admit("p", "main", 1, false, kNvidiaResource);
  const auto other = admit("q", "main", 1, false, kNvidiaResource);
  EXPECT_TRUE(are_nvidia(part));
  ASSERT_TRUE(kubelet->pre_start(kNvidiaResource, part));
  ASSERT_TRUE(kubelet->pre_start(kNvidiaResource, other));
  EXPECT_EQ(row(bound(part)->lease)->gpus.at(0).limit_bytes, 20 * kGiB);
  EXPECT_EQ(row(bound(part)->lease)->gpus.at(0).cores, 5000u);
  EXPECT_EQ(row(bound(other)->lease)->gpus.at(0).limit_bytes, 3 * kGiB);
}

TEST_F(LateBindingTest, SlotsOfTheTwoResourcesAreNeverTakenForOneAnother) {
  EXPECT_FALSE(are_nvidia({slot_id({"GPU-a", 0})}));
  EXPECT_FALSE(are_nvidia({slot_id({"GPU-a", kNvidiaSlots}), slot_id({"GPU-a", 3})}));
  pods.set({pod_of("p", "uid-1", {container("main")}), pod_of("q", "uid-2", {container("main")})});
  const auto ours = admit("p", "main");
  const auto theirs = admit("q", "main", 1, false, kNvidiaResource);
  EXPECT_NE(set_key(ours), set_key(theirs));
}

TEST_F(LateBindingTest, WhomTheRuleNamesIsObservedFromItsStartOrFromNowOn) {
  pods.set({pod_of("p", "uid-1", {container("main")}), pod_of("q", "uid-2", {container("main")})});
  const auto first = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, first));
  EXPECT_FALSE(row(bound(first)->lease)->observed);
  binding->observe({false, {"default/p", "elsewhere"}});
  EXPECT_TRUE(row(bound(first)->lease)->observed);
  const auto second = admit("q", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, second));
  EXPECT_FALSE(row(bound(second)->lease)->observed);
  binding->observe({false, {"default"}});
  EXPECT_TRUE(row(bound(second)->lease)->observed);
  // A daemon with another configuration takes them up as that one says.
  stop();
  start();
  EXPECT_FALSE(row(bound(first)->lease)->observed);
}

TEST_F(LateBindingTest, ABareNumberCountsWhatTheConfigurationSays) {
  stop();
  bare_memory = {1'000'000'000};
  start();
  kube::Pod pod = pod_of("p", "uid-1", {container("main")});
  pod.annotations["aliquot.dev/memory"] = "4";
  pods.set({pod});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_EQ(row(bound(ids)->lease)->gpus.at(0).limit_bytes, 4'000'000'000u);
}

// As daemons wrote it before there were live changes; the lease beside it lives.
TEST_F(LateBindingTest, ARecordOfAnOlderDaemonIsTakenUp) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  const std::string lease = bound(ids)->lease, gpu = bound(ids)->gpus.at(0);
  stop();
  const std::string old = R"({"version": 1, "key": ")" + set_key(ids) + R"(", "ids": [")" + ids[0] +
                          R"("], "namespace": "default", "pod": "p", "uid": "uid-1",
    "container": "main", "lease": ")" +
                          lease + R"(", "gpus": [")" + gpu + "\"]}";
  ASSERT_TRUE(write_file_atomically(root / "state/pods" / (set_key(ids) + ".json"), old));
  start();
  ASSERT_TRUE(bound(ids));
  EXPECT_TRUE(row(lease));
  EXPECT_EQ(binding->counters().leaked_leases, 0u);
  // And the container may be started again with it.
  EXPECT_TRUE(kubelet->pre_start(kResource, ids));
  EXPECT_EQ(bound(ids)->lease, lease);
}

TEST_F(LateBindingTest, ARecordOfANewerDaemonIsNotGuessedAt) {
  pods.set({pod_of("p", "uid-1", {container("main")})});
  const auto ids = admit("p", "main");
  ASSERT_TRUE(kubelet->pre_start(kResource, ids));
  const std::string lease = bound(ids)->lease;
  stop();
  const fs::path path = root / "state/pods" / (set_key(ids) + ".json");
  std::string text = *read_file(path);
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 9");
  ASSERT_TRUE(write_file_atomically(path, text));
  start();
  EXPECT_FALSE(bound(ids));
  EXPECT_FALSE(row(lease));
  EXPECT_EQ(binding->counters().leaked_leases, 1u);
}

// A lease is there a moment before its record.
TEST_F(LateBindingTest, ANameThatWasSuspectedOnceIsNotHeldAgainstTheNextLease) {
  const auto hold = [&] {
    return on_loop<broker::LeaseGrant>(broker->loop(), [this] {
      broker::LeaseRequest request;
      request.driver = "sim:m";
      request.name = "default.p.main";
      request.shares.resize(1);
      request.shares[0].memory = *model::parse_memory("1GiB");
      return broker->book().hold(request);
    });
  };
  ASSERT_TRUE(hold());
  ASSERT_TRUE(binding->reconcile());
  ASSERT_TRUE(on_loop<bool>(broker->loop(), [this]() -> Result<bool> {
    return broker->book().release("default.p.main").has_value();
  }));
  ASSERT_TRUE(binding->reconcile());
  clock.advance(60 * kSecond);
  ASSERT_TRUE(hold());
  ASSERT_TRUE(binding->reconcile());
  EXPECT_TRUE(row("default.p.main"));
  clock.advance(60 * kSecond);
  ASSERT_TRUE(binding->reconcile());
  EXPECT_FALSE(row("default.p.main"));
  EXPECT_EQ(binding->counters().leaked_leases, 1u);
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
