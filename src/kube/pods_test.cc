#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "kube/api_pods.h"
#include "kube/fake_server.h"
#include "kube/kubelet_pods.h"

namespace aliquot::kube {
namespace {

constexpr ApiClient::Options kQuick{2 * kSecond, 5 * kMillisecond, 20 * kMillisecond, 30 * kSecond,
                                    1};

std::string pod_text(std::string_view name, std::string_view memory) {
  return R"({"metadata":{"namespace":"lab","name":")" + std::string(name) + R"(","uid":"u-)" +
         std::string(name) + R"(","resourceVersion":"5","annotations":{"aliquot.dev/memory":")" +
         std::string(memory) + R"("}}})";
}

bool within_seconds(int seconds, const std::function<bool()>& holds) {
  for (int i = 0; i < seconds * 100; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return holds();
}

std::string memory_of(const PodRef& pod) {
  return pod == nullptr ? "no pod" : *pod->annotation("aliquot.dev/memory");
}

TEST(ApiPods, FollowTheWatchAndLeaveOutWhatCannotBeRead) {
  std::atomic<bool> over = false;
  const FakeServer server([&](const FakeRequest& request) {
    if (!request.query.contains("watch"))
      return FakeReply{200,
                       R"({"metadata":{"resourceVersion":"4"},"items":[{"metadata":{}},)" +
                           pod_text("a", "1GiB") + "," + pod_text("b", "1GiB") + "]}",
                       {},
                       {}};
    EXPECT_EQ(request.query.at("fieldSelector"), "spec.nodeName=node-a");
    FakeReply reply;
    reply.stream = [&](const FakeReply::Write& write) {
      write(R"({"type":"MODIFIED","object":)" + pod_text("a", "2GiB") + "}\n");
      write(R"({"type":"DELETED","object":)" + pod_text("b", "1GiB") + "}\n");
      while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    return reply;
  });
  const MonotonicClock clock;
  ApiClient client(anonymous_access(server.url()), clock, kQuick);
  std::atomic<std::size_t> told = 0;
  {
    ApiPods pods(client, "node-a", clock, {});
    pods.on_change([&](const Pods& now) { told = now.size() * 100 + told % 100 + 1; });
    EXPECT_FALSE(pods.synced());
    pods.start();
    EXPECT_TRUE(within_seconds(5, [&] { return memory_of(pods.find("lab", "a")) == "2GiB"; }));
    EXPECT_TRUE(within_seconds(5, [&] { return pods.find("lab", "b") == nullptr; }));
    EXPECT_TRUE(pods.synced());
    EXPECT_EQ(pods.pods().size(), 1u);
    EXPECT_TRUE(within_seconds(5, [&] { return told == 103; })) << "three changes, one pod left";
    over = true;
  }
}

TEST(ApiPods, FetchAsksTheServerNow) {
  const FakeServer server([&](const FakeRequest& request) {
    if (request.path == "/api/v1/namespaces/lab/pods/a")
      return FakeReply{200, pod_text("a", "3GiB"), {}, {}};
    return FakeReply{404, R"({"kind":"Status","reason":"NotFound"})", {}, {}};
  });
  const MonotonicClock clock;
  ApiClient client(anonymous_access(server.url()), clock, kQuick);
  ApiPods pods(client, "node-a", clock, {});
  const Result<PodRef> pod = pods.fetch("lab", "a");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(memory_of(*pod), "3GiB");
  EXPECT_EQ(pods.fetch("lab", "b").error().code, Errc::kNotFound);
}

TEST(KubeletPods, AreAskedAgainAndTellOnlyOfChanges) {
  std::atomic<int> gibibytes = 1;
  std::atomic<int> asked = 0;
  const FakeServer server([&](const FakeRequest& request) {
    EXPECT_EQ(request.path, "/pods");
    ++asked;
    return FakeReply{
        200,
        R"({"kind":"PodList","items":[)" + pod_text("a", std::to_string(gibibytes) + "GiB") + "]}",
        {},
        {}};
  });
  const MonotonicClock clock;
  ApiClient client(anonymous_access(server.url()), clock, kQuick);
  std::atomic<int> changes = 0;
  KubeletPods pods(client, {}, 10 * kMillisecond);
  pods.on_change([&](const Pods&) { ++changes; });
  pods.start();
  EXPECT_TRUE(within_seconds(5, [&] { return asked > 3; }));
  EXPECT_EQ(changes, 1);
  gibibytes = 2;
  EXPECT_TRUE(within_seconds(5, [&] { return memory_of(pods.find("lab", "a")) == "2GiB"; }));
  EXPECT_TRUE(within_seconds(5, [&] { return changes == 2; }));
}

TEST(KubeletPods, AreGoneWhenTheyAreMissingFromTenAnswersInARow) {
  std::atomic<bool> empty = false;
  const FakeServer server([&](const FakeRequest&) {
    return FakeReply{
        200, R"({"items":[)" + (empty ? std::string() : pod_text("a", "1GiB")) + "]}", {}, {}};
  });
  const MonotonicClock clock;
  ApiClient client(anonymous_access(server.url()), clock, kQuick);
  KubeletPods pods(client, {});
  ASSERT_TRUE(pods.refresh());
  empty = true;
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(pods.refresh());
  EXPECT_NE(pods.find("lab", "a"), nullptr);
  empty = false;
  ASSERT_TRUE(pods.refresh()) << "there again: counted from the start";
  empty = true;
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(pods.refresh());
  EXPECT_NE(pods.find("lab", "a"), nullptr);
  ASSERT_TRUE(pods.refresh());
  EXPECT_EQ(pods.find("lab", "a"), nullptr);
}

TEST(KubeletPods, FetchAsksNowAndKeepsWhatIsKnownWhenKubeletIsAway) {
  std::atomic<bool> away = false;
  const FakeServer server([&](const FakeRequest&) {
    if (away) return FakeReply{503, "", {}, {}};
    return FakeReply{200, R"({"items":[)" + pod_text("a", "1GiB") + "]}", {}, {}};
  });
  const MonotonicClock clock;
  ApiClient::Options options = kQuick;
  options.deadline = 100 * kMillisecond;
  ApiClient client(anonymous_access(server.url()), clock, options);
  KubeletPods pods(client, {});
  EXPECT_EQ(pods.find("lab", "a"), nullptr);
  EXPECT_TRUE(pods.fetch("lab", "a"));
  EXPECT_EQ(pods.fetch("lab", "b").error().code, Errc::kNotFound);
  away = true;
  EXPECT_EQ(pods.fetch("lab", "a").error().code, Errc::kUnavailable);
  EXPECT_NE(pods.find("lab", "a"), nullptr);
}

}  // namespace
}  // namespace aliquot::kube
