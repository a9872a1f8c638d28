#include "kube/node.h"

#include <gtest/gtest.h>

namespace aliquot::kube {
namespace {

TEST(Node, IsReadWithItsConditionsAndTaints) {
  const Result<format::Json> json = format::parse_json(R"({
    "metadata": {"name": "node-a", "uid": "u", "resourceVersion": "9"},
    "spec": {"taints": [{"key": "aliquot.dev/unhealthy", "effect": "NoSchedule"}]},
    "status": {"capacity": {"aliquot.dev/gpu": "80"}, "allocatable": {"aliquot.dev/gpu": "70"},
      "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})",
                                                       "test");
  ASSERT_TRUE(json);
  const Result<Node> node = parse_node(*json);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->capacity.at("aliquot.dev/gpu"), "80");
  EXPECT_EQ(node->allocatable.at("aliquot.dev/gpu"), "70");
  ASSERT_NE(node->condition("Ready"), nullptr);
  EXPECT_EQ(node->condition("Ready")->reason, "KubeletReady");
  EXPECT_EQ(node->condition("GpusHealthy"), nullptr);
  ASSERT_EQ(node->taints.size(), 1u);
  EXPECT_EQ(node->taints[0], (Taint{"aliquot.dev/unhealthy", "", "NoSchedule"}));
}

TEST(Node, WithoutANameIsRefused) { EXPECT_FALSE(parse_node(format::Json::object())); }

TEST(ConditionPatch, NamesOneConditionAndNothingElse) {
  const format::Json patch =
      condition_patch({"GpusHealthy", "False", "XidHardware", "GPU 3: XID 79"},
                      {"2026-01-01T00:00:09Z", "2026-01-01T00:00:00Z"});
  EXPECT_EQ(patch.dump(), R"({"status":{"conditions":[{"type":"GpusHealthy","status":"False",)"
                          R"("reason":"XidHardware","message":"GPU 3: XID 79",)"
                          R"("lastHeartbeatTime":"2026-01-01T00:00:09Z",)"
                          R"("lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
}

}  // namespace
}  // namespace aliquot::kube
