#include "node/preferred_slots.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "node/slots.h"

namespace aliquot::node {
namespace {

using Ids = std::vector<std::string>;

// Four GPUs: 0-3 and 1-2 have NVLink, the others do not.
DeviceBoard::Content board(bool links) {
  DeviceBoard::Content content;
  std::vector<model::Device> devices(4);
  for (const char* uuid : {"A", "B", "C", "D"}) content.gpus.push_back({uuid, std::nullopt, true});
  if (!links) return content;
  model::NodeTopology node(devices, {});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = a + 1; b < 4; ++b)
      node.set_link(a, b, a + b == 3 ? model::nvlink(4) : model::path_link(model::LinkKind::kSys));
  content.shape = std::make_shared<const topology::Shape>(*topology::Shape::of(node));
  return content;
}

Ids slots(std::initializer_list<std::pair<const char*, unsigned>> free) {
  Ids ids;
  for (const auto& [uuid, count] : free)
    for (unsigned n = 0; n < count; ++n) ids.push_back(slot_id({uuid, n}));
  std::ranges::reverse(ids);
  return ids;
}

Ids preferred(const DeviceBoard::Content& content, const Ids& available, std::size_t count,
              SlotStrategy strategy = SlotStrategy::kBinpack, const Ids& must = {}) {
  Ids chosen = preferred_slots(content, {available, must, count}, strategy);
  std::ranges::sort(chosen);
  return chosen;
}

TEST(PreferredSlots, OneSlotGoesWhereFewestAreFreeOrMost) {
  const Ids free = slots({{"A", 4}, {"B", 2}, {"C", 3}});
  EXPECT_EQ(preferred(board(false), free, 1), Ids{"B::0"});
  EXPECT_EQ(preferred(board(false), free, 1, SlotStrategy::kSpread), Ids{"A::0"});
}

TEST(PreferredSlots, SeveralGoToTheGpusWithTheBestLinks) {
  EXPECT_EQ(preferred(board(true), slots({{"A", 4}, {"B", 1}, {"D", 4}}), 2),
            (Ids{"A::0", "D::0"}));
  EXPECT_EQ(preferred(board(true), slots({{"B", 1}, {"C", 4}, {"D", 4}}), 2),
            (Ids{"B::0", "C::0"}));
}

TEST(PreferredSlots, WhatMustBeInIsInAndItsBestPartnerIsFound) {
  const Ids free = slots({{"A", 2}, {"B", 2}, {"C", 2}, {"D", 2}});
  EXPECT_EQ(preferred(board(true), free, 2, SlotStrategy::kBinpack, {"B::1"}),
            (Ids{"B::1", "C::0"}));
}

TEST(PreferredSlots, MoreSlotsThanGpusGoRound) {
  const Ids chosen = preferred(board(true), slots({{"A", 3}, {"B", 3}}), 4);
  ASSERT_EQ(chosen.size(), 4u);
  EXPECT_EQ(gpus_of(chosen).size(), 2u);
}

TEST(PreferredSlots, UnknownIdsAreNeverChosenAndFewerThanAskedIsNoCrash) {
  EXPECT_EQ(preferred(board(false), {"Z::0", "junk", "A::0"}, 2), Ids{"A::0"});
  EXPECT_TRUE(preferred(board(false), {}, 1).empty());
}

}  // namespace
}  // namespace aliquot::node
