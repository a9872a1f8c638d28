#include "inventory/topology_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "common/files.h"
#include "support/shared_data.h"

namespace aliquot::inventory {
namespace {

using model::LinkKind;
using model::NodeTopology;
using testing::StartsWith;

constexpr char kBridged[] =
    "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tPIX\t0-23,48-71\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tNODE\t0-23,48-71\t0\t\tN/A\n"
    "mlx5_0\tPIX\tNODE\t X \t\t\t\t\n";

std::string refusal(std::string_view text) {
  const auto node = parse_topology_text(text, "t");
  return node ? "accepted" : node.error().message;
}

TEST(TopologyText, ReadsDevicesLinksAndAffinities) {
  const auto node = parse_topology_text(kBridged, "t");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->gpu_count(), 2u);
  EXPECT_EQ(node->nic_count(), 1u);
  EXPECT_EQ(node->link(0, 1), model::nvlink(4));
  EXPECT_EQ(node->nic_link(1, 0).kind, LinkKind::kNode);
  EXPECT_EQ(node->gpus()[1].cpus, "0-23,48-71");
  EXPECT_EQ(node->gpus()[1].numa, 0);
  EXPECT_EQ(node->nics()[0].name, "mlx5_0");
  EXPECT_EQ(node->nics()[0].numa, std::nullopt);
}

TEST(TopologyText, ReadsColumnsOfBlanksAsItReadsTabs) {
  const auto node = parse_topology_text(
      "      GPU0  GPU1  CPU Affinity  NUMA Affinity\n"
      "GPU0   X    NV12   0-23         0\n"
      "GPU1  NV12   X    24-47         1\n",
      "t");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->link(1, 0), model::nvlink(12));
  EXPECT_EQ(node->gpus()[1].cpus, "24-47");
  EXPECT_EQ(node->gpus()[1].numa, 1);
}

TEST(TopologyText, DropsNothingWhereBlanksAndTabsMix) {
  const auto node = parse_topology_text(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0 X PHB 0-3\t0\n"
      "GPU1 PHB X 4-7\t1\n",
      "t");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->gpus()[1].cpus, "4-7");
  EXPECT_EQ(node->gpus()[1].numa, 1);
}

TEST(TopologyText, TakesOldWordsForTheirNewOnes) {
  const auto node = parse_topology_text(
      "GPU0 GPU1 GPU2\nGPU0 X SOC PSB\nGPU1 SOC X SOC\n"
      "GPU2 PSB SOC X\n",
      "t");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->link(0, 1).kind, LinkKind::kSys);
  EXPECT_EQ(node->link(0, 2).kind, LinkKind::kPix);
}

TEST(TopologyText, TellsNumaNodesByCpuListsWhereThatColumnIsAbsent) {
  const auto node = parse_topology_text(
      "GPU0 GPU1 GPU2 CPU Affinity\n"
      "GPU0 X PIX SYS 0-13\nGPU1 PIX X SYS 0-13\nGPU2 SYS SYS X 14-27\n",
      "t");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_TRUE(node->same_numa(0, 1));
  EXPECT_FALSE(node->same_numa(1, 2));
}

TEST(TopologyText, ReadsTheTwoLegendsAndTerminalSequences) {
  const auto node = parse_topology_text(
      "\t\x1b[4mGPU0\tGPU1\tNIC0\x1b[0m\nGPU0\tX\tNV1\tSYS\nGPU1\tNV1\tX\tSYS\nNIC0\tSYS\tSYS\tX\n"
      "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\nNIC Legend:\n\n"
      "  NIC0: mlx5_bond_0\n\n",
      "t");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->nics()[0].description, "mlx5_bond_0");
}

