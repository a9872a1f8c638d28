#include "topology/domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace aliquot::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Two spines of two leaves of two hosts.
DomainTree two_spines() {
  std::vector<HostPath> paths;
  for (unsigned i = 0; i < 8; ++i)
    paths.push_back({"n" + std::to_string(i),
                     {"spine-" + std::to_string(i / 4), "leaf-" + std::to_string(i / 2 % 2)}});
  return DomainTree::of(paths);
}

Result<GangPlacement> place(const DomainTree& tree, std::vector<unsigned> free, Gang gang) {
  const std::vector<unsigned> all(free.size(), 8);
  return place_gang(tree, {free, all}, gang);
}

TEST(DomainTree, KeepsEqualNamesUnderDifferentParentsApart) {
  const DomainTree tree = two_spines();
  EXPECT_EQ(tree.domains().size(), 7u);  // root, 2 spines, 4 leaves
  EXPECT_EQ(tree.domains()[DomainTree::kRoot].tier, 2u);
  EXPECT_EQ(tree.path_text(DomainTree::kRoot), "the cluster");
  EXPECT_EQ(tree.path_text(tree.domains().size() - 1), "spine-1/leaf-1");
}

TEST(DomainTree, NeedsNoRootAboveOneTopDomain) {
  const std::vector<HostPath> paths = {{"a", {"core", "l0"}}, {"b", {"core", "l1"}}};
  const DomainTree tree = DomainTree::of(paths);
  EXPECT_EQ(tree.domains().size(), 3u);
  EXPECT_EQ(tree.path_text(DomainTree::kRoot), "core");
}

TEST(DomainTree, TakesPathsOfDifferentLength) {
  const std::vector<HostPath> paths = {{"a", {"s", "l"}}, {"b", {"s"}}, {"c", {}}};
  const DomainTree tree = DomainTree::of(paths);
  EXPECT_EQ(tree.domains().size(), 3u);
  EXPECT_THAT(tree.domains()[DomainTree::kRoot].hosts, ElementsAre(2));
  EXPECT_EQ(tree.domains()[DomainTree::kRoot].tier, 2u);
}

TEST(PlaceGang, TakesTheLowestDomainThatHoldsAll) {
  const DomainTree tree = two_spines();
  // leaf-0 of spine-1 alone has 8 together; everything else would cross a spine.
  const auto placed = place(tree, {3, 3, 3, 3, 4, 4, 1, 1}, {.pods = 8});
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(tree.path_text(placed->domain), "spine-1/leaf-0");
  EXPECT_THAT(placed->pods, ElementsAre(Pair(4, 4), Pair(5, 4)));
}

TEST(PlaceGang, TakesTheFullestOfThoseAndKeepsTheEmptyOneWhole) {
  const DomainTree tree = two_spines();
  const auto placed = place(tree, {8, 8, 2, 3, 8, 8, 8, 8}, {.pods = 4});
  ASSERT_TRUE(placed);
  EXPECT_EQ(tree.path_text(placed->domain), "spine-0/leaf-1");
}

TEST(PlaceGang, UsesTheRoomiestPartsAndTheTightestForTheRest) {
  const DomainTree tree = two_spines();
  // 11 pods in spine-0: leaf-1 whole (8), the other 3 on the host of leaf-0 with exactly 3.
  const auto placed = place(tree, {4, 3, 4, 4, 0, 0, 0, 0}, {.pods = 11});
  ASSERT_TRUE(placed);
  EXPECT_EQ(tree.path_text(placed->domain), "spine-0");
  EXPECT_THAT(placed->pods, ElementsAre(Pair(1, 3), Pair(2, 4), Pair(3, 4)));
}

TEST(PlaceGang, GoesUpOnlyAsFarAsAllowed) {
  const DomainTree tree = two_spines();
  const std::vector<unsigned> free = {2, 2, 2, 2, 2, 2, 2, 2};
  EXPECT_TRUE(place(tree, free, {.pods = 16, .highest_tier = {}}));
  const auto refused = place(tree, free, {.pods = 9, .highest_tier = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Errc::kExhausted,
                                    "9 pods asked in one domain of tier 1, the roomiest (spine-0) "
                                    "has room for 8"}));
}

TEST(PlaceGang, TellsNotNowFromNever) {
  const DomainTree tree = two_spines();
  const std::vector<unsigned> free(8, 0);
  EXPECT_EQ(place(tree, free, {.pods = 64}).error().code, Errc::kExhausted);
  const auto never = place(tree, free, {.pods = 17, .highest_tier = 0});
  EXPECT_EQ(never.error(), (Error{Errc::kInvalid,
                                  "17 pods asked in one domain of tier 0, the largest "
                                  "(spine-0/leaf-0) holds 16"}));
}

// All pods are placed once, on hosts with room, inside the domain; no lower tier would have done.
TEST(PlaceGang, HoldsItsPromisesOnRandomTrees) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 2000; ++round) {
    std::vector<HostPath> paths;
    const unsigned hosts = 1 + static_cast<unsigned>(random() % 20);
    for (unsigned i = 0; i < hosts; ++i) {
      HostPath path{std::to_string(i), {}};
      for (std::size_t depth = random() % 4; depth > 0; --depth)
        path.domains.push_back(std::string(1, static_cast<char>('a' + random() % 3)));
      paths.push_back(path);
    }
    const DomainTree tree = DomainTree::of(paths);
    std::vector<unsigned> free(hosts);
    for (unsigned& slots : free) slots = static_cast<unsigned>(random() % 9);
    const unsigned total = std::accumulate(free.begin(), free.end(), 0u);
    const unsigned pods = 1 + static_cast<unsigned>(random() % (total + 2));
    const auto placed = place(tree, free, {.pods = pods});
    ASSERT_EQ(placed.has_value(), pods <= total);
    if (!placed) continue;

    const auto inside = [&](std::size_t host, std::size_t domain) {
      for (std::size_t at = 0; at < tree.domains().size(); ++at)
        if (std::ranges::count(tree.domains()[at].hosts, host) > 0)
          for (std::size_t up = at; up != Domain::kNone; up = tree.domains()[up].parent)
            if (up == domain) return true;
      return false;
    };
    unsigned sum = 0;
    for (const auto& [host, count] : placed->pods) {
      ASSERT_LE(count, free[host]);
      ASSERT_TRUE(inside(host, placed->domain));
      sum += count;
    }
    ASSERT_EQ(sum, pods);
    for (std::size_t other = 0; other < tree.domains().size(); ++other) {
      unsigned room = 0;
      for (std::size_t host = 0; host < hosts; ++host)
        if (inside(host, other)) room += free[host];
      if (room >= pods) {
        ASSERT_GE(tree.domains()[other].tier, tree.domains()[placed->domain].tier);
      }
    }
  }
}

TEST(Labels, OfTopographAndTheOlderNamesMakePaths) {
  const std::map<std::string, std::string> labels = {{"network.topology.nvidia.com/spine", "s1"},
                                                     {"network.topology.nvidia.com/block", "b7"},
                                                     {"kubernetes.io/hostname", "n3"}};
  const std::vector<std::string> levels = known_levels(labels);
  EXPECT_THAT(levels, ElementsAre("network.topology.nvidia.com/spine",
                                  "network.topology.nvidia.com/block"));
  EXPECT_EQ(path_by_labels("n3", labels, levels), (HostPath{"n3", {"s1", "b7"}}));

  const std::map<std::string, std::string> newer = {{"fabric.topograph.run/tier-0", "leaf"},
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

}  // namespace
}  // namespace aliquot::topology
