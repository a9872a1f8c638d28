#include "topology/reason.h"

#include <gtest/gtest.h>

#include "support/topologies.h"

namespace aliquot::topology {
namespace {

std::string reason(const model::NodeTopology& node, Request request) {
  const Shape shape = *Shape::of(node);
  if (request.free.empty()) request.free = shape.all();
  const auto set = best_set(shape, request);
  return set ? reason_for(node, shape, request, *set) : set.error().message;
}

TEST(Reason, NamesLinksRingAndTheEqualSetKeptWhole) {
  EXPECT_EQ(reason(test::dgx1_v100(), {.count = 4}),
            "0-3 are joined pairwise by NVLink (3 NV1, 3 NV2), ring 0-1-2-3 25 GB/s; 4-7 equal, "
            "kept whole");
  EXPECT_EQ(reason(test::dgx1_v100(), {.count = 2}),
            "0,3 share 2 NVLinks each way, pair 50 GB/s; 1,2 equal, kept whole");
}

TEST(Reason, SaysWhenTheChoiceCannotMatter) {
  EXPECT_EQ(reason(test::hgx(12), {.count = 4}),
            "0-3 share 12 NVLinks each way through NVSwitch, ring 0-1-2-3 300 GB/s; all pairs of "
            "this node are equal, so no choice is faster than another");
}

TEST(Reason, TellsSocketsApartWhereAllPathsPrintSys) {
  const auto node = test::topology_of(std::vector<std::string>(8, "SSSSSSSS"), 4);
  EXPECT_EQ(reason(node, {.count = 4}),
            "0-3 lie in one NUMA node, ring 0-1-2-3 6 GB/s; 4-7 equal, kept whole");
}

TEST(Reason, SaysWhatAOneGpuJobLeavesWhole) {
  EXPECT_EQ(reason(test::one_bridge(), {.count = 1}),
            "GPU 2: its loss harms later jobs least; 0,1 kept whole");
}

TEST(Reason, SaysWhenNothingElseIsAsFast) {
  EXPECT_EQ(reason(test::one_bridge(), {.count = 2}),
            "0,1 share 4 NVLinks each way, pair 100 GB/s; no other choice is as fast");
  EXPECT_EQ(reason(test::one_bridge(), {.count = 3}),
            "1 of 3 pairs of 0-2 are joined by NVLink (2 NODE, 1 NV4), ring 0-1-2 10 GB/s; the "
            "only choice");
}

TEST(Reason, CountsThePairsOfAWeightMatrix) {
  EXPECT_EQ(reason(test::four_ring(), {.count = 4}),
            "pairs of 0-3: 4 of 300, 2 of 50 GB/s, ring 0-1-3-2 300 GB/s; the only choice");
}

TEST(Reason, NamesNumaNodesAndNicsWhereAsked) {
  model::NodeTopology node(std::vector<model::Device>(2), std::vector<model::Device>(1));
  node.nic(0).name = "mlx5_0";
  node.gpu(0).numa = 1;
  node.gpu(1).numa = 1;
  node.set_link(0, 1, model::path_link(model::LinkKind::kPix));
  node.set_link(0, 2, model::path_link(model::LinkKind::kPxb));
  node.set_link(1, 2, model::path_link(model::LinkKind::kSys));
  EXPECT_EQ(reason(node, {.count = 2, .near_nics = true, .near_numa = true}),
            "0,1 lie under one PCIe switch, pair 12 GB/s; nearest NICs 0: mlx5_0 PXB, 1: mlx5_0 "
            "SYS; 0,1 in NUMA node 1; the only choice");
}

}  // namespace
}  // namespace aliquot::topology
