#include "kube/pod.h"

#include <gtest/gtest.h>

#include "kube/pod_source.h"

namespace aliquot::kube {
namespace {

Result<Pod> pod_of(std::string_view text) {
  const Result<format::Json> json = format::parse_json(text, "test");
  EXPECT_TRUE(json) << (json ? "" : json.error().message);
  return parse_pod(*json);
}

constexpr std::string_view kFull = R"({
  "kind": "Pod", "apiVersion": "v1",
  "metadata": {"name": "train", "namespace": "lab", "uid": "u-1", "resourceVersion": "17",
    "annotations": {"aliquot.dev/memory": "4GiB"}, "labels": {"app": "x"},
    "deletionTimestamp": "2026-01-01T00:00:00Z"},
  "spec": {"nodeName": "node-a",
    "initContainers": [
      {"name": "fetch", "image": "i", "resources": {}},
      {"name": "proxy", "image": "p", "restartPolicy": "Always"}],
    "containers": [
      {"name": "main", "image": "m", "resources": {"limits": {"aliquot.dev/gpu": "2", "cpu": "500m"}}}]},
  "status": {"phase": "Running",
    "initContainerStatuses": [{"name": "fetch", "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}],
    "containerStatuses": [{"name": "main", "restartCount": 3, "containerID": "containerd://ab",
      "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
      "allocatedResourcesStatus": [{"name": "aliquot.dev/gpu",
        "resources": [{"resourceID": "GPU-1::0", "health": "Healthy"}]}]}]}})";

TEST(Pod, IsReadWithItsContainersAndWhatBecameOfThem) {
  const Result<Pod> pod = pod_of(kFull);
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->full_name(), "lab/train");
  EXPECT_EQ(pod->uid, "u-1");
  EXPECT_EQ(pod->node, "node-a");
  EXPECT_EQ(pod->phase, PodPhase::kRunning);
  EXPECT_TRUE(pod->deleting);
  EXPECT_EQ(*pod->annotation("aliquot.dev/memory"), "4GiB");
  EXPECT_EQ(pod->annotation("aliquot.dev/cores"), nullptr);
  ASSERT_EQ(pod->containers.size(), 3u);
  EXPECT_EQ(pod->containers[0].kind, ContainerKind::kInit);
  EXPECT_EQ(pod->containers[0].state, ContainerState::kTerminated);
  EXPECT_EQ(pod->containers[1].kind, ContainerKind::kSidecar);
  EXPECT_EQ(pod->containers[1].state, ContainerState::kUnknown);
  const Container* main = pod->container("main");
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->kind, ContainerKind::kApp);
  EXPECT_EQ(main->state, ContainerState::kRunning);
  EXPECT_EQ(main->restarts, 3);
  EXPECT_EQ(main->runtime_id, "containerd://ab");
  EXPECT_EQ(main->devices, (std::vector<DeviceStatus>{{"aliquot.dev/gpu", "GPU-1::0", "Healthy"}}));
}

TEST(Pod, LimitIsAWholeNumberOrNothing) {
  const Result<Pod> pod = pod_of(kFull);
  ASSERT_TRUE(pod);
  const Container* main = pod->container("main");
  EXPECT_EQ(main->limit("aliquot.dev/gpu"), 2);
  EXPECT_EQ(main->limit("cpu"), 0);
  EXPECT_EQ(main->limit("nvidia.com/gpu"), 0);
}

TEST(Pod, OfAStaticFileIsKnownToCgroupsByItsHash) {
  const Result<Pod> mirror = pod_of(R"({"metadata": {"name": "n", "namespace": "s", "uid": "api",
    "annotations": {"kubernetes.io/config.hash": "abc"}}})");
  ASSERT_TRUE(mirror);
  EXPECT_EQ(mirror->cgroup_uid(), "abc");
  const Result<Pod> plain =
      pod_of(R"({"metadata": {"name": "n", "namespace": "s", "uid": "api"}})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->cgroup_uid(), "api");
}

TEST(Pod, WithoutANameOrUidIsRefused) {
  EXPECT_FALSE(pod_of(R"({"metadata": {"name": "n", "namespace": "s"}})"));
  EXPECT_FALSE(pod_of(R"({"metadata": {"uid": "u", "namespace": "s"}})"));
  EXPECT_FALSE(pod_of("[]"));
}

TEST(Pod, OfAWrongTypeIsRefusedWithThePlace) {
  const Result<Pod> pod =
      pod_of(R"({"metadata": {"name": "n", "namespace": "s", "uid": "u", "annotations": ["x"]}})");
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().message, "pod: metadata.annotations: expected an object, not a list");
}

TEST(Pod, StatusOfAContainerThatTheSpecHasNotIsIgnored) {
  const Result<Pod> pod = pod_of(R"({"metadata": {"name": "n", "namespace": "s", "uid": "u"},
    "spec": {"containers": [{"name": "a"}]},
    "status": {"containerStatuses": [{"name": "b", "state": {"running": {}}}]}})");
  ASSERT_TRUE(pod);
  ASSERT_EQ(pod->containers.size(), 1u);
  EXPECT_EQ(pod->containers[0].state, ContainerState::kUnknown);
}

TEST(PodNames, AreNamespaceSlashName) {
  const Result<PodName> name = parse_pod_name("lab/train");
  ASSERT_TRUE(name);
  EXPECT_EQ(*name, (PodName{"lab", "train"}));
  for (const std::string_view wrong : {"", "train", "/train", "lab/", "a/b/c"})
    EXPECT_FALSE(parse_pod_name(wrong)) << wrong;
}

TEST(FixedPods, TellOfEveryChangeAndFindByName) {
  FixedPods source;
  std::size_t seen = 0;
  source.on_change([&](const Pods& pods) { seen = pods.size(); });
  Pod pod;
  pod.name_space = "lab";
  pod.name = "b";
  Pod other = pod;
  other.name = "a";
  source.set({pod, other});
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(source.pods().front()->name, "a");
  ASSERT_NE(source.find("lab", "b"), nullptr);
  EXPECT_EQ(source.find("lab", "c"), nullptr);
  EXPECT_EQ(source.fetch("lab", "c").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace aliquot::kube
