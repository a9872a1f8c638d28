#include "topology/domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace aliquot::topology {
namespace {

using model::HyperNode;
using model::LabelledHost;
using testing::ElementsAre;
using testing::HasSubstr;

// Two spines of two leaves of two hosts.
DomainTree two_spines() {
  std::vector<HostPath> paths;
  for (unsigned i = 0; i < 8; ++i)
    paths.push_back({"n" + std::to_string(i),
                     {"spine-" + std::to_string(i / 4), "leaf-" + std::to_string(i / 2 % 2)}});
  return DomainTree::of(paths);
}

TEST(DomainTree, KeepsEqualNamesUnderDifferentParentsApart) {
  const DomainTree tree = two_spines();
  ASSERT_EQ(tree.domains().size(), 7u);  // the cluster, 2 spines, 4 leaves
  EXPECT_EQ(tree.domains()[DomainTree::kRoot].path, "");
  EXPECT_EQ(tree.domains().back().path, "spine-1/leaf-1");
  EXPECT_THAT(tree.domains().back().hosts, ElementsAre(6, 7));
  EXPECT_THAT(tree.at_level(1), testing::SizeIs(2));
  EXPECT_THAT(tree.at_level(2), testing::SizeIs(4));
  EXPECT_EQ(tree.deepest(), 2u);
}

TEST(DomainTree, TakesPathsOfDifferentLength) {
  const std::vector<HostPath> paths = {{"a", {"s", "l"}}, {"b", {"s"}}, {"c", {}}};
  const DomainTree tree = DomainTree::of(paths);
  ASSERT_EQ(tree.domains().size(), 3u);
  EXPECT_THAT(tree.domains()[DomainTree::kRoot].hosts, ElementsAre(0, 1, 2));
  EXPECT_THAT(tree.domains()[1].hosts, ElementsAre(0, 1));
  EXPECT_THAT(tree.domains()[2].hosts, ElementsAre(0));
  EXPECT_EQ(DomainTree::of({}).domains().size(), 1u);
}

// Children part their parent's hosts, and every host is where its path says.
TEST(DomainTree, HoldsItsPromisesOnRandomPaths) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 500; ++round) {
    std::vector<HostPath> paths(1 + random() % 20);
    for (HostPath& path : paths)
      for (std::size_t depth = random() % 4; depth > 0; --depth)
        path.domains.push_back(std::string(1, static_cast<char>('a' + random() % 3)));
    const DomainTree tree = DomainTree::of(paths);
    for (std::size_t d = 0; d < tree.domains().size(); ++d) {
      const Domain& domain = tree.domains()[d];
      std::size_t below = 0;
      for (const std::size_t child : domain.children) {
        ASSERT_EQ(tree.domains()[child].parent, d);
        below += tree.domains()[child].hosts.size();
      }
      ASSERT_LE(below, domain.hosts.size());
      for (const std::uint32_t host : domain.hosts) {
        std::string path;
        for (std::size_t i = 0; i < domain.level; ++i)
          path += (i == 0 ? "" : "/") + paths[host].domains.at(i);
        ASSERT_EQ(path, domain.path);
      }
    }
  }
}

TEST(Labels, OfTopographAndTheOlderNamesMakePaths) {
  const Labels labels = {{"network.topology.nvidia.com/spine", "s1"},
                         {"network.topology.nvidia.com/block", "b7"},
                         {"kubernetes.io/hostname", "n3"}};
  const std::vector<std::string> levels = known_levels(labels);
  EXPECT_THAT(levels, ElementsAre("network.topology.nvidia.com/spine",
                                  "network.topology.nvidia.com/block"));
  EXPECT_EQ(path_by_labels("n3", labels, levels), (HostPath{"n3", {"s1", "b7"}}));

  const Labels newer = {{"fabric.topograph.run/tier-0", "leaf"},
                        {"fabric.topograph.run/tier-1", "spine"},
                        {"accelerator.topograph.run/domain", "nvl"}};
  EXPECT_EQ(path_by_labels("n", newer, known_levels(newer)).domains,
            (std::vector<std::string>{"spine", "leaf", "nvl"}));
  EXPECT_TRUE(known_levels({}).empty());
}

TEST(Labels, EndThePathAtTheFirstOneMissing) {
  const std::vector<std::string> levels = {"block", "rack", "host"};
  EXPECT_EQ(path_by_labels("n", {{"block", "b"}, {"host", "n"}}, levels).domains,
            (std::vector<std::string>{"b"}));
}

// Two leaves by name and pattern, a rack by label, all in one spine but the rack.
std::vector<HyperNode> hyper_nodes() {
  return {{"leaf-a", 1, {{true, "n0", "", {}}, {true, "n1", "", {}}}},
          {"leaf-b", 1, {{true, "", "^n[2-3]$", {}}}},
          {"rack", 1, {{true, "", "", {{"rack", "r7"}}}}},
          {"spine", 2, {{false, "", "^leaf-", {}}}}};
}

std::vector<LabelledHost> hosts() {
  return {{"n0", {}}, {"n1", {}}, {"n2", {}}, {"n3", {}}, {"m", {{"rack", "r7"}}}, {"x", {}}};
}

TEST(HyperNodes, MakePathsByNamePatternAndLabel) {
  const auto paths = paths_by_hyper_nodes(hosts(), hyper_nodes());
  ASSERT_TRUE(paths) << paths.error().message;
  EXPECT_THAT(*paths,
              ElementsAre(HostPath{"n0", {"spine", "leaf-a"}}, HostPath{"n1", {"spine", "leaf-a"}},
                          HostPath{"n2", {"spine", "leaf-b"}}, HostPath{"n3", {"spine", "leaf-b"}},
                          HostPath{"m", {"rack"}}, HostPath{"x", {}}));
}

TEST(HyperNodes, SayWhatIsWrongWithThem) {
  const auto said = [](HyperNode more) {
    std::vector<HyperNode> nodes = hyper_nodes();
    nodes.push_back(std::move(more));
    const auto paths = paths_by_hyper_nodes(hosts(), nodes);
    return paths ? "accepted" : paths.error().message;
  };
  EXPECT_EQ(said({"o", 1, {{true, "n1", "", {}}}}),
            "HyperNode o: host 'n1' is in 'leaf-a' already");
  EXPECT_EQ(said({"o", 2, {{false, "leaf-b", "", {}}}}),
            "HyperNode o: 'leaf-b' is in 'spine' already");
  EXPECT_EQ(said({"o", 2, {{false, "o", "", {}}}}), "HyperNode o: lies in itself");
  EXPECT_EQ(said({"rack", 1, {}}), "HyperNode rack: is described twice");
  EXPECT_THAT(said({"o", 1, {{true, "", "[", {}}}}), HasSubstr("HyperNode o: pattern '[': "));
}

}  // namespace
}  // namespace aliquot::topology
