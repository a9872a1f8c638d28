#include "simdriver/cuda/visible_devices.h"

#include <gtest/gtest.h>

#include "driver_abi/cuda_constants.h"

namespace aliquot::simdriver {
namespace {

using List = std::vector<unsigned>;

class VisibleDevices : public testing::Test {
 protected:
  VisibleDevices() : all_(4) {
    for (unsigned i = 0; i < all_.size(); ++i) {
      all_[i].uuid.fill(0xab);
      all_[i].uuid[0] = static_cast<std::uint8_t>(i < 2 ? 0x10 : 0x20 + i);
      all_[i].uuid[15] = static_cast<std::uint8_t>(i);
    }
  }
  List visible(const char* list, const char* order = nullptr) {
    return visible_devices(all_, instances_, {list, order});
  }
  // GPUs 1 and 3 cut in two each.
  void cut() {
    for (const unsigned gpu : {1u, 3u}) {
      all_[gpu].mig = 1;
      for (unsigned i = 0; i < 2; ++i) {
        VisibleInstance made{gpu * 10 + i, gpu, 5, i, all_[gpu].uuid};
        made.uuid[1] = static_cast<std::uint8_t>(i);
        instances_.push_back(made);
      }
    }
  }
  std::vector<DeviceInfo> all_;
  std::vector<VisibleInstance> instances_;
};

TEST_F(VisibleDevices, AreAllWhenUnsetAndNoneWhenEmpty) {
  EXPECT_EQ(visible(nullptr), (List{0, 1, 2, 3}));
  EXPECT_EQ(visible(""), List{});
}

TEST_F(VisibleDevices, ComeInTheOrderOfTheList) {
  EXPECT_EQ(visible("2,0"), (List{2, 0}));
  EXPECT_EQ(visible(" 3 , 1"), (List{3, 1}));
}

TEST_F(VisibleDevices, EndAtTheFirstBadEntry) {
  EXPECT_EQ(visible("1,-1,2"), List{1});
  EXPECT_EQ(visible("1,9,2"), List{1});
  EXPECT_EQ(visible("-1"), List{});
  EXPECT_EQ(visible("no"), List{});
}

TEST_F(VisibleDevices, AreNoneWhenOneIsNamedTwice) { EXPECT_EQ(visible("1,0,1"), List{}); }

TEST_F(VisibleDevices, CanBeNamedByAPrefixOfTheirUuidThatFitsOneOnly) {
  EXPECT_EQ(visible("GPU-22"), List{2});
  EXPECT_EQ(visible("GPU-23abab,GPU-22"), (List{3, 2}));
  EXPECT_EQ(visible("GPU-10"), List{});
  EXPECT_EQ(visible("GPU-10ababab-abab-abab-abab-abababababab00"), List{});
  EXPECT_EQ(visible("GPU-10ababab-abab-abab-abab-ababababab01"), List{1});
}

TEST_F(VisibleDevices, AreOneInstanceAloneWhereThereIsOne) {
  cut();
  EXPECT_EQ(visible(nullptr), List{10});
  EXPECT_EQ(visible("0,3,1"), List{30});
  EXPECT_EQ(visible("0,2"), (List{0, 2}));
  EXPECT_EQ(visible("MIG-2301"), List{31});
  EXPECT_EQ(visible("MIG-10"), List{});
  EXPECT_EQ(visible("MIG-GPU-23abab/5/1"), List{31});
  EXPECT_EQ(visible("MIG-GPU-23abab/4/1"), List{});
  EXPECT_EQ(visible("MIG-GPU-23abab"), List{});
}

// The t4 in front of an l40s on the PCI bus, twice.
TEST_F(VisibleDevices, StandFastestFirstUnlessPciOrderIsAskedFor) {
  for (unsigned gpu = 0; gpu < 4; ++gpu) {
    const bool fast = gpu % 2 == 1;
    all_[gpu].attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = fast ? 142 : 40;
    all_[gpu].attributes[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = fast ? 2'520'000 : 1'590'000;
  }
  for (const char* fastest_first : {static_cast<const char*>(nullptr), "FASTEST_FIRST", "x"}) {
    EXPECT_EQ(visible(nullptr, fastest_first), (List{1, 3, 0, 2}));
    EXPECT_EQ(visible("2,0", fastest_first), (List{0, 1}));
    EXPECT_EQ(visible("GPU-22,GPU-23", fastest_first), (List{2, 3}));
  }
  EXPECT_EQ(visible(nullptr, "PCI_BUS_ID"), (List{0, 1, 2, 3}));
  EXPECT_EQ(visible("2,0", "PCI_BUS_ID"), (List{2, 0}));
}

TEST_F(VisibleDevices, LeaveOutACutGpuWithoutInstances) {
  all_[1].mig = 1;
  EXPECT_EQ(visible(nullptr), (List{0, 2, 3}));
  EXPECT_EQ(visible("1"), List{});
}

}  // namespace
}  // namespace aliquot::simdriver
