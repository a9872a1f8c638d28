#include "inventory/domain_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::inventory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string said_of(const std::string& text) {
  const auto objects = parse_domain_objects(text, "n.json");
  return objects ? "accepted" : objects.error().message;
}

std::string hyper(const std::string& spec) {
  return R"({"kind": "HyperNode", "metadata": {"name": "h"}, "spec": )" + spec + "}";
}

TEST(DomainObjects, ReadsAListOfAllKinds) {
  const auto objects = parse_domain_objects(
      R"({"kind": "List", "items": [
        {"kind": "Node", "metadata": {"name": "n0", "labels": {"rack": "r1"}}},
        {"kind": "Pod", "metadata": {"name": "p"}},
        {"kind": "HyperNode", "metadata": {"name": "s0"}, "spec": {"tier": 1, "members": [
          {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}},
          {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r1"}}}},
          {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "^l"}}}]}},
        {"kind": "Topology", "metadata": {"name": "default"},
         "spec": {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]}}]})",
      "n.json");
  ASSERT_TRUE(objects) << objects.error().message;
  EXPECT_THAT(objects->hosts, ElementsAre(model::LabelledHost{"n0", {{"rack", "r1"}}}));
  ASSERT_EQ(objects->hyper_nodes.size(), 1u);
  EXPECT_EQ(objects->hyper_nodes[0].tier, 1);
  EXPECT_THAT(objects->hyper_nodes[0].members,
              ElementsAre(model::HyperMember{true, "n0", "", {}},
                          model::HyperMember{true, "", "", {{"rack", "r1"}}},
                          model::HyperMember{false, "", "^l", {}}));
  EXPECT_THAT(objects->levels, ElementsAre("block", "rack"));
}

TEST(DomainObjects, ReadsOneObjectAndAnArray) {
  EXPECT_EQ(said_of(hyper(R"({"tier": 2})")), "accepted");
  EXPECT_EQ(said_of("[" + hyper(R"({"tier": 2})") + "]"), "accepted");
}

TEST(DomainObjects, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(said_of("{"), HasSubstr("n.json"));
  EXPECT_THAT(said_of("{}"), HasSubstr("n.json: holds no Node, HyperNode or Topology"));
  EXPECT_THAT(said_of(hyper("{}")),
              HasSubstr("n.json: HyperNode h: spec.tier: expected a whole number"));
  EXPECT_THAT(said_of(hyper(R"({"tier": 1, "members": [{"type": "Rack"}]})")),
              HasSubstr("type must be Node or HyperNode"));
  EXPECT_THAT(said_of(hyper(R"({"tier": 1, "members": [{"type": "Node"}]})")),
              HasSubstr("each needs a selector"));
  EXPECT_THAT(said_of(hyper(R"({"tier": 1, "members": [{"type": "Node", "selector": {}}]})")),
              HasSubstr("one of exactMatch, regexMatch, labelMatch"));
  EXPECT_THAT(said_of(hyper(
                  R"({"tier": 1, "members": [{"type": "HyperNode",
              "selector": {"labelMatch": {"matchLabels": {"a": "b"}}}}]})")),
              HasSubstr("HyperNodes are not selected by label"));
  EXPECT_THAT(said_of(R"({"kind": "Node", "metadata": {"name": "n", "labels": {"a": 1}}})"),
              HasSubstr("n.json: Node n: labels: 'a' is not a string"));
  EXPECT_THAT(said_of(R"({"kind": "Node"})"), HasSubstr("metadata.name: missing"));
  EXPECT_THAT(
      said_of(R"({"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{}]}})"),
      HasSubstr("n.json: Topology t: spec.levels: each needs a nodeLabel"));
}

}  // namespace
}  // namespace aliquot::inventory
