// Room kube against a real API server (KUBECONFIG): run by
// tests/e2e/the_kube_client_meets_a_real_server.sh.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <thread>

#include "common/files.h"
#include "kube/access.h"
#include "kube/api_client.h"
#include "kube/api_pods.h"
#include "kube/assignment.h"
#include "kube/writes.h"

namespace aliquot::kube {
namespace {

using format::Json;

const char* node_name() { return std::getenv("NODE"); }  // NOLINT(concurrency-mt-unsafe)

bool within_seconds(int seconds, const std::function<bool()>& holds) {
  for (int i = 0; i < seconds * 50; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return holds();
}

// A pod that nobody schedules until it is bound.
Json unscheduled(const std::string& name) {
  const std::string text = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                           R"("},"spec":{"schedulerName":"nobody","terminationGracePeriodSeconds":0,
      "tolerations":[{"operator":"Exists"}],"containers":[{"name":"main",
      "image":"aliquot.test/busybox:1","imagePullPolicy":"Never","command":["sleep","infinity"]}]}})";
  return *format::parse_json(text, "pod");
}

constexpr const char* kPods = "/api/v1/namespaces/default/pods";

class RealServer : public testing::Test {
 protected:
  static Access access() {
    Result<Access> found = find_access({}, process_environment());
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? *found : Access();
  }
  void TearDown() override {
    for (const std::string& name : made_)
      EXPECT_TRUE(client_.remove(std::string(kPods) + "/" + name));
  }
  Pod make(const std::string& name) {
    const Result<Json> object = client_.create(kPods, unscheduled(name));
    EXPECT_TRUE(object) << (object ? "" : object.error().message);
    made_.push_back(name);
    const Result<Pod> pod = parse_pod(*object);
    EXPECT_TRUE(pod) << (pod ? "" : pod.error().message);
    return *pod;
  }
  MonotonicClock clock_;
  ApiClient client_{access(), clock_};
  std::vector<std::string> made_;
};

TEST_F(RealServer, ABindingShowsItsAssignmentInTheFirstSightOfThePod) {
  ApiPods pods(client_, node_name(), clock_, {});
  std::mutex mutex;
  std::vector<std::string> first_sights;
  pods.on_change([&](const Pods& now) {
    const std::lock_guard lock(mutex);
    for (const PodRef& pod : now)
      if (pod->name == "bound" && first_sights.empty())
        first_sights.push_back(pod->annotation(kAssignmentAnnotation) != nullptr ? "assigned"
                                                                                 : "bare");
  });
  pods.start();
  ASSERT_TRUE(within_seconds(10, [&] { return pods.synced(); }));
  const Pod pod = make("bound");
  const Assignment assignment{{{"main", {{"GPU-1", 4 * model::kGiB, 3000}}}}};
  const Status bound = bind(client_, pod, node_name(),
                            {{std::string(kAssignmentAnnotation), assignment_text(assignment)}});
  ASSERT_TRUE(bound) << bound.error().message;
  ASSERT_TRUE(within_seconds(10, [&] { return pods.find("default", "bound") != nullptr; }));
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(first_sights, std::vector<std::string>{"assigned"});
  }
  const PodRef seen = pods.find("default", "bound");
  EXPECT_EQ(*parse_assignment(*seen->annotation(kAssignmentAnnotation)), assignment);
  EXPECT_TRUE(within_seconds(20, [&] {
    const PodRef now = pods.find("default", "bound");
    return now != nullptr && now->container("main")->state == ContainerState::kRunning;
  }));
  EXPECT_EQ(bind(client_, pod, node_name(), {}).error().code, Errc::kInvalid) << "bound already";
  ASSERT_TRUE(client_.patch(
      std::string(kPods) + "/bound", PatchKind::kMerge,
      Json::object().set(
          "metadata",
          Json::object().set("annotations", Json::object().set("aliquot.dev/share", "cores=50")))));
  EXPECT_TRUE(within_seconds(2, [&] {
    const PodRef now = pods.find("default", "bound");
    return now != nullptr && now->annotation(kShareAnnotation) != nullptr;
  })) << "a changed annotation is seen";
  EXPECT_TRUE(
      client_.remove(std::string(kPods) + "/bound", "another-uid").error().message.find("409") !=
      std::string::npos);
  ASSERT_TRUE(client_.remove(std::string(kPods) + "/bound", pod.uid));
  EXPECT_TRUE(within_seconds(20, [&] { return pods.find("default", "bound") == nullptr; }));
}

