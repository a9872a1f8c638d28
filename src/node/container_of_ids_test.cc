#include "node/container_of_ids.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

using kube::ContainerKind;
using kube::ContainerState;

kube::Container container(const char* name, ContainerKind kind, ContainerState state,
                          std::int64_t exit_code = 0) {
  kube::Container one;
  one.name = name;
  one.kind = kind;
  one.state = state;
  one.exit_code = exit_code;
  return one;
}

kube::Pod pod_with(std::vector<kube::Container> containers) {
  kube::Pod pod;
  pod.name_space = "default";
  pod.name = "p";
  pod.uid = "uid";
  pod.containers = std::move(containers);
  return pod;
}

// As the checkpoint has it: all have the same ids.
std::vector<HeldDevices> all_hold(const kube::Pod& pod) {
  std::vector<HeldDevices> held;
  for (const kube::Container& one : pod.containers)
    held.push_back({"", "", pod.uid, one.name, {"a::1", "a::0"}});
  return held;
}

const std::vector<std::string> kIds{"a::0", "a::1"};

std::string whose_turn(const kube::Pod& pod) {
  const auto turn = turn_of(pod, all_hold(pod), kIds);
  return turn ? turn->container + (turn->stale ? " (stale)" : "") : turn.error().message;
}

TEST(ContainerOfIds, InitContainersComeInTheirOrderThenTheApp) {
  const auto pod = [](ContainerState first, ContainerState second) {
    return pod_with({container("one", ContainerKind::kInit, first),
                     container("two", ContainerKind::kInit, second),
                     container("main", ContainerKind::kApp, ContainerState::kWaiting)});
  };
  EXPECT_EQ(whose_turn(pod(ContainerState::kUnknown, ContainerState::kUnknown)), "one");
  EXPECT_EQ(whose_turn(pod(ContainerState::kTerminated, ContainerState::kWaiting)), "two");
  EXPECT_EQ(whose_turn(pod(ContainerState::kTerminated, ContainerState::kTerminated)), "main");
}

TEST(ContainerOfIds, AnInitContainerThatFailedIsStartedAgain) {
  EXPECT_EQ(
      whose_turn(pod_with({container("one", ContainerKind::kInit, ContainerState::kTerminated, 1),
                           container("main", ContainerKind::kApp, ContainerState::kWaiting)})),
      "one");
}

TEST(ContainerOfIds, AStatusThatSaysRunningIsOlderThanTheStart) {
  EXPECT_EQ(
      whose_turn(pod_with({container("one", ContainerKind::kInit, ContainerState::kRunning),
                           container("main", ContainerKind::kApp, ContainerState::kWaiting)})),
      "one (stale)");
}

TEST(ContainerOfIds, ASidecarAndAnAppWithIdsOfTheirOwnAreNeverInDoubt) {
  const kube::Pod pod =
      pod_with({container("side", ContainerKind::kSidecar, ContainerState::kRunning),
                container("main", ContainerKind::kApp, ContainerState::kRunning)});
  const std::vector<HeldDevices> held{{"default", "p", "", "side", {"a::7"}},
                                      {"default", "p", "", "main", {"a::0", "a::1"}}};
  EXPECT_EQ(turn_of(pod, held, kIds)->container, "main");
  EXPECT_EQ(turn_of(pod, held, {"a::7"})->container, "side");
  EXPECT_FALSE(turn_of(pod, held, kIds)->stale);  // it is started once more after a crash
}

TEST(ContainerOfIds, AnotherPodOfTheNameOrOtherIdsAreNotMeant) {
  const kube::Pod pod =
      pod_with({container("main", ContainerKind::kApp, ContainerState::kWaiting)});
  EXPECT_FALSE(turn_of(pod, {{"", "", "other", "main", {"a::0", "a::1"}}}, kIds));
  EXPECT_FALSE(turn_of(pod, {{"other", "p", "", "main", {"a::0", "a::1"}}}, kIds));
  EXPECT_FALSE(turn_of(pod, {{"default", "p", "", "main", {"a::0"}}}, kIds));
}

TEST(ContainerOfIds, ThePodIsFoundFromAnyOfTheIds) {
  const KubeletBook book{{{"default", "q", "", "c", {"b::0"}}, {"default", "p", "", "c", {"a::1"}}},
                         {}};
  EXPECT_EQ(*pod_of_ids(book, kIds), (PodName{"default", "p"}));
  EXPECT_EQ(pod_of_ids(book, {"c::0"}).error().code, Errc::kNotFound);
  EXPECT_EQ(uid_of_ids({{"", "", "old", "c", {"a::0"}}, {"", "", "new", "c", {"a::0"}}}, kIds),
            "new");
}

TEST(KubeletCheckpoint, BothOfItsFormsAreRead) {
  const auto now = parse_checkpoint(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",)"
      R"("DeviceIDs":{"0":["x"],"-1":["y"]},"AllocResp":"eA=="},{"PodUID":"u","ContainerName":"d",)"
      R"("ResourceName":"other","DeviceIDs":{"0":["z"]}}],"RegisteredDevices":{}},"Checksum":7})",
      {"r"});
  ASSERT_TRUE(now) << now.error().message;
  ASSERT_EQ(now->size(), 1u);
  EXPECT_EQ(now->at(0), (HeldDevices{"", "", "u", "c", {"x", "y"}}));
  const auto old = parse_checkpoint(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",)"
      R"("DeviceIDs":["x"]}]}})",
      {"r"});
  ASSERT_TRUE(old);
  EXPECT_EQ(old->at(0).ids, std::vector<std::string>{"x"});
  EXPECT_TRUE(parse_checkpoint(R"({"Data":{"PodDeviceEntries":null}})", {"r"})->empty());
  EXPECT_FALSE(parse_checkpoint(R"({"Entries":[]})", {"r"}));
  EXPECT_FALSE(parse_checkpoint("{", {"r"}));
}

}  // namespace
}  // namespace aliquot::node
