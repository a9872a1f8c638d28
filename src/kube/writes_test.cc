#include "kube/writes.h"

#include <gtest/gtest.h>

#include <atomic>

#include "kube/fake_server.h"

namespace aliquot::kube {
namespace {

constexpr ApiClient::Options kQuick{5 * kSecond, 5 * kMillisecond, 20 * kMillisecond, 30 * kSecond,
                                    1};

class Writes : public testing::Test {
 protected:
  // Requests but for GETs, in their order.
  static std::vector<FakeRequest> writes(const FakeServer& server) {
    std::vector<FakeRequest> out;
    for (const FakeRequest& request : server.requests())
      if (request.method != "GET") out.push_back(request);
    return out;
  }
  Pod pod() const {
    Pod out;
    out.name_space = "lab";
    out.name = "train";
    out.uid = "u-1";
    return out;
  }
  MonotonicClock clock_;
};

TEST_F(Writes, AnEventTellsWhomItIsAboutAndOnceIsEnough) {
  std::atomic<bool> there = false;
  const FakeServer server([&](const FakeRequest& request) {
    if (request.method == "POST" && there.exchange(true)) return FakeReply{409, "{}", {}, {}};
    return FakeReply{200, R"({"count": 4})", {}, {}};
  });
  ApiClient client(anonymous_access(server.url()), clock_, kQuick);
  const Event event{event_target(pod()), EventKind::kWarning, "ShareRefused", "does not fit", "d"};
  ASSERT_TRUE(post_event(client, event, 0));
  ASSERT_TRUE(post_event(client, event, 60));
  const std::vector<FakeRequest> seen = writes(server);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].path, "/api/v1/namespaces/lab/events");
  EXPECT_NE(
      seen[0].body.find(
          R"("involvedObject":{"apiVersion":"v1","kind":"Pod","name":"train","namespace":"lab","uid":"u-1"})"),
      std::string::npos)
      << seen[0].body;
  const auto name = [](const FakeRequest& request) {
    return request.body.substr(0, request.body.find("involvedObject"));
  };
  EXPECT_EQ(name(seen[0]), name(seen[1])) << "the same event has the same name";
  EXPECT_EQ(seen[2].method, "PATCH");
  EXPECT_EQ(seen[2].body, R"({"count":5,"lastTimestamp":"1970-01-01T00:01:00Z"})");
}

TEST_F(Writes, AConditionKeepsTheTimeOfItsLastTurn) {
  const FakeServer server([&](const FakeRequest&) {
    return FakeReply{200,
                     R"({"metadata":{"name":"n"},"status":{"conditions":[
        {"type":"GpusHealthy","status":"False","lastTransitionTime":"2000-01-01T00:00:00Z"}]}})",
                     {},
                     {}};
  });
  ApiClient client(anonymous_access(server.url()), clock_, kQuick);
  ASSERT_TRUE(set_condition(client, "n", {"GpusHealthy", "False", "Xid", ""}, 0));
  ASSERT_TRUE(set_condition(client, "n", {"GpusHealthy", "True", "Fine", ""}, 0));
  const std::vector<FakeRequest> seen = writes(server);
  EXPECT_EQ(seen.at(0).path, "/api/v1/nodes/n/status");
  EXPECT_EQ(seen.at(0).content_type, "application/strategic-merge-patch+json");
  EXPECT_NE(seen.at(0).body.find(R"("lastTransitionTime":"2000-01-01T00:00:00Z")"),
            std::string::npos);
  EXPECT_NE(seen.at(1).body.find(R"("lastTransitionTime":"1970-01-01T00:00:00Z")"),
            std::string::npos);
}

TEST_F(Writes, ATaintLeavesTheOthersAndIsTriedAgainAfterAConflict) {
  std::atomic<int> patches = 0;
  const FakeServer server([&](const FakeRequest& request) {
    if (request.method == "PATCH" && patches++ == 0) return FakeReply{409, "{}", {}, {}};
    return FakeReply{200,
                     R"({"metadata":{"name":"n","resourceVersion":"7"},"spec":{"taints":[
        {"key":"other","value":"v","effect":"NoExecute"}]}})",
                     {},
                     {}};
  });
  ApiClient client(anonymous_access(server.url()), clock_, kQuick);
  const Taint taint{"aliquot.dev/unhealthy", "", "NoSchedule"};
  ASSERT_TRUE(set_taint(client, "n", taint, TaintIs::kSet));
  ASSERT_TRUE(set_taint(client, "n", taint, TaintIs::kCleared)) << "it is not there: nothing to do";
  const std::vector<FakeRequest> seen = writes(server);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].body, R"({"metadata":{"resourceVersion":"7"},"spec":{"taints":[)"
                          R"({"key":"other","effect":"NoExecute","value":"v"},)"
                          R"({"key":"aliquot.dev/unhealthy","effect":"NoSchedule"}]}})");
}

TEST_F(Writes, ABindingCarriesTheUidAndTheAnnotations) {
  std::atomic<int> status = 201;
  const FakeServer server([&](const FakeRequest&) {
    return FakeReply{status, R"({"reason":"Conflict","message":"already assigned"})", {}, {}};
  });
  ApiClient client(anonymous_access(server.url()), clock_, kQuick);
  ASSERT_TRUE(bind(client, pod(), "node-a", {{"aliquot.dev/assignment", "{}"}}));
  EXPECT_EQ(writes(server).at(0).path, "/api/v1/namespaces/lab/pods/train/binding");
  EXPECT_EQ(writes(server).at(0).body,
            R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"train","namespace":"lab",)"
            R"("uid":"u-1","annotations":{"aliquot.dev/assignment":"{}"}},)"
            R"("target":{"apiVersion":"v1","kind":"Node","name":"node-a"}})");
  status = 409;
  const Status again = bind(client, pod(), "node-b", {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kInvalid);
  EXPECT_EQ(again.error().message, "bind lab/train to node-b: 409 Conflict: already assigned");
}

TEST(Rfc3339, IsUtcToTheSecond) { EXPECT_EQ(rfc3339(86'399), "1970-01-01T23:59:59Z"); }

}  // namespace
}  // namespace aliquot::kube
