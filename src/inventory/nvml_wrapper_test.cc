#include <gtest/gtest.h>

#include "inventory/nvml.h"

namespace aliquot::inventory {
namespace {

using model::LinkKind;

// Two pairs joined by two NVLinks each, PCIe between them.
FakeNvml two_pairs() {
  FakeNvml nvml;
  for (unsigned i = 0; i < 4; ++i) {
    NvmlGpu gpu;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.bus_id = "00000000:0" + std::to_string(i) + ":00.0";
    gpu.numa = static_cast<int>(i / 2);
    gpu.pcie_max_generation = 4;
    nvml.gpu_answers.push_back(gpu);
    const std::string peer = "00000000:0" + std::to_string(i ^ 1) + ":00.0";
    nvml.nvlink_answers.push_back({{.link = 0,
                                    .active = true,
                                    .generation = 3,
                                    .remote_bus_id = peer,
                                    .remote_is_switch = false},
                                   {.link = 1,
                                    .active = true,
                                    .generation = 3,
                                    .remote_bus_id = peer,
                                    .remote_is_switch = false}});
    nvml.state_answers.emplace_back();
    nvml.path_answers.push_back(std::vector<LinkKind>(4, LinkKind::kSys));
  }
  return nvml;
}

TEST(NvmlWrapper, TopologyHasNvlinksWhereTheyLeadAndPathsElsewhere) {
  FakeNvml nvml = two_pairs();
  const auto node = topology_from(nvml);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->link(0, 1).kind, LinkKind::kNvlink);
  EXPECT_EQ(node->link(0, 1).nvlinks, 2);
  EXPECT_EQ(node->link(0, 1).generation, 3);
  EXPECT_EQ(node->link(1, 2).kind, LinkKind::kSys);
  EXPECT_EQ(node->gpus()[2].description, "GPU-2");
  EXPECT_EQ(node->gpus()[2].numa, 1);
}

TEST(NvmlWrapper, LinksThatAreDownCarryNothing) {
  FakeNvml nvml = two_pairs();
  for (NvmlNvlink& link : nvml.nvlink_answers[0]) link.active = false;
  const auto node = topology_from(nvml);
  ASSERT_TRUE(node);
  EXPECT_EQ(node->link(0, 1).kind, LinkKind::kSys);
  EXPECT_EQ(node->link(2, 3).kind, LinkKind::kNvlink);
}

TEST(NvmlWrapper, ASwitchJoinsAllByWhatTheLesserHas) {
  FakeNvml nvml = two_pairs();
  for (auto& links : nvml.nvlink_answers)
    for (NvmlNvlink& link : links)
      link = {.link = link.link,
              .active = true,
              .generation = 4,
              .remote_bus_id = "00000000:C4:00.0",
              .remote_is_switch = true};
  nvml.nvlink_answers[3][1].active = false;
  const auto node = topology_from(nvml);
  ASSERT_TRUE(node);
  EXPECT_EQ(node->link(0, 2).kind, LinkKind::kNvswitch);
  EXPECT_EQ(node->link(0, 2).nvlinks, 2);
  EXPECT_EQ(node->link(0, 3).nvlinks, 1);
}

TEST(NvmlWrapper, TheTwinGivesEventsOnceAndFaultsToEverybody) {
  FakeNvml nvml = two_pairs();
  nvml.xids = {79};
  EXPECT_EQ(*nvml.wait_for_xid(1, {}), 79u);
  EXPECT_EQ(*nvml.wait_for_xid(1, {}), std::nullopt);
  EXPECT_EQ(nvml.state(4).error().code, Errc::kNotFound);
  nvml.fault = Error{Errc::kUnavailable, "nvmlDeviceGetMemoryInfo_v2: GPU is lost"};
  EXPECT_EQ(nvml.gpus().error().message, "nvmlDeviceGetMemoryInfo_v2: GPU is lost");
  EXPECT_FALSE(topology_from(nvml));
}

TEST(NvmlWrapper, NobodyNeedsAGpuThatHangsToAskAboutAnother) {
  const auto nvml = open_nvml(ALIQUOT_ONE_GPU_HANGS);
  ASSERT_TRUE(nvml) << nvml.error().message;
  const auto index = (*nvml)->index_at("00000001:01:00.0");
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(*index, 1u);
  EXPECT_EQ((*nvml)->gpu(*index)->bus_id, "00000001:01:00.0");
  EXPECT_EQ(*(*nvml)->wait_for_xid(*index, {}), 101u);
  EXPECT_EQ(*(*nvml)->wait_for_xid(2, {}), 102u);
  EXPECT_EQ((*nvml)->index_at("00000009:01:00.0").error().code, Errc::kNotFound);
}

TEST(NvmlWrapper, SaysWhichLibraryIsNotThere) {
  const auto nvml = open_nvml("/nowhere/libnvidia-ml.so.1");
  ASSERT_FALSE(nvml);
  EXPECT_EQ(nvml.error().code, Errc::kNotFound);
  EXPECT_EQ(nvml.error().message.find("load /nowhere/libnvidia-ml.so.1: "), 0u);
}

}  // namespace
}  // namespace aliquot::inventory
