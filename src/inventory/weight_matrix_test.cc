#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inventory/topology_text.h"

namespace aliquot::inventory {
namespace {

using testing::StartsWith;

std::string refusal(std::string_view text) {
  const auto node = parse_topology(text, "w");
  return node ? "accepted" : node.error().message;
}

TEST(WeightMatrix, ReadsRowsOnOneLine) {
  const auto node =
      parse_topology("0 300 300 50 / 300 0 50 300 / 300 50 0 300 / 50 300 300 0", "w");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->gpu_count(), 4u);
  EXPECT_EQ(node->link(0, 1), model::weight_link(300'000));
  EXPECT_EQ(node->link(1, 2), model::weight_link(50'000));
  EXPECT_EQ(node->gpus()[3].name, "GPU3");
}

TEST(WeightMatrix, ReadsDecimalsLatenciesAndLines) {
  const auto node = parse_topology("X 12.5@1500\n12.5@1500 X\n", "w");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->link(0, 1), model::weight_link(12'500, 1500));
}

TEST(WeightMatrix, PrintsWhatReadsBackTheSame) {
  const auto node = parse_topology("0 1 2.25 / 1 0 0@7 / 2.25 0@7 0", "w");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(print_weight_matrix(*node), "0 1 2.25\n1 0 0@7\n2.25 0@7 0\n");
  EXPECT_EQ(*parse_topology(print_weight_matrix(*node), "w"), *node);
}

TEST(WeightMatrix, NamesLineAndColumnOfEveryFault) {
  EXPECT_THAT(refusal("0 1\n1 0 2\n"), StartsWith("w:2:5: row 1 has 3 numbers"));
  EXPECT_THAT(refusal("0 1 / 1"), StartsWith("w:1:7: row 1 has 1 numbers"));
  EXPECT_THAT(refusal("0 1 / 2 0"), StartsWith("w:1:7: GPU1 to GPU0 is 2, but the other way"));
  EXPECT_THAT(refusal("0 1x / 1 0"), StartsWith("w:1:3: expected GB/s"));
  EXPECT_THAT(refusal("0 1.2345 / 1 0"), StartsWith("w:1:3: expected GB/s"));
  EXPECT_THAT(refusal("0 1@ / 1 0"), StartsWith("w:1:3: expected GB/s"));
  EXPECT_THAT(refusal("0 1000001 / 1 0"), StartsWith("w:1:3: expected GB/s"));
  EXPECT_THAT(refusal("5 1 / 1 0"), StartsWith("w:1:1: a GPU's link to itself"));
  EXPECT_THAT(refusal("0 X / 1 0"), StartsWith("w:1:3: expected GB/s"));
}

}  // namespace
}  // namespace aliquot::inventory
