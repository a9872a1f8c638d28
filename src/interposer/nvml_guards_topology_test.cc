#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interposer/testing/nvml_share.h"

namespace aliquot::interposer {
namespace {

using ::testing::ElementsAre;
using testing::NvmlShare;

class NvmlTopology : public ::testing::Test {
 protected:
  NvmlTopology() : first(share.begin(0)) { nvmlDeviceGetHandleByIndex_v2(1, &second); }
  NvmlShare share;
  nvmlDevice_t first;
  nvmlDevice_t second = nullptr;
};

TEST_F(NvmlTopology, NeighboursAreLeasedOnes) {
  nvmlDevice_t near[4] = {};
  unsigned count = 0;
  ASSERT_EQ(nvmlDeviceGetTopologyNearestGpus(first, NVML_TOPOLOGY_SYSTEM, &count, nullptr),
            NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  count = 4;
  ASSERT_EQ(nvmlDeviceGetTopologyNearestGpus(first, NVML_TOPOLOGY_SYSTEM, &count, near),
            NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_THAT(near, ElementsAre(first, second, nullptr, nullptr));
  count = 1;
  near[1] = nullptr;
  ASSERT_EQ(nvmlDeviceGetTopologyNearestGpus(first, NVML_TOPOLOGY_SYSTEM, &count, near),
            NVML_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(near[1], nullptr);
}

TEST_F(NvmlTopology, GpusNearACpuAreLeasedOnes) {
  nvmlDevice_t near[4] = {};
  unsigned count = 4;
  ASSERT_EQ(nvmlSystemGetTopologyGpuSet(0, &count, near), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_THAT(near, ElementsAre(first, second, nullptr, nullptr));
  EXPECT_EQ(nvmlSystemGetTopologyGpuSet(0, nullptr, near), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlTopology, PairsAreAskedOfTheLibraryWhenBothAreLeased) {
  nvmlGpuP2PStatus_t status{};
  nvmlGpuTopologyLevel_t level{};
  int same = 0;
  EXPECT_EQ(nvmlDeviceGetP2PStatus(first, second, NVML_P2P_CAPS_INDEX_READ, &status), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetTopologyCommonAncestor(first, second, &level), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceOnSameBoard(first, second, &same), NVML_SUCCESS);
  for (const char* name :
       {"nvmlDeviceGetP2PStatus", "nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceOnSameBoard"})
    EXPECT_EQ(share.fake.calls[name], 1u) << name;
  EXPECT_EQ(nvmlDeviceGetP2PStatus(first, share.foreign(2), NVML_P2P_CAPS_INDEX_READ, &status),
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetTopologyCommonAncestor(share.foreign(0), second, &level),
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceOnSameBoard(first, share.foreign(2), &same), NVML_ERROR_INVALID_ARGUMENT);
}

// GPU 1's links lead to GPU 2 (another lease's), GPU 3 (ours) and a switch.
TEST_F(NvmlTopology, TheOtherEndOfALinkIsNotTheGpuOfAnotherLease) {
  nvmlPciInfo_t end{};
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(first, 0, &end), NVML_ERROR_NOT_FOUND);
  EXPECT_STREQ(end.bus_id, "");
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(first, 1, &end), NVML_SUCCESS);
  EXPECT_EQ(end.bus_id, share.fake.gpus[3].bus_id);
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(first, 2, &end), NVML_SUCCESS);
  EXPECT_STREQ(end.bus_id, "00000000:80:00.0");
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(first, 9, &end), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(first, 1, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlTopology, TheOldLinkQueryWritesOnlyTheOldStruct) {
  nvmlPciInfo_t end{};
  strcpy(end.bus_id, "untouched");
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo(first, 0, &end), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo(first, 1, &end), NVML_SUCCESS);
  EXPECT_EQ(end.bus_id_legacy, share.fake.gpus[3].bus_id.substr(4));
  EXPECT_STREQ(end.bus_id, "untouched");
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo(first, 1, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace aliquot::interposer