TEST(TopologyText, UsesTheGenerationsItIsTold) {
  const auto node =
      parse_topology_text(kBridged, "t", {.nvlink_generation = 5, .pcie_generation = 5});
  ASSERT_TRUE(node);
  EXPECT_EQ(node->link(0, 1).bandwidth_mb_s, 200'000u);
  EXPECT_EQ(node->nic_link(0, 0).bandwidth_mb_s, 48'000u);
}

TEST(TopologyText, PrintsWhatReadsBackTheSame) {
  const auto node = parse_topology_text(kBridged, "t");
  ASSERT_TRUE(node);
  const auto again = parse_topology_text(print_topology_text(*node), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *node);
}

TEST(TopologyText, SaysWhichRowIsMissing) {
  EXPECT_EQ(refusal("GPU0 GPU1\nGPU0 X PIX\n"),
            "t:3:1: the row of GPU1 is missing: the header names 2 devices, 1 rows came");
  EXPECT_EQ(refusal("GPU0 GPU1\nGPU0 X PIX\n\nLegend:\n"),
            "t:3:1: the row of GPU1 is missing: the header names 2 devices, 1 rows came");
}

TEST(TopologyText, NamesLineAndColumnOfEveryFault) {
  EXPECT_THAT(refusal(""), StartsWith("t:1:1: expected the header"));
  EXPECT_THAT(refusal("hello\n"), StartsWith("t:1:1: expected the header"));
  EXPECT_THAT(refusal("GPU0 GPU2\n"), StartsWith("t:1:6: expected GPU1 here, not 'GPU2'"));
  EXPECT_THAT(refusal("GPU0 NIC0 GPU1\n"), StartsWith("t:1:11: expected GPU1 here"));
  EXPECT_THAT(refusal("GPU0 NIC0 NIC0\n"), StartsWith("t:1:11: 'NIC0' is there already"));
  EXPECT_THAT(refusal("GPU0 CPU Affinity rubbish\n"), StartsWith("t:1:19: unknown column"));
  EXPECT_THAT(refusal("GPU0 CPU Affinity CPU Affinity\n"), StartsWith("t:1:19: this column is"));
  EXPECT_THAT(refusal("GPU0 GPU1\nGPU0 X\n"),
              StartsWith("t:2:7: the row of GPU0 ends after 1 of 2"));
  EXPECT_THAT(refusal("GPU0 GPU1\nGPU0 X OK\n"), StartsWith("t:2:8: unknown link 'OK'"));
  EXPECT_THAT(refusal("GPU0 GPU1\nGPU0 X NV0\n"), StartsWith("t:2:8: unknown link 'NV0'"));
  EXPECT_THAT(refusal("GPU0 GPU1\nGPU0 X NV99\n"), StartsWith("t:2:8: unknown link 'NV99'"));
  EXPECT_THAT(refusal("GPU0 GPU1\nGPU0 PIX PIX\n"), StartsWith("t:2:6: expected X"));
  EXPECT_THAT(refusal("GPU0 GPU1\nGPU0 X X\n"), StartsWith("t:2:8: X stands for a device itself"));
  EXPECT_THAT(refusal("GPU0 GPU1\nGPU0 X PIX\nGPU1 PHB X\n"),
              StartsWith("t:3:6: GPU1 to GPU0 is PHB, but the other way round it was PIX"));
  EXPECT_THAT(refusal("GPU0\nGPU0 X 0-3\n"), StartsWith("t:2:8: '0-3' stands under no column"));
  EXPECT_THAT(refusal("GPU0 CPU Affinity\nGPU0 X 3-0\n"), StartsWith("t:2:8: expected numbers"));
  EXPECT_THAT(refusal("\tGPU0\tCPU Affinity\nGPU0\tX\t0,,1\n"),
              StartsWith("t:2:8: expected numbers"));
  EXPECT_THAT(refusal("GPU0\nGPU0 X\nGPU1 X\n"), StartsWith("t:3:1: unexpected text"));
  EXPECT_THAT(refusal("GPU0\nGPU0 X\nNIC Legend:\n NIC0: mlx5_0\n"),
              StartsWith("t:4:2: expected a NIC"));
}

// Which files of the collection lack rows stands in its index, as "INCOMPLETE".
class CollectedTopologies : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = test::shared_data();
    if (!data) GTEST_SKIP() << "no shared data here (ALIQUOT_SHARED_DATA)";
    const auto index = read_file(*data / "topo/INDEX.md");
    ASSERT_TRUE(index) << index.error().message;
    for (std::size_t at = 0; at < index->size();) {
      const std::size_t end = std::min(index->find('\n', at), index->size());
      const std::string line = index->substr(at, end - at);
      if (line.starts_with("| ") && line.find(".txt") != std::string::npos) {
        const std::string name = line.substr(2, line.find(".txt") + 2);
        const auto text = read_file(*data / "topo" / name);
        ASSERT_TRUE(text) << text.error().message;
        (line.find("INCOMPLETE") == std::string::npos ? whole_ : incomplete_)[name] = *text;
      }
      at = end + 1;
    }
  }
  std::map<std::string, std::string> whole_;
  std::map<std::string, std::string> incomplete_;
};

TEST_F(CollectedTopologies, AllReadAndPrintBackTheSame) {
  EXPECT_EQ(whole_.size(), 25u);
  for (const auto& [name, text] : whole_) {
    const auto node = parse_topology(text, name);
    ASSERT_TRUE(node) << node.error().message;
    const auto again = parse_topology(print_topology_text(*node), name);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, *node) << name;
  }
}

TEST_F(CollectedTopologies, IncompleteOnesAreRefusedWithTheRowThatIsMissing) {
  const std::map<std::string, std::string> expected = {
      {"dgx1_topo_mp_4nic.txt", ":13:1: the row of mlx5_3 is missing"},
      {"gpu4_2nic_epyc_dense.txt", ":7:1: the row of NIC1 is missing"},
      {"h100_pcie_6x_pairs_pix.txt", ":7:1: the row of GPU5 is missing"}};
  EXPECT_EQ(incomplete_.size(), expected.size());
  for (const auto& [name, message] : expected) {
    const auto node = parse_topology(incomplete_[name], name);
    ASSERT_FALSE(node) << name;
    EXPECT_THAT(node.error().message, StartsWith(name + message));
  }
}

TEST_F(CollectedTopologies, HoldWhatTheirIndexSays) {
  const auto cube = parse_topology(whole_["aliyun_v100_8x_sccgn6.txt"], "aliyun");
  ASSERT_TRUE(cube);
  EXPECT_EQ(cube->link(0, 6), model::nvlink(2));
  EXPECT_EQ(cube->link(2, 4), model::nvlink(1));
  const auto dgx = parse_topology(whole_["dgx_a100_8x_12nic.txt"], "dgx");
  ASSERT_TRUE(dgx);
  EXPECT_EQ(dgx->nic_count(), 12u);
  EXPECT_EQ(dgx->gpus()[4].numa, 7);
  EXPECT_EQ(dgx->link(0, 7).kind, LinkKind::kNvswitch);
  const auto four = parse_topology(whole_["a100_sxm4_4x_1nic.txt"], "four");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->link(0, 3).kind, LinkKind::kNvlink);
}

}  // namespace
}  // namespace aliquot::inventory
