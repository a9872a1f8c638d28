#include "node/tenant_watch.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

broker::LeaseRow honest(const std::string& name) {
  broker::LeaseRow row;
  row.name = name;
  row.gpus.emplace_back().index = 3;
  row.gpus[0].refusals = 100;  // asking for too much is no misconduct
  row.refused_attaches = 1;
  return row;
}

TEST(TenantWatch, AnHonestTenantIsNotNamed) {
  EXPECT_TRUE(misconduct_in({honest("a"), honest("b")}).empty());
}

TEST(TenantWatch, EachKindOfMisconductIsNamedOfTheLeaseThatDidIt) {
  auto scribbler = honest("scribbler"), flooder = honest("flooder"), cutter = honest("cutter"),
       hoarder = honest("hoarder");
  scribbler.anomalies = 7;
  flooder.held_off = 1;
  cutter.state = wire::LeaseState::kPoisoned;
  hoarder.gpus[0].held_back_bytes = 1;
  const auto found = misconduct_in({honest("a"), scribbler, flooder, cutter, hoarder});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].lease, "scribbler");
  EXPECT_NE(found[1].text.find("floods"), std::string::npos);
  EXPECT_NE(found[2].text.find("truncated"), std::string::npos);
  EXPECT_NE(found[3].text.find("GPU 3"), std::string::npos);
}

TEST(TenantWatch, WhatGoesOnIsNewsOnce) {
  auto scribbler = honest("s");
  scribbler.anomalies = 1;
  const auto first = misconduct_in({scribbler});
  scribbler.anomalies = 500;
  const auto second = misconduct_in({scribbler});
  EXPECT_EQ(news_in(first, {}).size(), 1u);
  EXPECT_TRUE(news_in(second, first).empty());
}

}  // namespace
}  // namespace aliquot::node
