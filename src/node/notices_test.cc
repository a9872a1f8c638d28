#include "node/notices.h"

#include <gtest/gtest.h>

#include <atomic>

#include "kube/fake_server.h"

namespace aliquot::node {
namespace {

using inventory::HealthState;
using kube::FakeReply;
using kube::FakeRequest;

constexpr kube::ApiClient::Options kQuick{kSecond, 5 * kMillisecond, 20 * kMillisecond,
                                          30 * kSecond, 1};

struct NoticesTest : testing::Test {
  // A node that has neither condition nor taint, and takes everything.
  FakeReply answer(const FakeRequest& request) {
    if (down) return FakeReply{503, "{}", {}, {}};
    if (request.method == "GET")
      return FakeReply{
          200,
          R"({"metadata":{"name":"n","resourceVersion":"1"},"spec":{},"status":{"conditions":[]}})",
          {},
          {}};
    return FakeReply{200, "{}", {}, {}};
  }
  std::unique_ptr<Notices> notices(const std::string& taint = "") {
    Notices::Options options;
    options.node = "n";
    options.taint_effect = taint;
    options.gpu_index = {{"GPU-a", 3}};
    options.retry_after = 10 * kMillisecond;
    return std::make_unique<Notices>(options, client);
  }
  // Waits until a request other than GET has all of these in its path and body.
  bool wrote(const std::string& path, const std::string& body) const {
    for (int i = 0; i < 500; ++i) {
      for (const FakeRequest& request : server.requests())
        if (request.method != "GET" && request.path == path &&
            request.body.find(body) != std::string::npos)
          return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::atomic<bool> down = false;
  MonotonicClock clock;
  kube::FakeServer server{[this](const FakeRequest& request) { return answer(request); }};
  kube::ApiClient client{kube::anonymous_access(server.url()), clock, kQuick};
};

constexpr const char* kNodeStatus = "/api/v1/nodes/n/status";
constexpr const char* kEvents = "/api/v1/namespaces/default/events";

TEST_F(NoticesTest, AtFirstTheConditionSaysThatAllIsWell) {
  const auto one = notices();
  EXPECT_TRUE(wrote(kNodeStatus, "AllUsable"));
}

TEST_F(NoticesTest, AGpuThatGoesAndComesBackIsInConditionAndEvents) {
  const auto one = notices();
  one->health({"GPU-a", HealthState::kHealthy, HealthState::kLost, "XID 79: fell off"});
  EXPECT_TRUE(wrote(kNodeStatus, "GPU 3 GPU-a is lost: XID 79: fell off"));
  EXPECT_TRUE(wrote(kEvents, "GpuUnhealthy"));
  one->health({"GPU-a", HealthState::kLost, HealthState::kRecovering, ""});
  EXPECT_TRUE(wrote(kNodeStatus, "GPU 3 GPU-a is recovering: XID 79: fell off"));
  one->health({"GPU-a", HealthState::kRecovering, HealthState::kHealthy, ""});
  EXPECT_TRUE(wrote(kEvents, "GPU 3 GPU-a is usable again"));
}

TEST_F(NoticesTest, ASuspectGpuIsNobodysNewsButTheLogs) {
  {
    const auto one = notices();
    EXPECT_TRUE(wrote(kNodeStatus, "AllUsable"));
    one->health({"GPU-a", HealthState::kHealthy, HealthState::kSuspect, "does not answer"});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (const FakeRequest& request : server.requests()) EXPECT_NE(request.path, kEvents);
}

TEST_F(NoticesTest, ATaintIsSetWhereItIsWantedAlone) {
  const auto plain = notices();
  plain->health({"GPU-a", HealthState::kHealthy, HealthState::kLost, "gone"});
  EXPECT_TRUE(wrote(kEvents, "GpuUnhealthy"));
  for (const FakeRequest& request : server.requests())
    EXPECT_FALSE(request.method == "PATCH" && request.path == "/api/v1/nodes/n");
  const auto tainting = notices("NoSchedule");
  tainting->health({"GPU-a", HealthState::kHealthy, HealthState::kLost, "gone"});
  EXPECT_TRUE(wrote("/api/v1/nodes/n", "aliquot.dev/gpu-unhealthy"));
}

TEST_F(NoticesTest, WhatTheServerMissedIsToldWhenItIsBack) {
  down = true;
  const auto one = notices();
  one->health({"GPU-a", HealthState::kHealthy, HealthState::kLost, "gone"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::size_t before = server.requests().size();
  down = false;
  bool condition = false, event = false;
  for (int i = 0; i < 500 && !(condition && event); ++i) {
    const auto requests = server.requests();
    for (std::size_t at = before; at < requests.size(); ++at) {
      condition = condition || (requests[at].path == kNodeStatus &&
                                requests[at].body.find("GPU-a is lost") != std::string::npos);
      event = event || requests[at].path == kEvents;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(condition);
  EXPECT_TRUE(event);
}

TEST_F(NoticesTest, EventsBeyondWhatMayWaitAreCounted) {
  down = true;
  const auto one = notices();
  for (int i = 0; i < 1000; ++i) {
    kube::Event event;
    event.target = {"Pod", "lab", "p", "u"};
    event.reason = "Flood";
    event.message = std::to_string(i);
    one->post(event);
  }
  EXPECT_GE(one->dropped(), 400u);
}

}  // namespace
}  // namespace aliquot::node