TEST_F(RealServer, AnEventIsCountedAndAConditionStays) {
  const Pod pod = make("told");
  const Event event{event_target(pod), EventKind::kWarning, "ShareRefused", "it does not fit"};
  const std::time_t now = std::time(nullptr);
  for (int i = 0; i < 3; ++i) {
    const Status posted = post_event(client_, event, now + i);
    ASSERT_TRUE(posted) << posted.error().message;
  }
  const Result<Json> events =
      client_.get("/api/v1/namespaces/default/events?fieldSelector=" +
                  query_escaped("involvedObject.name=told,reason=ShareRefused"));
  ASSERT_TRUE(events);
  ObjectReader list(*events, "events");
  ASSERT_EQ(list.list({"items"}).size(), 1u);
  EXPECT_EQ(ObjectReader(list.list({"items"}).front(), "event").number({"count"}), 3);

  for (int i = 0; i < 2; ++i) {
    const Status set = set_condition(client_, node_name(),
                                     {"AliquotCheck", "False", "Check", "by a test"}, now + i);
    ASSERT_TRUE(set) << set.error().message;
  }
  const Result<Json> object = client_.get("/api/v1/nodes/" + std::string(node_name()));
  ASSERT_TRUE(object);
  const Result<Node> node = parse_node(*object);
  ASSERT_TRUE(node);
  ASSERT_NE(node->condition("AliquotCheck"), nullptr);
  ASSERT_NE(node->condition("Ready"), nullptr) << "kubelet's own condition is still there";
}

TEST_F(RealServer, ATaintComesAndGoesAlone) {
  const auto taints = [&] {
    return parse_node(*client_.get("/api/v1/nodes/" + std::string(node_name())))->taints;
  };
  const std::vector<Taint> before = taints();
  const Taint taint{"aliquot.dev/check", "yes", "PreferNoSchedule"};
  const Status set = set_taint(client_, node_name(), taint, TaintIs::kSet);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(taints().size(), before.size() + 1);
  ASSERT_TRUE(set_taint(client_, node_name(), taint, TaintIs::kCleared));
  EXPECT_EQ(taints(), before);
}

TEST_F(RealServer, AWatchFromTooLongAgoIsTold) {
  std::string seen;
  const Result<Answer> answer =
      client_.stream("/api/v1/pods?watch=1&resourceVersion=1&timeoutSeconds=2", 10 * kSecond, {},
                     [&](std::string_view piece) {
                       seen += piece;
                       return true;
                     });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->status == 410 || seen.find("\"code\":410") != std::string::npos ||
              seen.find("ADDED") != std::string::npos)
      << answer->status << " " << seen;
}

TEST_F(RealServer, StrangersAndStrangeServersAreRefused) {
  Access nobody = access();
  nobody.client_certificate = {};
  nobody.client_key = {};
  nobody.token = "not-a-token";
  ApiClient stranger(nobody, clock_);
  EXPECT_EQ(stranger.get(kPods).error().code, Errc::kDenied);
  nobody.token = "admin-token";
  ApiClient by_token(nobody, clock_);
  EXPECT_TRUE(by_token.get(kPods));

  Access untrusted = access();
  untrusted.authority = untrusted.client_certificate;
  ApiClient::Options options;
  options.deadline = kSecond;
  ApiClient distrusting(untrusted, clock_, options);
  const Result<Json> refused = distrusting.get(kPods);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("certificate"), std::string::npos)
      << refused.error().message;

  Access named = access();
  named.tls_server_name = "kubernetes.default.svc";
  ApiClient by_name(named, clock_, options);
  EXPECT_TRUE(by_name.get(kPods));
  named.tls_server_name = "elsewhere.example";
  ApiClient by_wrong_name(named, clock_, options);
  EXPECT_FALSE(by_wrong_name.get(kPods));
}

}  // namespace
}  // namespace aliquot::kube
